"""This package runs a user's parallel program on simulated ranks and finds its first
wrong value.

| module | contents |
|---|---|
| `turns` | one thread per rank, of which one runs at a time |
| `collectives` | collectives that move values between ranks |
| `groups` | the process groups of the simulated ranks |
| `graph_collectives` | collectives of traced graphs |
| `worlds` | the state that PyTorch keeps per process, one copy for each rank |
| `places` | the source line and the module of a call |
| `stated` | the full tensors that DTensors state |
| `names` | names of modules and parameters |
| `watch` | records the values of a run: module outputs, gradients, parameters |
| `dropout` | dropout masks that do not depend on the layout |
| `random_numbers` | numbers of other random operators, likewise |
| `noise` | bounds of the rounding error of each value |
| `fits` | the layouts in which the values of the ranks equal a reference |
| `compare` | compares the values of all ranks with the reference, in program order |
| `report` | the answer |
"""
