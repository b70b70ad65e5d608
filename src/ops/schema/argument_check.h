// Checks whether an argument has its declared type, and converts it to that
// type.
#pragma once

#include <shardprop/ops/function_schema.h>

#include <optional>
#include <string>
#include <string_view>

namespace shardprop {

// Returns the argument as the declaration stores it: a lone int fills a sized
// list, and an int for a float becomes a float. Returns nullopt if its type
// does not fit.
std::optional<Argument> fit_argument(const ArgumentSchema& declared,
                                     Argument value);

// Returns whether the default of the argument has its declared type. Numbers of
// enumerations, such as `Layout? layout=0`, are accepted.
bool fits_as_default(const ArgumentSchema& declared);
// Returns a default of the declared type for messages: "`n=1`".
std::string example_of(const ArgumentSchema& declared);

// Returns the declared type for messages: "int[]", "Tensor?".
std::string describe_type(const ArgumentSchema& declared);
// Describes a value for messages: "a list of ints".
std::string_view describe_value(const Argument& value);

}  // namespace shardprop
