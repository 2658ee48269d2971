"""What runs a network: torch, or ONNX Runtime, which starts at once."""
