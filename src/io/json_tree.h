// Parses a JSON text to a tree, for readers that need random access. JsonReader
// reads it, so the grammar, the depth limit and the errors are the same.
#pragma once

#include "io/linear_json.h"

#include <shardprop/base/result.h>

#include <string_view>
#include <utility>

namespace shardprop {

// `JsonTree` destroys its tree from the leaves up. The destructor of nlohmann's
// json allocates a list of all nodes and would terminate the process if memory
// is exhausted.
class JsonTree {
 public:
  explicit JsonTree(LinearJson root) : root_(std::move(root)) {}
  ~JsonTree() { take_apart(root_); }
  JsonTree(JsonTree&&) = default;
  JsonTree& operator=(JsonTree&&) = delete;

  const LinearJson& operator*() const { return root_; }
  const LinearJson* operator->() const { return &root_; }

  // Removes all children of the value. The recursion is as deep as the tree.
  static void take_apart(LinearJson& tree) noexcept;

 private:
  LinearJson root_;
};

// Takes time linear in the text, for any number of keys in an object. Errors,
// each at its path: kJsonSyntax, kTooDeep, kRepeatedKey, and kFieldType for
// integers beyond 64 bits.
Result<JsonTree> parse_json_tree(std::string_view text);

}  // namespace shardprop
