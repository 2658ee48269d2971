"""How commands end: exit codes, and one line for every expected error."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from geocalib.cli.options import spelt_out
from geocalib.errors import GET_TORCH, GeoCalibError

SOME_FAILED = 1
"""Exit code: some images have no answer; the others do."""
UNUSABLE = 2
"""Exit code: nothing was done, as the command asks for something that does not exist."""
INTERRUPTED = 130
BROKEN_PIPE = 141
"""Exit codes: what shells expect of programs ended by Ctrl-C, or by their reader."""


class Plain(TyperGroup):
    """Turns every expected error of a command into one line and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, spelt_out(args))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Python would complain once more when it closes what nobody reads.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(BROKEN_PIPE) from None
        except KeyboardInterrupt as error:
            _fail("; ".join(("interrupted", *error.args)))
            raise typer.Exit(INTERRUPTED) from None
        except GeoCalibError as error:
            _fail(str(error))
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            _fail(f"{ctx.invoked_subcommand} needs torch: {GET_TORCH}")
        except OSError as error:
            # All other files are named where they are written.
            full = error.filename is None and error.errno == errno.ENOSPC
            name = "standard output" if full else error.filename
            _fail(f"{name}: {error.strerror}" if name else str(error))
        raise typer.Exit(UNUSABLE)


def _fail(line: str) -> None:
    from geocalib import console

    console.fail(line)
