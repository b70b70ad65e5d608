// `Program` is the content of an exported program's JSON, as plain data.
//
// It mirrors torch/_export/serde/schema.py (schema 8.x), without the parts that
// a graph of operators does not need. Texts are views of the JSON text or of
// `arena`, so the JSON text must outlive a Program.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/input_kind.h>

#include "io/json_reader.h"

#include <complex>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop::pt2 {

// A size or flag: a number, or an expression in SymPy's srepr and its value
// when the program was traced.
struct SymValue {
  std::string_view expression;  // no data: a constant
  std::optional<std::int64_t> value;

  bool is_symbolic() const { return expression.data() != nullptr; }
};

// A sym argument: the name of a scalar of the graph, or a constant.
struct SymName {
  std::string_view name;  // no data: a constant
  std::int64_t value = 0;

  bool is_name() const { return name.data() != nullptr; }
};

struct None {};
struct TensorName {
  std::string_view name;
};
// A name without data represents an absent tensor.
using TensorNames = std::vector<std::string_view>;
struct Text {
  std::string_view text;
};
struct TextList {
  std::vector<std::string_view> texts;
};
struct SymFloat {
  std::string_view name;
  double value = 0;
};
struct ScalarType {
  std::int64_t number = 0;
};
struct MemoryFormat {
  std::int64_t number = 0;
};
struct Layout {
  std::int64_t number = 0;
};
struct Device {
  std::string_view type;
  std::optional<std::int64_t> index;
};
struct GraphBody;
// The graph that a higher-order operator takes as an argument.
struct Subgraph {
  std::string_view name;
  std::shared_ptr<const GraphBody> body;
};
// `Foreign` is an argument that no declared operator takes: a script object, an
// operator as a value, or a dict. It has its kind ("as_operator"), its name,
// and the tensors in it.
struct Foreign {
  std::string_view kind;
  std::string_view name;
  TensorNames tensors;
};

using Argument =
    std::variant<None, TensorName, TensorNames, std::int64_t,
                 std::vector<std::int64_t>, double, std::vector<double>, Text,
                 TextList, bool, std::vector<bool>, SymName,
                 std::vector<SymName>, SymFloat, std::complex<double>,
                 ScalarType, MemoryFormat, Layout, Device, Subgraph, Foreign>;

struct NamedArgument {
  std::string_view name;  // empty: by position
  Argument value;
};

struct Tensor {
  std::string_view name;
  std::int64_t dtype = 0;
  std::vector<SymValue> sizes;
  std::vector<SymValue> strides;
};

struct NamedSym {
  std::string_view name;
  SymValue value;
};

struct Node {
  std::string_view target;
  std::string_view name;  // empty in older files
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  std::string_view stack_trace;
  std::string_view module_stack;
  std::string_view custom;
};

struct InputSpec {
  // Empty if the input is a script object, a token or a constant.
  std::optional<InputKind> role = InputKind::kUser;
  std::string_view value;  // its name in the graph; empty where it is no tensor
  std::string_view target;  // parameter_name and the like
  bool persistent = true;
};

enum class OutputRole : std::uint8_t {
  kUser,
  kLoss,
  kBufferMutation,
  kParameterMutation,
  kInputMutation,
  kParameterGradient,
  kInputGradient,
  kNoTensor,
};

struct OutputSpec {
  OutputRole role = OutputRole::kUser;
  std::string_view value;
  std::string_view target;
};

struct Range {
  std::string_view symbol;
  std::optional<std::int64_t> min;
  std::optional<std::int64_t> max;
};

struct Version {
  std::int64_t major = 0;
  std::int64_t minor = 0;
};

// The graph of a program, or of one of its regions, with its own names.
struct GraphBody {
  // Deques, because a growing vector would hold its elements twice.
  std::deque<Node> nodes;
  std::deque<Tensor> tensors;
  std::vector<NamedSym> scalars;
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::string_view device;  // the first of its tensors' but cpu and meta
};

struct Program : GraphBody {
  Version schema;
  std::string_view torch_version;
  std::vector<InputSpec> input_specs;
  std::vector<OutputSpec> output_specs;
  std::vector<Range> ranges;
  std::vector<std::string_view> guards;
  StringArena arena;
};

// Errors, each at a JSON path: kJsonSyntax, kTooDeep, kRepeatedKey, kFieldType,
// kFieldMissing, kUnknownVariant, kListTooLong, kSchemaVersion.
Result<Program> parse_program(std::string_view json);

}  // namespace shardprop::pt2
