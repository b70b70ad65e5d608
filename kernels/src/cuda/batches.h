#pragma once

#include <cstdint>
#include <vector>

#include <shardprop/kernels/status.h>

#include "../plan/box.h"
#include "../plan/pack_plan.h"
#include "params.h"

namespace shardprop::kernels::cuda {

// `Batches` collects the boxes of one call and launches them. A launch takes
// hundreds of contiguous tensors or dozens of strided rows; transpositions and
// misaligned boxes are launched one by one. If some box cannot be launched, no
// box is.
class Batches {
 public:
  struct Transform {
    DType from;
    DType to;
    double scale = 1.0;
    // The value of type `to` that fills boxes without a source. Null: zeros.
    const void* fill = nullptr;
  };

  // `op` names the call in messages.
  Batches(const char* op, const Transform& transform);

  void add_pack(const PackPlan& plan) { add_plan(plan, RowKind::kPack); }
  void add_unpack(const PackPlan& plan) { add_plan(plan, RowKind::kUnpack); }
  // Adds a part of a split. All parts read rows of one buffer.
  void add_part(const Box& box);
  void add_box(const Box& box);

  Status launch(void* stream);

 private:
  void add_plan(const PackPlan& plan, RowKind kind);
  bool add_segment(const PackPlan& plan, const PackItem& item, RowKind kind);
  void add_rectangles(Box box);
  bool aligned(const Box& box) const;
  bool transposes(const Box& box) const;
  RowsHeader header(RowKind kind) const;
  // Returns the bytes of a unit of a row: bytes that are moved together, or one
  // element that is converted.
  int unit(std::uint64_t common_alignment) const;

  Status launch_segments(void* stream) const;
  Status launch_rectangles(void* stream) const;
  Status launch_elements_of(const Box& box, void* stream) const;
  Status failure(int error) const;

  const char* op_;
  Transform transform_;
  std::int64_t from_;
  std::int64_t to_;
  bool plain_;  // bits are copied
  std::vector<Segment> segments_;
  RowsHeader segments_header_;
  std::vector<Rectangle> rectangles_;
  BoxList elements_;
  bool too_large_ = false;
};

}  // namespace shardprop::kernels::cuda
