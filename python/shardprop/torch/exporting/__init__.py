"""How a PyTorch module becomes a graph file that shardprop reads."""
