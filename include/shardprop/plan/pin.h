// `Pin` is a layout that the user requests by name.
//
//   layers.*.wq.weight=R,S(0)               a parameter, between steps and as
//                                           its consumers read it
//   stored:*.weight=S(0),R                  between steps only: gathered for
//                                           use
//   used:*.weight phase:backward=R,R        as the backward pass reads it
//   state:*.weight=S(0),S(0)                gradient and optimizer state
//   op:aten.mm* module:*.mlp.*=S(0),S(1)    the results of these nodes
//
// Terms precede the placements, separated by blanks, and must all match. A term
// is a glob (`*` matches any run of characters, `?` any one) over
//   name:    names of parameters, buffers and inputs (own names, graph names
//            and aliases), of nodes and of their results; the default
//   module:  the module of a node, or of a parameter: layers.0.attn.wq
//   op:      the operator of a node, as aten.mm.default, aten.mm or mm
//   phase:   forward or backward, of a node
// A leading `stored:`, `used:` or `state:` pins inputs of the program only. For a
// use, module, operator and phase are those of the node that reads it. `state:` is
// for parameters that an optimizer trains. The parameter itself then has the same
// layout, or one that is gathered from it after the update.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/placement/layout.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `PinTerm` is one condition of a pin: a kind and a glob.
struct PinTerm {
  enum class Kind : std::uint8_t { kName, kModule, kOp, kPhase };
  Kind kind = Kind::kName;
  std::string glob;
  friend bool operator==(const PinTerm&, const PinTerm&) = default;
};

struct Pin {
  // For an input of the program: its layout between steps (kStored), its layout
  // as nodes read it (kUsed), or both; or the layout of its gradient and of its
  // optimizer's state (kState).
  enum class Place : std::uint8_t { kBoth, kStored, kUsed, kState };
  Place place = Place::kBoth;
  std::vector<PinTerm> terms;  // never empty
  Layout layout;

  bool pins_buffer() const {
    return place == Place::kBoth || place == Place::kStored;
  }
  bool pins_uses() const {
    return place == Place::kBoth || place == Place::kUsed;
  }

  // Errors: kPinSyntax and those of Layout::parse.
  static Result<Pin> parse(std::string_view text);
  friend bool operator==(const Pin&, const Pin&) = default;
};

// Prints the pin; the text parses back.
std::string to_string(const Pin& pin);

}  // namespace shardprop
