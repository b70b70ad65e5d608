// Exported programs of any size, as JSON text that read_graph() takes.
//
//   training_program(50'000): a residual network as torch.export traces it with
//     its loss and backward pass. One embedding is both input table and output
//     head; another is added in every layer.
//   fan_program(n): one value with n users, added up pairwise.
//   view_chain_program(n): n views of views of one value.
//   module_path_program(n): one operator in modules nested n deep.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {

class ProgramText {
 public:
  using Shape = std::vector<std::int64_t>;

  // Returns a tensor argument in JSON.
  static std::string tensor(std::string_view name) {
    return fmt::format(R"({{"as_tensor":{{"name":"{}"}}}})", name);
  }
  static std::string ints(const Shape& values) {
    return fmt::format(R"({{"as_ints":[{}]}})", fmt::join(values, ","));
  }
  static std::string number(std::int64_t value) {
    return fmt::format(R"({{"as_int":{}}})", value);
  }

  void parameter(std::string_view name, const Shape& shape) {
    input(name, shape, kF32);
    append(
        input_specs_,
        R"({{"parameter":{{"arg":{{"name":"{0}"}},"parameter_name":"{0}"}}}})",
        name);
  }
  void user_input(std::string_view name, const Shape& shape, bool integers) {
    input(name, shape, integers ? kI64 : kF32);
    append(input_specs_, R"({{"user_input":{{"arg":{}}}}})", tensor(name));
  }

  // Where the nodes that follow belong.
  void at(std::string_view module, bool backward) {
    metadata_ = fmt::format(
        R"("stack_trace":"","nn_module_stack":"L,{},torch.nn.Module",)"
        R"("custom":"{{\"phase\":\"{}\"}}")",
        module, backward ? "backward" : "forward");
  }

  // Adds a node and returns its name.
  std::string op(
      std::string_view target, const Shape& shape,
      std::initializer_list<std::pair<std::string_view, std::string>> args) {
    const std::string name = fmt::format("n{}", num_nodes_++);
    meta(name, shape, row_major(shape), kF32);
    std::string inputs;
    for (const auto& [argument, value] : args) {
      append(inputs, R"({{"name":"{}","arg":{},"kind":1}})", argument, value);
    }
    add_node(name, target, inputs);
    return name;
  }
  // Adds a matrix of this shape, a transposed view of `of`.
  std::string transposed(const Shape& shape, std::string_view of) {
    const std::string name = fmt::format("n{}", num_nodes_++);
    meta(name, shape, {1, shape[0]}, kF32);
    add_node(name, "permute.default",
             fmt::format(R"({{"name":"self","arg":{},"kind":1}},)"
                         R"({{"name":"dims","arg":{},"kind":1}})",
                         tensor(of), ints({1, 0})));
    return name;
  }

  void loss(std::string_view name) {
    append(outputs_, "{}", tensor(name));
    append(output_specs_, R"({{"loss_output":{{"arg":{{"name":"{}"}}}}}})",
           name);
  }
  void gradient(std::string_view name, std::string_view parameter) {
    append(outputs_, "{}", tensor(name));
    append(output_specs_,
           R"({{"gradient_to_parameter":{{"arg":{{"name":"{}"}},)"
           R"("parameter_name":"{}"}}}})",
           name, parameter);
  }
  void result(std::string_view name) {
    append(outputs_, "{}", tensor(name));
    append(output_specs_, R"({{"user_output":{{"arg":{}}}}})", tensor(name));
  }

  std::int64_t num_nodes() const { return num_nodes_; }

  std::string text() const {
    return fmt::format(
        R"({{"graph_module":{{"graph":{{"inputs":[{}],"outputs":[{}],)"
        R"("nodes":[{}],"tensor_values":{{{}}},"sym_int_values":{{}},)"
        R"("sym_bool_values":{{}},"is_single_tensor_return":false}},)"
        R"("signature":{{"input_specs":[{}],"output_specs":[{}]}},)"
        R"("module_call_graph":[]}},"opset_version":{{"aten":10}},)"
        R"("range_constraints":{{}},"schema_version":{{"major":8,"minor":20}},)"
        R"("verifiers":["ATEN"],"torch_version":"2.13.0","guards_code":[]}})",
        inputs_, outputs_, nodes_, metas_, input_specs_, output_specs_);
  }

 private:
  static constexpr int kF32 = 7;
  static constexpr int kI64 = 5;

  template <class... Args>
  static void append(std::string& list, fmt::format_string<Args...> format,
                     Args&&... args) {
    if (!list.empty()) list += ",\n";
    fmt::format_to(std::back_inserter(list), format,
                   std::forward<Args>(args)...);
  }

  void input(std::string_view name, const Shape& shape, int dtype) {
    meta(name, shape, row_major(shape), dtype);
    append(inputs_, "{}", tensor(name));
  }

  void add_node(std::string_view name, std::string_view target,
                std::string_view inputs) {
    append(nodes_,
           R"({{"target":"torch.ops.aten.{}","inputs":[{}],"outputs":[{}],)"
           R"("metadata":{{{}}},"is_hop_single_tensor_return":null,)"
           R"("name":"{}"}})",
           target, inputs, tensor(name), metadata_, name);
  }

  static Shape row_major(const Shape& shape) {
    Shape strides(shape.size());
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      strides[d] = stride;
      stride *= shape[d];
    }
    return strides;
  }

  void meta(std::string_view name, const Shape& shape, const Shape& strides,
            int dtype) {
    const auto list = [](const Shape& numbers) {
      std::string text;
      for (const std::int64_t n : numbers) append(text, "{}", number(n));
      return text;
    };
    append(metas_,
           R"("{}":{{"dtype":{},"sizes":[{}],"requires_grad":false,)"
           R"("device":{{"type":"cpu","index":null}},"strides":[{}],)"
           R"("storage_offset":{{"as_int":0}},"layout":7}})",
           name, dtype, list(shape), list(strides));
  }

  std::int64_t num_nodes_ = 0;
  std::string metadata_;
  std::string inputs_, outputs_, nodes_, metas_, input_specs_, output_specs_;
};

// The forward and backward pass of a network of so many layers that there are
// about `ops` operators.
class TrainingProgram {
 public:
  explicit TrainingProgram(std::int64_t ops)
      : layers_(std::max<std::int64_t>(1, (ops - kOutsideLayers) / kPerLayer)) {
  }

  std::string text() {
    program_.parameter("embedding", {kVocabulary, kHidden});
    program_.parameter("positions", {kVocabulary, kHidden});
    for (std::int64_t i = 0; i < layers_; ++i) {
      program_.parameter(up(i), {kInner, kHidden});
      program_.parameter(down(i), {kHidden, kInner});
    }
    program_.user_input("tokens", {kBatch, kLength}, true);
    program_.user_input("places", {kBatch, kLength}, true);
    program_.at("embedding", false);
    std::string x = look_up("embedding", "tokens");
    position_ = look_up("positions", "places");
    for (std::int64_t i = 0; i < layers_; ++i) x = forward(i, x);
    std::string g = head(x);
    std::string of_position;
    for (std::int64_t i = layers_; i-- > 0;) g = backward(i, g, of_position);
    program_.at("embedding", true);
    program_.gradient(add({kVocabulary, kHidden}, of_head_, table(g, "tokens")),
                      "embedding");
    program_.gradient(table(of_position, "places"), "positions");
    return program_.text();
  }

 private:
  using P = ProgramText;
  using Shape = P::Shape;
  static constexpr std::int64_t kBatch = 64;
  static constexpr std::int64_t kLength = 128;
  static constexpr std::int64_t kTokens = kBatch * kLength;
  static constexpr std::int64_t kHidden = 256;
  static constexpr std::int64_t kInner = 1024;
  static constexpr std::int64_t kVocabulary = 4096;
  static constexpr std::int64_t kPerLayer = 24;
  static constexpr std::int64_t kOutsideLayers = 16;

  struct Layer {
    std::string in, inner, up, down;  // two-dimensional each
    std::string relu;
  };

  static std::string up(std::int64_t layer) {
    return fmt::format("layers.{}.up", layer);
  }
  static std::string down(std::int64_t layer) {
    return fmt::format("layers.{}.down", layer);
  }

  std::string look_up(std::string_view weight, std::string_view indices) {
    return program_.op(
        "embedding.default", {kBatch, kLength, kHidden},
        {{"weight", P::tensor(weight)}, {"indices", P::tensor(indices)}});
  }
  std::string table(std::string_view gradient, std::string_view indices) {
    return program_.op("embedding_dense_backward.default",
                       {kVocabulary, kHidden},
                       {{"grad_output", P::tensor(gradient)},
                        {"indices", P::tensor(indices)},
                        {"num_weights", P::number(kVocabulary)},
                        {"padding_idx", P::number(-1)},
                        {"scale_grad_by_freq", R"({"as_bool":false})"}});
  }
  std::string add(const Shape& shape, std::string_view a, std::string_view b) {
    return program_.op("add.Tensor", shape,
                       {{"self", P::tensor(a)}, {"other", P::tensor(b)}});
  }
  std::string view(const Shape& shape, std::string_view of) {
    return program_.op("view.default", shape,
                       {{"self", P::tensor(of)}, {"size", P::ints(shape)}});
  }
  std::string transposed(const Shape& shape, std::string_view of) {
    return program_.transposed(shape, of);
  }
  std::string mm(const Shape& shape, std::string_view a, std::string_view b) {
    return program_.op("mm.default", shape,
                       {{"self", P::tensor(a)}, {"mat2", P::tensor(b)}});
  }

  std::string forward(std::int64_t i, const std::string& x) {
    program_.at(fmt::format("layers.{}", i), false);
    Layer layer;
    layer.in =
        view({kTokens, kHidden}, add({kBatch, kLength, kHidden}, x, position_));
    layer.up = transposed({kHidden, kInner}, up(i));
    layer.relu = program_.op(
        "relu.default", {kBatch, kLength, kInner},
        {{"self", P::tensor(view({kBatch, kLength, kInner},
                                 mm({kTokens, kInner}, layer.in, layer.up)))}});
    layer.inner = view({kTokens, kInner}, layer.relu);
    layer.down = transposed({kInner, kHidden}, down(i));
    const std::string out =
        view({kBatch, kLength, kHidden},
             mm({kTokens, kHidden}, layer.inner, layer.down));
    kept_.push_back(layer);
    return add({kBatch, kLength, kHidden}, x, out);
  }

  std::string head(const std::string& x) {
    program_.at("head", false);
    const std::string in = view({kTokens, kHidden}, x);
    const std::string logits =
        mm({kTokens, kVocabulary}, in,
           transposed({kHidden, kVocabulary}, "embedding"));
    program_.loss(
        program_.op("sum.default", {}, {{"self", P::tensor(logits)}}));
    program_.at("head", true);
    const std::string g =
        program_.op("ones_like.default", {kTokens, kVocabulary},
                    {{"self", P::tensor(logits)}});
    of_head_ =
        mm({kVocabulary, kHidden}, transposed({kVocabulary, kTokens}, g), in);
    return view({kBatch, kLength, kHidden},
                mm({kTokens, kHidden}, g, "embedding"));
  }

  std::string backward(std::int64_t i, const std::string& gradient,
                       std::string& of_position) {
    program_.at(fmt::format("layers.{}", i), true);
    const Layer& layer = kept_[static_cast<std::size_t>(i)];
    const std::string g = view({kTokens, kHidden}, gradient);
    program_.gradient(
        mm({kHidden, kInner}, transposed({kHidden, kTokens}, g), layer.inner),
        down(i));
    const std::string inner = view(
        {kTokens, kInner},
        program_.op("threshold_backward.default", {kBatch, kLength, kInner},
                    {{"grad_output",
                      P::tensor(view({kBatch, kLength, kInner},
                                     mm({kTokens, kInner}, g, down(i))))},
                     {"self", P::tensor(layer.relu)},
                     {"threshold", P::number(0)}}));
    program_.gradient(
        mm({kInner, kHidden}, transposed({kInner, kTokens}, inner), layer.in),
        up(i));
    const std::string back =
        view({kBatch, kLength, kHidden}, mm({kTokens, kHidden}, inner, up(i)));
    of_position = of_position.empty()
                      ? back
                      : add({kBatch, kLength, kHidden}, of_position, back);
    return add({kBatch, kLength, kHidden}, gradient, back);
  }

  std::int64_t layers_;
  ProgramText program_;
  std::string position_, of_head_;
  std::vector<Layer> kept_;
};

inline std::string training_program(std::int64_t ops) {
  return TrainingProgram(ops).text();
}

inline std::string fan_program(std::int64_t users) {
  ProgramText program;
  program.user_input("x", {64, 64}, false);
  program.at("fan", false);
  const auto relu = [&](std::string_view of) {
    return program.op("relu.default", {64, 64},
                      {{"self", ProgramText::tensor(of)}});
  };
  const std::string shared = relu("x");
  std::string sum = shared;
  for (std::int64_t i = 0; i < users; ++i) {
    sum = program.op("add.Tensor", {64, 64},
                     {{"self", ProgramText::tensor(sum)},
                      {"other", ProgramText::tensor(relu(shared))}});
  }
  program.result(sum);
  return program.text();
}

inline std::string view_chain_program(std::int64_t views) {
  ProgramText program;
  program.user_input("x", {64, 64}, false);
  program.at("views", false);
  std::string at = "x";
  for (std::int64_t i = 0; i < views; ++i) {
    const ProgramText::Shape shape =
        i % 2 == 0 ? ProgramText::Shape{4096} : ProgramText::Shape{64, 64};
    at = program.op("view.default", shape,
                    {{"self", ProgramText::tensor(at)},
                     {"size", ProgramText::ints(shape)}});
  }
  program.result(at);
  return program.text();
}

inline std::string module_path_program(std::int64_t depth) {
  ProgramText program;
  program.user_input("x", {64, 64}, false);
  std::string path = "a";
  for (std::int64_t i = 1; i < depth; ++i) path += ".a";
  program.at(path, false);
  program.result(program.op("relu.default", {64, 64},
                            {{"self", ProgramText::tensor("x")}}));
  return program.text();
}

}  // namespace shardprop
