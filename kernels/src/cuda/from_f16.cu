#include "kernels.cuh"

SHARDPROP_KERNELS_OF(, F16)
