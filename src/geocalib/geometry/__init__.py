"""Axes and signs, gravity, perspective fields and horizons: mathematics on arrays alone."""
