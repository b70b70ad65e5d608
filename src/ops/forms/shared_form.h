// `shared_form()` turns a function into a form, for the forms of this
// directory, which many definitions share. A function that serves one or two
// definitions is custom().
#pragma once

#include <shardprop/ops/op_definition.h>

#include <string>
#include <string_view>

namespace shardprop {

// `text` is the line that the catalogue shows: "gather(dim)".
OpDefinition shared_form(std::string text, OpDefinition::Bind bind);

// Returns the form with a change of the index space that the form implies.
OpDefinition with_implied(OpDefinition form, OpDefinition::Refine refine);
// Returns the form with the strides of results that the form implies.
OpDefinition with_implied_strides(OpDefinition form,
                                  OpDefinition::StridesOf strides);

// Returns the arguments of a form that takes one argument and a number of
// results: "(dim)", "(dim,2)", "()" or "(2)".
inline std::string results_text(std::string_view argument, int results) {
  std::string text = "(" + std::string(argument);
  if (results != 1) {
    if (!argument.empty()) text += ',';
    text += std::to_string(results);
  }
  return text + ")";
}

}  // namespace shardprop
