// This file defines splits: one tensor becomes pieces along a dim.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"

#include <algorithm>
#include <string>
#include <vector>

namespace shardprop {
namespace {

std::vector<std::int64_t> equal_pieces(std::int64_t size, std::int64_t piece) {
  require(piece >= 0, "a piece of no size");
  if (size == 0) return {0};
  require(piece > 0, "a piece of no size");
  require((size - 1) / piece < kMostResults, "too many pieces");
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = size; left > 0; left -= piece) {
    sizes.push_back(std::min(left, piece));
  }
  return sizes;
}

std::vector<std::int64_t> split_sizes(const OpCall& call, std::int64_t size) {
  if (call.has("split_sizes")) return call.integers("split_sizes");
  if (call.overload() == "sizes") return call.integers("split_size");
  return equal_pieces(size, call.integer("split_size"));
}

std::vector<std::int64_t> chunk_sizes(const OpCall& call, std::int64_t size) {
  const std::int64_t chunks = call.integer("chunks");
  require(chunks > 0, "no chunks");
  if (size == 0) {
    require(chunks <= kMostResults, "too many pieces");
    return std::vector<std::int64_t>(index(chunks), 0);
  }
  return equal_pieces(size, size / chunks + (size % chunks != 0 ? 1 : 0));
}

// Returns `count` sizes that differ by at most one, larger ones first.
std::vector<std::int64_t> nearly_equal(std::int64_t size, std::int64_t count) {
  require(count > 0, "no pieces");
  require(count <= kMostResults, "too many pieces");
  std::vector<std::int64_t> sizes(index(count), size / count);
  for (std::int64_t i = 0; i < size % count; ++i) ++sizes[index(i)];
  return sizes;
}

// Returns the sizes of the pieces before, between and after these positions,
// which count as in slices.
std::vector<std::int64_t> cut_at(const std::vector<std::int64_t>& places,
                                 std::int64_t size) {
  std::vector<std::int64_t> sizes;
  std::int64_t last = 0;
  for (const std::int64_t place : places) {
    const std::int64_t from_front = place < 0 ? place + size : place;
    const std::int64_t at = std::clamp<std::int64_t>(from_front, 0, size);
    if (at < last) call_not_stated("pieces that overlap are not stated");
    sizes.push_back(at - last);
    last = at;
  }
  sizes.push_back(size - last);
  return sizes;
}

std::vector<std::int64_t> tensor_split_sizes(const OpCall& call,
                                             std::int64_t size) {
  if (call.has("indices")) return cut_at(call.integers("indices"), size);
  const std::int64_t sections = call.integer("sections");
  return nearly_equal(size, sections);
}

std::vector<std::int64_t> equal_sizes(const OpCall& call, std::int64_t size) {
  if (!call.has("indices")) {
    const std::int64_t sections = call.integer("sections");
    require(sections > 0 && size % sections == 0,
            "the pieces are not of one size");
  }
  return tensor_split_sizes(call, size);
}

// If a tensor holds the split positions, the sizes are those of the results.
std::vector<std::int64_t> stated_sizes(const OpCall& call, std::int64_t) {
  if (call.op().outputs.empty()) {
    call_not_stated("the sizes of the pieces depend on the data");
  }
  std::vector<std::int64_t> sizes;
  for (const TensorMeta& piece : call.op().outputs) {
    sizes.push_back(size_of(piece, call.dim("dim", piece.rank())));
  }
  return sizes;
}

// hsplit splits the second dim, or the only dim of a vector.
OpDefinition split_along(int dim, int least_rank) {
  return split_form(
      "split(" + std::to_string(dim) + ")",
      [=](const OpCall&, int rank) {
        require(rank >= least_rank, "the tensor has too few dims");
        return std::min(dim, rank - 1);
      },
      equal_sizes);
}

}  // namespace

void words_of_split(RuleWords& words) {
  words.form(split_form("split(dim)", split_sizes));
  words.form(split_form("split_copy(dim)", split_sizes, true));
  words.form(split_form("chunk(dim)", chunk_sizes));
  words.form(split_form("tensor_split(dim)", tensor_split_sizes));
  words.form(split_form("split_at(dim)", stated_sizes));
  words.form(split_along(1, 1));
  words.form(split_along(0, 2));
  words.form(split_along(2, 3));
}

void define_split(Family f) {
  f.add({"split", "split_with_sizes"}, cut_up("split(dim)").free());
  f.add({"unsafe_split", "unsafe_split_with_sizes"},
        cut_up("split(dim)").free());
  f.add("split_with_sizes_copy", cut_up("split_copy(dim)"));
  f.add({"chunk", "unsafe_chunk"}, cut_up("chunk(dim)").free());
  f.add({"tensor_split.sections", "tensor_split.indices"},
        cut_up("tensor_split(dim)").free());
  f.add("tensor_split.tensor_indices_or_sections",
        cut_up("split_at(dim)").free());
  f.add("hsplit", cut_up("split(1)").free());
  f.add("vsplit", cut_up("split(0)").free());
  f.add("dsplit", cut_up("split(2)").free());
}

}  // namespace shardprop
