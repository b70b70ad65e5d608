// `shared_form()` turns a function into a form, for the forms of this
// directory, which many definitions share. A function that serves one or two
// definitions is custom().
#pragma once

#include <shardprop/ops/op_definition.h>

#include <string>

namespace shardprop {

// `text` is the line that the catalogue shows: "gather(dim)".
OpDefinition shared_form(std::string text, OpDefinition::Bind bind);

}  // namespace shardprop
