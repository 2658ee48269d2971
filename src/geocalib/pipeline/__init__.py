"""From photographs to calibrations: prepare, predict, solve."""
