"""Finished reconstructions and panoramas set upright: which way is down in one."""

from geocalib.level.estimate import Down, down_of, upright_turn

__all__ = ["Down", "down_of", "upright_turn"]
