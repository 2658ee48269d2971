"""Procedural worlds, rendered on the device as sharp, level panoramas."""

from geocalib_lab.training.worlds.generator import panoramas

__all__ = ["panoramas"]
