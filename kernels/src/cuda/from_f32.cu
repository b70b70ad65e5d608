#include "kernels.cuh"

SHARDPROP_KERNELS_OF(, float)
