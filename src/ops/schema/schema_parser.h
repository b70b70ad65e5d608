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

}  // namespace shardprop
