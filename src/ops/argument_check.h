// Whether an argument is of its declared type, and its form there.
#pragma once

#include <shardprop/ops/function_schema.h>

#include <optional>

namespace shardprop {

// The argument as the declaration stores it (a lone int fills a sized list, an
// int given for a float becomes one); nullopt when its type does not fit.
std::optional<Argument> fit_argument(const ArgumentSchema& declared,
                                     Argument value);

// "int[]", "Tensor?": the declared type for messages.
std::string describe_type(const ArgumentSchema& declared);
// "a list of ints": what a value is, for messages.
std::string_view describe_value(const Argument& value);

}  // namespace shardprop
