"""Training: panoramas become crops with exact ground truth, crops become a network.

Runs with torch, numpy and Pillow alone, on the CPU and on a GPU.
"""
