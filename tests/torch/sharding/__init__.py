"""Runs sharding strategies on simulated ranks and compares them with PyTorch."""
