#include "kernels.cuh"

SHARDPROP_KERNELS_OF(, F8E4M3FN)
