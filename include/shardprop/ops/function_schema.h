// `FunctionSchema` is the declaration of an operator: names, types and defaults
// of its arguments, its results, aliased and written tensors.
//
// It parses the text that PyTorch prints, so a custom operator is declared as
// torch.library declares it:
//
//   FunctionSchema::parse(
//       "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> "
//       "Tensor")
//
// name() is "aten.add.Tensor", as in exported graphs. An operator without an
// overload name has the overload `default`: "aten.mm.default".
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/argument.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `ArgumentType` is the type of an argument, or of the elements of a list.
enum class ArgumentType : std::uint8_t {
  kTensor,
  kInt,  // int, SymInt
  kFloat,
  kBool,
  kScalar,  // Scalar: int, float, bool or complex
  kString,
  kDType,
  kLayout,
  kMemoryFormat,
  kDevice,
  kGenerator,
  kOther,  // Storage, Stream, custom classes: stored but not interpreted
};

// `AliasInfo` is the `(a!)` after a type: arguments and results of one set
// share a buffer.
struct AliasInfo {
  std::string set;              // "a"; "*" for the wildcard set
  bool writes = false;          // "!"
  bool joins_wildcard = false;  // "a -> *": any later value may alias it
  friend bool operator==(const AliasInfo&, const AliasInfo&) = default;
};

// `ArgumentSchema` is the declaration of one argument or result.
struct ArgumentSchema {
  std::string name;  // empty for unnamed results
  ArgumentType type = ArgumentType::kTensor;
  std::string type_name = "Tensor";       // as written: SymInt, ScalarType, ...
  bool is_list = false;                   // Tensor[], int[2]
  bool is_optional = false;               // Tensor?, int[]?
  bool elements_optional = false;         // Tensor?[]
  std::optional<std::int64_t> list_size;  // int[2]: one int fills the list
  bool keyword_only = false;
  bool has_default = false;
  Argument default_value;
  std::optional<AliasInfo> alias;

  bool is_tensor() const { return type == ArgumentType::kTensor && !is_list; }
  bool is_tensor_list() const {
    return type == ArgumentType::kTensor && is_list;
  }
};

class FunctionSchema {
 public:
  // Error: kSchemaSyntax, which quotes the offending part.
  static Result<FunctionSchema> parse(std::string_view text,
                                      std::string_view tags = {});

  const std::string& name() const { return name_; }  // aten.add.Tensor
  std::string_view ns() const;                       // aten
  std::string_view base_name() const;                // add
  std::string_view overload() const;                 // Tensor; default
  const std::vector<ArgumentSchema>& arguments() const { return arguments_; }
  const std::vector<ArgumentSchema>& returns() const { return returns_; }
  std::optional<std::size_t> argument_index(std::string_view name) const;

  // Returns the torch.Tag names of the operator, and two markers of this
  // library: `composite`, and `view` (results alias an argument that is not
  // written).
  const std::vector<std::string>& tags() const { return tags_; }
  bool has_tag(std::string_view tag) const;

  // Returns whether it writes an argument: an in-place or out= overload.
  bool is_mutating() const;
  bool is_out() const;      // writes keyword-only arguments (out=)
  bool is_inplace() const;  // writes a positional argument
  bool is_view() const { return has_tag("view"); }
  // Returns whether it draws random numbers.
  bool is_random() const { return has_tag("nondeterministic_seeded"); }

 private:
  FunctionSchema() = default;

  std::string name_;
  std::vector<ArgumentSchema> arguments_;
  std::vector<ArgumentSchema> returns_;
  std::vector<std::string> tags_;
};

// Prints the declaration as PyTorch does.
std::string to_string(const FunctionSchema& schema);

}  // namespace shardprop
