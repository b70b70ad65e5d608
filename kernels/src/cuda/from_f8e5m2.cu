#include "kernels.cuh"

SHARDPROP_KERNELS_OF(, F8E5M2)
