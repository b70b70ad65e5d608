#pragma once

#include <cstdint>
#include <vector>

#include <shardprop/kernels/chunk_cat.h>
#include <shardprop/kernels/split_with_sizes_copy.h>
#include <shardprop/kernels/status.h>

#include "box.h"
#include "operand.h"

namespace shardprop::kernels {

// One tensor and its columns in the packed buffer.
struct PackItem {
  const Operand* tensor;  // in PackPlan::tensors
  int dim;                // the dim that is cut
  std::int64_t chunk;     // its elements in a full chunk
  std::int64_t column;    // elements before this tensor's in each packed row

  std::int64_t trailing() const;  // elements behind one index of `dim`
};

// The tensors of a call and the packed buffer, lead x num_chunks x columns.
// chunk_cat copies from the tensors to the buffer. split_with_sizes_copy with
// shard_dims copies from the buffer to the tensors.
struct PackPlan {
  Operand packed;
  std::int64_t num_chunks;
  // The dims before the shard dim are leading dims of the buffer too
  // (chunk_cat's `dim`), or are part of its rows (shard_dims).
  int lead;
  std::vector<Operand> tensors;
  std::vector<PackItem> items;

  bool sharded;
  std::int64_t chunk_stride() const { return packed.strides[lead]; }
  std::int64_t column_stride() const { return packed.strides[lead + 1]; }
};

// Checks all arguments of a call (chunk_cat.h).
Status plan_chunk_cat(const ChunkCatArgs& args, PackPlan* plan);

// Checks a split with shard_dims.
Status plan_sharded_split(const SplitWithSizesCopyArgs& args, PackPlan* plan);

// Checks a split without shard_dims and appends one box for each output.
Status plan_split(const SplitWithSizesCopyArgs& args, BoxList* boxes);

// Appends the boxes of one item: the full chunks and the partial chunk. When
// packing, it also adds the padding of the partial chunk and the chunks of
// zeros.
void append_pack_boxes(const PackPlan& plan, const PackItem& item,
                       BoxList* boxes);
void append_unpack_boxes(const PackPlan& plan, const PackItem& item,
                         BoxList* boxes);

}  // namespace shardprop::kernels
