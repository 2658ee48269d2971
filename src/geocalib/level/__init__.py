"""Finished reconstructions set upright: which way is down in one, and all of it turned."""

from geocalib.level.estimate import Down, down_of, upright_turn

__all__ = ["Down", "down_of", "upright_turn"]
