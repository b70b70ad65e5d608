// Parses a declaration of an operator as PyTorch prints it.
#pragma once

#include <shardprop/ops/function_schema.h>

#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

struct ParsedSchema {
  std::string name;  // aten.add.Tensor
  std::vector<ArgumentSchema> arguments;
  std::vector<ArgumentSchema> returns;
};

// Error: kSchemaSyntax.
Result<ParsedSchema> parse_schema(std::string_view text);

// Prints an argument or result as in a declaration: "Tensor(a!) self", "int
// n=1".
std::string to_string(const ArgumentSchema& argument);

// Returns the type with that name; kOther for an unknown name.
ArgumentType argument_type(std::string_view type_name);

// `EnumeratedDefault` is one default of an enumerated type, which PyTorch
// prints as its c10 number.
struct EnumeratedDefault {
  std::string_view type_name;
  std::int64_t number;
  Argument value;
};
const std::vector<EnumeratedDefault>& enumerated_defaults();

}  // namespace shardprop
