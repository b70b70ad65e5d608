// LayerNumbers renames tensors and modules when blocks are inserted after a block.
// The number that tells two neighbouring blocks apart in their names goes on:
//
//   blocks "layers.1.wq" and "layers.2.wq", 3 blocks inserted after the first
//   copy 2 of "layers.1.wq"   layers.3.wq
//   "layers.2.wq"             layers.5.wq
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {

class LayerNumbers {
 public:
  // `names` has pairs of counterparts: a name in the block after which blocks are
  // inserted, and the one in the next block.
  LayerNumbers(const std::vector<std::pair<std::string, std::string>>& names,
               std::int64_t inserted);

  // Returns the name of copy number `copy`, counted from 1, of a tensor or module of
  // the block.
  std::string of_copy(std::string_view name, std::int64_t copy) const;
  // Returns the new name of a tensor or module of the old graph.
  std::string of_original(std::string_view name) const;

 private:
  // Calls `next(number)` for the number after the prefix.
  template <class Next>
  std::string renumbered(std::string_view name, const Next& next) const;

  struct Numbers {
    std::string prefix;      // "model.layers."
    std::int64_t first = 0;  // of the block
    std::int64_t step = 1;   // to the next block
  };
  std::optional<Numbers> numbers_;
  std::int64_t inserted_ = 0;
};

}  // namespace shardprop
