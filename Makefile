# Two commands do everything on a machine that has Python 3.11: `make demo` and `make check`.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin

.PHONY: demo check lint test docs release page fuzz benchmark clean

# Files are compiled once, whatever the surroundings say: every process that a test starts would do
# it again.
unexport PYTHONDONTWRITEBYTECODE

INSTALL := $(RUN)/pip install --quiet --disable-pip-version-check -c constraints.txt

# The stamps are renewed when what is to be installed changes.
$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	@touch $@

$(VENV)/.installed: $(VENV)/.core large/pyproject.toml lab/pyproject.toml
	$(INSTALL) -e ".[dev]" -e large -e lab
	@touch $@

# Tests wait for servers and browsers now and then: one more than there are cores, at most 4.
WORKERS = $(shell $(PYTHON) -c "import os; print(min(4, 1 + (os.cpu_count() or 1)))")

demo: $(VENV)/.core
	$(RUN)/python examples/demo.py

# What has to pass before a change is one.
check: lint test

lint: $(VENV)/.installed
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy

test: $(VENV)/.installed
	$(RUN)/pytest -n $(WORKERS) --dist worksteal

# The documentation, in site/.
docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build --strict --quiet

# The wheels and the source archive, in dist/, checked; the wheels are tried in an empty environment.
release: $(VENV)/.installed
	rm -rf dist build large/build
	PIP_CONSTRAINT=constraints.txt $(RUN)/python -m build --outdir dist . >/dev/null
	PIP_CONSTRAINT=constraints.txt $(RUN)/python -m build --wheel --outdir dist large >/dev/null
	$(RUN)/twine check --strict dist/*
	$(RUN)/python .ci/check_release.py dist

# The page of `geocalib serve`, of its sources in web/; what is built is kept in the repository.
page:
	cd web && npm ci && npm run build

# Ten times as many damaged files as among the tests.
fuzz: $(VENV)/.installed
	GEOCALIB_FUZZ=20000 $(RUN)/pytest tests/fuzz

benchmark: $(VENV)/.installed
	$(RUN)/python lab/benchmarks/solver.py

clean:
	rm -rf $(VENV) out dist build site .pytest_cache .mypy_cache .ruff_cache
