// MadeUpData is test data for a redistribution that is checked to the bit. If
// the redistribution only moves data, bytes follow from the place of the
// element. If it reduces, terms are small whole numbers, so that every order of
// reduction is exact.
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

  // Returns the local tensor of `rank` of the source's mesh. Error:
  // kOutOfMemory.
  Result<LocalTensor> source(std::int64_t rank) const;
  // Compares the results of the ranks of the target's mesh, given in mesh
  // order. Returns an empty text, or the first difference.
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
