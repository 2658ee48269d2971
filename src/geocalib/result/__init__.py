"""What a calibration holds: camera and gravity, how sure they are, and the record of it."""
