"""A small model with a buffer, for tests of weights and of copies."""

import torch


class Scaled(torch.nn.Module):
    """Two linear layers with a scale between them."""

    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(6, 10), torch.nn.Linear(10, 6)
        self.register_buffer("scale", torch.tensor(3.0))

    def forward(self, x):
        return self.down(torch.relu(self.up(x) * self.scale)).square().mean()
