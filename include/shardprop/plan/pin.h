// Pin: a layout that the user asks for by name.
//
//   layers.*.wq.weight=R,S(0)               a parameter, between steps and as
//                                           its users take it
//   stored:*.weight=S(0),R                  between steps only: gathered for
//                                           use
//   used:*.weight phase:backward=R,R        as the backward pass takes it
//   op:aten.mm* module:*.mlp.*=S(0),S(1)    what these nodes make
//
// In front of the placements stand terms, separated by blanks, that must all
// match. A term is a glob (`*` any run of characters, `?` any one), over
//   name:    names of parameters, buffers and inputs (own and graph names,
//            aliases too), of nodes and of what they make; a bare glob is one
//   module:  the module of a node, or of a parameter: layers.0.attn.wq
//   op:      the operator of a node, as aten.mm.default, aten.mm or mm
//   phase:   forward or backward, of a node
// `stored:` and `used:` in front of the first pin inputs of the program only;
// of a use, module, operator and phase are those of the node that takes it.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/placement/layout.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

struct PinTerm {
  enum class Kind : std::uint8_t { kName, kModule, kOp, kPhase };
  Kind kind = Kind::kName;
  std::string glob;
  friend bool operator==(const PinTerm&, const PinTerm&) = default;
};

struct Pin {
  // Of an input of the program: how it lies between steps, how the nodes that
  // take it take it, or both.
  enum class Place : std::uint8_t { kBoth, kStored, kUsed };
  Place place = Place::kBoth;
  std::vector<PinTerm> terms;  // never empty
  Layout layout;

  bool pins_storage() const { return place != Place::kUsed; }
  bool pins_uses() const { return place != Place::kStored; }

  // Errors: kPinSyntax; those of Layout::parse.
  static Result<Pin> parse(std::string_view text);
  friend bool operator==(const Pin&, const Pin&) = default;
};

// Parses back.
std::string to_string(const Pin& pin);

// Whether the whole of `name` matches the glob.
bool glob_matches(std::string_view pattern, std::string_view name);

}  // namespace shardprop
