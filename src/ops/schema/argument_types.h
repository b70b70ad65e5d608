// Lists the argument types of declarations by name, and the defaults of enumerations.
#pragma once

#include <shardprop/ops/function_schema.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// Returns the type with that name; kOther for an unknown name.
ArgumentType argument_type(std::string_view type_name);

// Returns whether PyTorch has the type, although it is not interpreted.
bool is_other_type(std::string_view name);
// Returns the help for an unknown type, which has the nearest name.
std::string help_for_type(std::string_view name);

// `EnumeratedDefault` is one default of an enumerated type, which PyTorch
// prints as its c10 number.
struct EnumeratedDefault {
  std::string_view type_name;
  std::int64_t number;
  Argument value;
};
const std::vector<EnumeratedDefault>& enumerated_defaults();

}  // namespace shardprop
