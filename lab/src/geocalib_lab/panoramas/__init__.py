"""Panoramas and the views that are cut out of them, for training and for evaluation."""
