// What makes a form of a function: for the forms of this directory, which many
// rows share. A function that serves a row or two is custom().
#pragma once

#include <shardprop/ops/op_definition.h>

#include <string>

namespace shardprop {

// `text` is the line that the catalogue shows: "gather(dim)".
OpDefinition shared_form(std::string text, OpDefinition::Bind bind);

}  // namespace shardprop
