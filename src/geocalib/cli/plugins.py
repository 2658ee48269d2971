"""Commands that other packages bring to the program, by entry points.

The laboratory of this repository (``lab/``) trains and evaluates; its commands are listed whether
it is installed or not, and say how to get it where it is not.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any

import typer
from typer.main import get_command

from geocalib.cli.exits import Plain
from geocalib.errors import ConfigError

GROUP = "geocalib.commands"
"""Each entry point names a ``typer.Typer``."""

LABORATORY = ("eval", "train", "dataset")
GET_LABORATORY = "pip install ./lab, in a checkout of geocalib"


class Commands(Plain):
    """The commands of the program, and behind them those of the laboratory, which are looked for
    when they are called: to look for entry points takes 30 ms."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *LABORATORY]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in LABORATORY:
            return _command(cmd_name)
        return super().get_command(ctx, cmd_name)


@cache
def _command(name: str) -> Any:
    for point in entry_points(group=GROUP, name=name):
        command = get_command(point.load())
        command.name = name
        return command
    return get_command(_missing(name))


def _missing(name: str) -> typer.Typer:
    """A command that takes any words, and says how to get the one that is meant."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    any_words = {"ignore_unknown_options": True, "allow_extra_args": True}

    @app.command(name, help=f"Not installed: {GET_LABORATORY}", context_settings=any_words)
    def command() -> None:
        raise ConfigError(f"{name} needs the laboratory: {GET_LABORATORY}")

    return app
