"""Commands of the program ``geocalib`` that are there when this package is installed. Each module
has an ``app``, which pyproject.toml names as an entry point."""
