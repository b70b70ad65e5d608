/* That the header is C, and the library does what it says from there. */

#include <shardprop/kernels/c_api.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void check(int condition, const char* what) {
  if (!condition) {
    printf("FAILED %s\n", what);
    ++failures;
  }
}

int main(void) {
  float a[6] = {1, 2, 3, 4, 5, 6}; /* 3 x 2 */
  float b[2] = {7, 8};             /* 1 x 2 */
  const int64_t a_sizes[2] = {3, 2};
  const int64_t b_sizes[2] = {1, 2};
  const int64_t out_sizes[2] = {2, 6};
  const shardprop_kernels_tensor tensors[2] = {{a, 0, 2, a_sizes, NULL},
                                       {b, 0, 2, b_sizes, NULL}};
  float out[12] = {0};
  const shardprop_kernels_tensor result = {out, 0, 2, out_sizes, NULL};
  const float want[12] = {1, 2, 3, 4, 7, 8, 5, 6, 0, 0, 0, 0};
  char error[64] = "";

  check(shardprop_kernels_chunk_cat(tensors, 2, 0, 2, &result, NULL, 1.0, NULL, error,
                            sizeof error) == 0,
        error);
  check(memcmp(out, want, sizeof want) == 0, "chunk_cat");

  check(shardprop_kernels_chunk_cat(tensors, 2, 0, 0, &result, NULL, 1.0, NULL, error,
                            sizeof error) == 1,
        "an error has its code");
  check(strcmp(error, "chunk_cat: num_chunks is 0, must be positive") == 0,
        error);
  check(shardprop_kernels_chunk_cat(tensors, 2, 0, 0, &result, NULL, 1.0, NULL, error,
                            10) == 1 &&
            strcmp(error, "chunk_cat") == 0,
        "a message is cut to its room");
  check(shardprop_kernels_chunk_cat(tensors, 2, 0, 0, &result, NULL, 1.0, NULL, NULL,
                            0) == 1,
        "no room for a message");

  {
    shardprop_kernels_pool* pool = shardprop_kernels_pool_create(2);
    const shardprop_kernels_where where = {0, pool, NULL};
    const float value = 9;
    check(pool != NULL, "a pool");
    check(shardprop_kernels_fill(&result, &value, &where, error, sizeof error) == 0,
          error);
    check(out[0] == 9 && out[11] == 9, "fill");
    check(shardprop_kernels_strided_copy(&tensors[0], &tensors[0], 1.0, &where, error,
                                 sizeof error) == 3,
          "overlap");
    check(shardprop_kernels_reduce_into(0, tensors, 2, &result, 1.0, &where, error,
                                sizeof error) == 1,
          "shapes that differ");
    shardprop_kernels_pool_destroy(pool);
  }
  if (failures == 0) printf("ok\n");
  return failures != 0;
}
