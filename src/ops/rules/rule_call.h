// `RuleCall` is one `name(a,b)` of a rule text: its form, or a modifier.
#pragma once

#include "ops/names/rule_names.h"
#include "ops/rules/rule_reader.h"

#include <shardprop/ops/op_definition.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

struct RuleCall {
  struct Given {
    std::string text;
    std::size_t at;  // column, from 0; of a text in quotes, its first letter
    bool is_quoted = false;  // a program
  };
  std::string name;
  std::size_t at = 0;
  std::vector<Given> arguments;
  // `end` is the column after the last argument, where `found_at_end` is: "`)`".
  std::size_t end = 0;
  std::string found_at_end = {};
};

// Applies a modifier, which may be a word of rule_words.h. Adds the names in its
// arguments to `names`, unless it is null. Error: kInvalidArgument, which names the
// column.
Result<OpDefinition> modified(OpDefinition rule, const RuleCall& call,
                              RuleNames* names);

// Checks a modifier of a rule against those before it. Error: kInvalidArgument, which
// names the column.
Result<void> check_repeated(const RuleCall& call,
                            const std::vector<RuleCall>& earlier);

// Returns the reduction of that name.
std::optional<ReduceOp> reduction_named(std::string_view text);

}  // namespace shardprop
