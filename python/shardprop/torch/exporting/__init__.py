"""This package turns a PyTorch module into a graph file that shardprop reads."""
