// Pin: a layout that the user asks for by name.
//
//   Pin::parse("layers.*.wq.weight=R,S(0)")
//     pattern "layers.*.wq.weight", layout R,S(0)
//
// The pattern is a glob over the names of parameters, buffers, inputs (own and
// graph names, aliases too) and nodes (which pins what the node makes): `*` any
// run of characters, `?` any one.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/placement/layout.h>

#include <string>
#include <string_view>

namespace shardprop {

struct Pin {
  std::string pattern;
  Layout layout;

  // Errors: kPinSyntax; those of Layout::parse.
  static Result<Pin> parse(std::string_view text);
  friend bool operator==(const Pin&, const Pin&) = default;
};

std::string to_string(const Pin& pin);

// Whether the whole of `name` matches the glob.
bool glob_matches(std::string_view pattern, std::string_view name);

}  // namespace shardprop
