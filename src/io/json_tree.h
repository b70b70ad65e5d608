// A whole JSON text as a tree, for readers that jump about in it. JsonReader
// reads it: as strictly, no deeper, and with its errors.
#pragma once

#include "io/linear_json.h"

#include <shardprop/base/result.h>

#include <string_view>
#include <utility>

namespace shardprop {

// A tree that is taken apart from its leaves on. The destructor of nlohmann's
// would allocate a list of all nodes, and end the process where memory is out.
class JsonTree {
 public:
  explicit JsonTree(LinearJson root) : root_(std::move(root)) {}
  ~JsonTree() { take_apart(root_); }
  JsonTree(JsonTree&&) = default;
  JsonTree& operator=(JsonTree&&) = delete;

  const LinearJson& operator*() const { return root_; }
  const LinearJson* operator->() const { return &root_; }

  // Leaves it without children. Recursion is as deep as the tree.
  static void take_apart(LinearJson& tree) noexcept;

 private:
  LinearJson root_;
};

// Time is linear in the text, however many keys an object has. Errors:
// kJsonSyntax, kTooDeep, kRepeatedKey, and kFieldType for integers beyond 64
// bits, each at its path.
Result<JsonTree> parse_json_tree(std::string_view text);

}  // namespace shardprop
