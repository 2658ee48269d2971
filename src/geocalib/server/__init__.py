"""Calibration over HTTP: ``geocalib serve``. A thin skin on ``geocalib.pipeline``."""
