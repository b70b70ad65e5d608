// Reads a declaration of an operator as PyTorch prints it.
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

// An argument or result as a declaration has it: "Tensor(a!) self", "int n=1".
std::string to_string(const ArgumentSchema& argument);

// What the text of a type name stands for; kOther for all that is unknown.
ArgumentType argument_type(std::string_view type_name);

// Defaults of enumerated types are printed by their c10 number.
struct EnumeratedDefault {
  std::string_view type_name;
  std::int64_t number;
  Argument value;
};
const std::vector<EnumeratedDefault>& enumerated_defaults();

}  // namespace shardprop
