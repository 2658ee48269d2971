"""Files of weights: reading and writing them, their cards, the known names, downloads."""
