"""The command line: ``geocalib``, or ``python -m geocalib``.

A thin shell: paths in, tables and files out. ``app`` alone is imported to parse a command, and it
needs nothing but Typer; everything heavy is imported when a command runs.
"""
