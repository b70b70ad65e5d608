// `IndexSpaces` binds the calls of a graph to their index spaces. Equal calls, such
// as those of repeated layers, are bound once.
//
//   IndexSpaces spaces(library);
//   const IndexSpace* space = spaces.of(node.op);
//   if (space != nullptr && runs_as_view(*space)) ...
#pragma once

#include <shardprop/ops/op_library.h>

#include <cstddef>
#include <optional>
#include <unordered_map>

namespace shardprop {

class IndexSpaces {
 public:
  // The library must outlive the object.
  explicit IndexSpaces(const OpLibrary& library) : library_(library) {}

  // Returns null if the operator has no rule for the call. The call must outlive
  // the object, and the space lives as long as the object.
  const IndexSpace* of(const OpSchema& call);

 private:
  struct Hash {
    std::size_t operator()(const OpSchema* call) const;
  };
  struct Equal {
    bool operator()(const OpSchema* a, const OpSchema* b) const;
  };

  const OpLibrary& library_;
  std::unordered_map<const OpSchema*, std::optional<IndexSpace>, Hash, Equal>
      spaces_;
};

}  // namespace shardprop
