#include "reference/groups.h"

#include <algorithm>

namespace shardprop::reference {

Groups::Groups(const Dims& shape, const std::vector<int>& reduced) {
  const Dims strides = contiguous_strides(shape);
  Dims sizes[2];
  Dims steps[2];
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool in = std::find(reduced.begin(), reduced.end(),
                              static_cast<int>(d)) != reduced.end();
    sizes[in ? 1 : 0].push_back(shape[d]);
    steps[in ? 1 : 0].push_back(strides[d]);
  }
  for_each_offset(sizes[0], steps[0],
                  [&](std::int64_t offset) { outer_.push_back(offset); });
  for_each_offset(sizes[1], steps[1],
                  [&](std::int64_t offset) { inner_.push_back(offset); });
}

Groups groups_of(const Call& call) {
  const Dims& shape = call.first_value().shape();
  const auto rank = static_cast<int>(shape.size());
  std::vector<int> dims;
  const std::string_view arg = call.has("dims") ? "dims" : "dim";
  const auto named = call.has(arg) ? call.op().ints_arg(arg) : std::nullopt;
  // For most operators an empty list means all dims; for some it means no dim.
  const bool none = named && named->empty() && call.out().shape() == shape;
  if (!none) dims = call.dims(arg, rank);
  return Groups(shape, dims);
}

Groups lines_of(const Dims& shape, int dim) {
  return Groups(shape,
                shape.empty() ? std::vector<int>{} : std::vector<int>{dim});
}

}  // namespace shardprop::reference
