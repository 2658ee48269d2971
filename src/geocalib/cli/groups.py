"""Help that lists the options of a command by what they are about."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

INPUT = "Input"
KNOWN = "What you know"
LENS = "Lens"
OUTPUT = "Output"
SPEED = "Speed"
ADDRESS = "Address"
LIMITS = "Limits"
REST = "Other"
ORDER = (ADDRESS, INPUT, KNOWN, LENS, OUTPUT, LIMITS, SPEED, REST)
"""Headings, which options name as their ``rich_help_panel``, as the help shows them."""


class Grouped(TyperCommand):
    """A command whose help has its options under these headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and then each group of options that the command has."""
        groups: dict[str, list[tuple[str, str]]] = {
            heading: [] for heading in ("Arguments", *ORDER)
        }
        for parameter in self.get_params(ctx):
            described = parameter.get_help_record(ctx)
            if described is not None:
                argument = parameter.param_type_name == "argument"
                heading = getattr(parameter, "rich_help_panel", None) or REST
                groups["Arguments" if argument else heading].append(described)
        for heading, rows in groups.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
