"""The laboratory of geocalib: it trains the networks and measures the answers. The package
``geocalib`` needs nothing of it."""
