# Two commands do everything on a machine that has Python 3.11: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin

.PHONY: demo test page fuzz benchmark clean

# The stamp is renewed when what is to be installed changes.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: $(VENV)/.installed
	$(RUN)/python examples/demo.py

test: $(VENV)/.installed
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(RUN)/pytest -n auto --maxprocesses 4 --dist worksteal

# The page of `geocalib serve`, of its sources in web/; what is built is kept in the repository.
page:
	cd web && npm ci && npm run build

# Ten times as many damaged files as among the tests.
fuzz: $(VENV)/.installed
	GEOCALIB_FUZZ=10000 $(RUN)/pytest tests/fuzz

benchmark: $(VENV)/.installed
	$(RUN)/python benchmarks/solver.py

clean:
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache
