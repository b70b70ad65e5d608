#include "io/pt2_arguments.h"

#include "base/index.h"
#include "base/try.h"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace shardprop::pt2 {
namespace {

std::string_view memory_format_name(std::int64_t number) {
  switch (number) {
    case 1:
      return "contiguous_format";
    case 2:
      return "channels_last";
    case 3:
      return "channels_last_3d";
    case 4:
      return "preserve_format";
    default:
      return "unknown";
  }
}

std::string_view layout_name(std::int64_t number) {
  static constexpr std::string_view kNames[] = {
      "unknown",    "sparse_coo", "sparse_csr", "sparse_csc",
      "sparse_bsr", "sparse_bsc", "_mkldnn",    "strided"};
  const bool known =
      number >= 0 && number < static_cast<std::int64_t>(std::size(kNames));
  return kNames[known ? index(number) : 0];
}

class Reader {
 public:
  // `carries_anything`: the operator is not interpreted, so arguments of any
  // type are read.
  Reader(const Values& values, const Scope& scope, const GraphBuilder& builder,
         bool carries_anything)
      : values_(values),
        scope_(scope),
        builder_(builder),
        carries_anything_(carries_anything) {}

  // Symbolic elements are recorded under `argument`.
  Result<shardprop::Argument> read(const Argument& value,
                                   std::size_t argument) {
    argument_ = argument;
    return std::visit([this](const auto& v) { return convert(v); }, value);
  }

  std::vector<ValueId> operands;
  std::vector<TensorMeta> metas;
  std::vector<SymbolicArg> symbolic;

 private:
  using Out = Result<shardprop::Argument>;

  Result<TensorArg> operand(std::string_view name) {
    const auto found = scope_.find(name);
    if (found == scope_.end()) {
      const std::string shown(name.substr(0, 80));
      if (values_.has_tensor(name)) {
        return fail(ErrorCode::kUsedBeforeMade,
                    "`" + shown + "` is used before it is made",
                    "nodes stand in the order in which they run; a graph has "
                    "no cycles");
      }
      return fail(ErrorCode::kDanglingName,
                  "`" + shown + "` stands for no tensor of the graph");
    }
    const TensorArg tensor{static_cast<std::int32_t>(operands.size())};
    operands.push_back(found->second);
    metas.push_back(builder_.meta(found->second));
    return tensor;
  }

  Result<std::int64_t> size(const SymName& name, std::size_t element) {
    SP_ASSIGN(Values::Scalar scalar, values_.scalar(name));
    if (scalar.expression) {
      symbolic.push_back({argument_, element, *std::move(scalar.expression)});
    }
    return scalar.value;
  }

  Out convert(const None&) { return NoneArg{}; }
  Out convert(const TensorName& tensor) { return operand(tensor.name); }
  Out convert(const TensorNames& names) {
    std::vector<TensorArg> list;
    list.reserve(names.size());
    for (const std::string_view name : names) {
      if (name.data() == nullptr) {
        list.emplace_back();
        continue;
      }
      SP_ASSIGN(const TensorArg tensor, operand(name));
      list.push_back(tensor);
    }
    return list;
  }
  Out convert(std::int64_t value) { return value; }
  Out convert(const std::vector<std::int64_t>& list) { return list; }
  Out convert(double value) { return value; }
  Out convert(const std::vector<double>& list) { return list; }
  Out convert(const Text& text) { return std::string(text.text); }
  Out convert(const TextList& list) {
    return std::vector<std::string>(list.texts.begin(), list.texts.end());
  }
  Out convert(bool value) { return value; }
  Out convert(const std::vector<bool>& list) { return list; }
  Out convert(const SymName& name) { return size(name, 0); }
  Out convert(const std::vector<SymName>& names) {
    std::vector<std::int64_t> list;
    list.reserve(names.size());
    for (const SymName& name : names) {
      SP_ASSIGN(const std::int64_t value, size(name, list.size()));
      list.push_back(value);
    }
    return list;
  }
  // A float that depends on data has no influence on shapes.
  Out convert(const SymFloat& value) {
    return value.name.data() != nullptr ? 1.0 : value.value;
  }
  Out convert(const std::complex<double>& value) { return value; }
  Out convert(const ScalarType& type) {
    const auto dtype = dtype_of(type.number);
    if (!dtype) {
      return fail(ErrorCode::kUnknownVariant,
                  "the dtype " + std::to_string(type.number) + " is not known");
    }
    return *dtype;
  }
  Out convert(const MemoryFormat& format) {
    return NamedArg{std::string(memory_format_name(format.number))};
  }
  Out convert(const Layout& layout) {
    return NamedArg{std::string(layout_name(layout.number))};
  }
  Out convert(const Device& device) {
    std::string name(device.type);
    if (device.index) name += ':' + std::to_string(*device.index);
    return NamedArg{std::move(name)};
  }
  Out convert(const Subgraph& graph) {
    if (!carries_anything_) {
      return fail(ErrorCode::kHigherOrderOp,
                  "an operator that is not a higher-order one takes a graph as "
                  "its argument");
    }
    return NamedArg{std::string(graph.name)};
  }
  Out convert(const Foreign& foreign) {
    if (!carries_anything_) {
      return fail(ErrorCode::kUnknownVariant, "arguments of kind " +
                                                  std::string(foreign.kind) +
                                                  " are not supported");
    }
    if (!foreign.tensors.empty()) return convert(foreign.tensors);
    return NamedArg{
        std::string(foreign.name.empty() ? foreign.kind : foreign.name)};
  }

  const Values& values_;
  const Scope& scope_;
  const GraphBuilder& builder_;
  bool carries_anything_;
  std::size_t argument_ = 0;
};

// Returns the position in the declaration of each argument of the node. Unknown
// names come last, so that make_op_schema reports them.
std::vector<std::size_t> declared_order(const Node& node,
                                        const FunctionSchema& function) {
  std::vector<std::size_t> place(node.inputs.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < place.size(); ++i) {
    const std::string_view name = node.inputs[i].name;
    place[i] = name.empty() ? next++
                            : function.argument_index(name).value_or(
                                  function.arguments().size());
  }
  std::vector<std::size_t> order(place.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return place[a] < place[b]; });
  return order;
}

}  // namespace

Result<ReadArguments> read_arguments(
    const Node& node, std::shared_ptr<const FunctionSchema> function,
    const Values& values, const Scope& scope, const GraphBuilder& builder) {
  // In the order of the declaration, in which OpSchema numbers operands.
  Reader reader(values, scope, builder, function->has_tag("undeclared"));
  std::vector<GivenArgument> given;
  given.reserve(node.inputs.size());
  std::size_t positional = 0;
  for (const std::size_t i : declared_order(node, *function)) {
    const NamedArgument& input = node.inputs[i];
    const std::size_t index =
        input.name.empty() ? positional++
                           : function->argument_index(input.name).value_or(0);
    auto value = reader.read(input.value, index);
    if (!value) {
      return fail(
          std::move(value).error().at("inputs[" + std::to_string(i) + "].arg"));
    }
    given.push_back({std::string(input.name), *std::move(value)});
  }
  ReadArguments out;
  SP_ASSIGN(out.op, make_op_schema(std::move(function), std::move(given),
                                   std::move(reader.metas)));
  out.inputs = std::move(reader.operands);
  out.symbolic = std::move(reader.symbolic);
  return out;
}

}  // namespace shardprop::pt2
