// Data whose redistribution can be told right from wrong to the bit: bytes that
// follow from an element's place where all only moves, small whole numbers
// where terms are combined, so that every order of combining them is exact.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/placement/tensor_spec.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shardprop::cli {

class MadeUpData {
 public:
  MadeUpData(TensorSpec src, TensorSpec dst);

  // What `rank` of the source's mesh holds. Error: kOutOfMemory.
  Result<LocalTensor> source(std::int64_t rank) const;
  // Compares what the ranks of the target's mesh ended with, in the order of
  // the mesh; an empty text, or what differs first.
  std::string check(const std::vector<std::vector<std::byte>>& results) const;

 private:
  std::int64_t whole(std::int64_t element) const;
  std::int64_t term(std::int64_t element, const Coordinate& at) const;
  void put(std::int64_t element, std::int64_t value, std::byte* to) const;

  TensorSpec src_;
  TensorSpec dst_;
  bool moves_only_;
  bool vanishes_;  // an average over ranks that binary fractions do not split
};

}  // namespace shardprop::cli
