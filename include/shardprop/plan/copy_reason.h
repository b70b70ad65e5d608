// `CopyReason` is the reason why a plan has a redistributed copy: its first
// user, the layout that the user reads, and why it reads no other layout.
//
//   mm_1 reads operand 1 as R,S(1); as S(0),S(1) the plan would cost 412 us more
//
//   user         {kNode, "mm_1"}
//   operand      1
//   wanted       R,S(1)
//   cause        kCost
//   alternative  {412'000, S(0),S(1)}
//
// `reasons_in_words()` of report prints reasons.
#pragma once

#include <shardprop/placement/layout.h>
#include <shardprop/plan/pin.h>
#include <shardprop/plan/recipe.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardprop {

// `CopyUser` is an operator, an output or an update that reads a copy.
struct CopyUser {
  enum class Kind : std::uint8_t {
    kNode,       // a node of the graph
    kGradient,   // the gradient of a parameter, which the program returns
    kUpdate,     // the new value of a parameter or buffer
    kResult,     // another result of the program
    kOptimizer,  // the optimizer's step for a parameter
    kNextStep,   // the next step, which reads a parameter
  };
  Kind kind = Kind::kNode;
  // The node; the parameter or buffer; for kResult the value.
  std::string name;
  friend bool operator==(const CopyUser&, const CopyUser&) = default;
};
// "node", "gradient", "update", "result", "optimizer", "next_step".
std::string_view to_string(CopyUser::Kind kind);
std::optional<CopyUser::Kind> parse_copy_user(std::string_view text);

// `CopyCause` says why the user of a copy reads no other layout.
enum class CopyCause : std::uint8_t {
  kCost,        // another layout costs more: CopyReason::alternative
  kShared,      // several users read the copy, so no alternative is priced
  kSource,      // users read only copies that are made from this one
  kPin,         // CopyReason::pin
  kRecipe,      // CopyReason::recipe
  kOnlyLayout,  // the user has no other layout in the space of plans
  kView,        // it is the data of another copy, read as another value
  kOptimizer,   // the optimizer's state and the parameter differ in layout
  kUnused,      // nothing reads the copy
  kReported,    // a file of schema 1 or 2 has only a text: CopyReason::text
};
// "cost", "shared", "source", "pin", "recipe", "only_layout", "view",
// "optimizer", "unused", "reported".
std::string_view to_string(CopyCause cause);
std::optional<CopyCause> parse_copy_cause(std::string_view text);

// `CopyAlternative` is the best plan without a copy that changes only the one
// user of the copy.
struct CopyAlternative {
  // The extra cost. It is negative if the plan is outside the space, because it
  // exceeds the memory limit or makes equal layers differ, or within the gap.
  std::int64_t nanoseconds = 0;
  // The layout in which the user would read the value. Empty with kReported.
  std::optional<Layout> layout;
  friend bool operator==(const CopyAlternative&,
                         const CopyAlternative&) = default;
};

struct CopyReason {
  CopyCause cause = CopyCause::kUnused;
  // The first user in the order of the program. With kSource it reads a copy of
  // the copy. Empty with kUnused and kReported.
  std::optional<CopyUser> user;
  // For a node: the index of its input (PlannedNode::inputs).
  std::optional<std::size_t> operand;
  Layout wanted;                 // the layout in which `user` reads the value
  std::int64_t other_users = 0;  // users of the copy besides `user`
  std::optional<CopyAlternative> alternative;
  std::optional<Pin> pin;
  std::optional<Recipe> recipe;
  std::string text;
  friend bool operator==(const CopyReason&, const CopyReason&) = default;
};

}  // namespace shardprop
