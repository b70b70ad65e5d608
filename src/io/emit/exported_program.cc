#include "io/emit/exported_program.h"

#include "io/emit/signature_order.h"
#include "io/emit/torch_json.h"
#include "io/json_text.h"
#include "io/pt2_values.h"

#include <algorithm>

namespace shardprop::emit {
namespace {

class Writer {
 public:
  Writer(const SpmdProgram& program, const TorchProgram& torch)
      : program_(program), torch_(torch) {
    const Argument device = device_of(program);
    device_ = std::get<NamedArg>(device).name;
  }

  std::string run() {
    json_.open('{').key("graph_module").open('{').key("graph");
    graph();
    json_.key("signature");
    signature();
    json_.key("module_call_graph");
    module_calls();
    json_.key("metadata").raw("{}");
    json_.key("treespec_namedtuple_fields").raw("{}").close('}');
    json_.key("opset_version").raw("{\"aten\":10}");
    json_.key("range_constraints").raw("{}");
    json_.key("schema_version").raw("{\"major\":8,\"minor\":20}");
    json_.key("verifiers").raw("[\"TRAINING\"]");
    json_.key("torch_version").text(std::string(torch_release()));
    json_.key("guards_code").raw("[]").close('}');
    return json_.take();
  }

 private:
  void graph() {
    json_.open('{').key("inputs").open('[');
    for (const std::size_t i : input_order(program_))
      torch_json_.tensor(torch_.inputs[i]);
    json_.close(']').key("outputs").open('[');
    for (const std::size_t o : output_order(program_)) {
      torch_json_.tensor(torch_.outputs[o]);
    }
    json_.close(']').key("nodes").open('[');
    for (const TorchCall& call : torch_.graph.calls()) node(call);
    json_.close(']').key("tensor_values").open('{');
    for (const TorchValue& value : torch_.graph.values()) {
      json_.key(value.name);
      write_meta(json_, value.meta, false, device_);
    }
    json_.close('}');
    json_.key("sym_int_values").raw("{}").key("sym_bool_values").raw("{}");
    json_.key("is_single_tensor_return").boolean(false);
    json_.key("custom_obj_values").raw("{}");
    json_.key("sym_float_values").raw("{}").close('}');
  }

  void node(const TorchCall& call) {
    const FunctionSchema& function = *call.function;
    json_.open('{').key("target").text("torch.ops." + function.name());
    json_.key("inputs").open('[');
    bool positional = true;
    for (const ArgumentSchema& declared : function.arguments()) {
      const auto given = std::find_if(
          call.args.begin(), call.args.end(),
          [&](const auto& arg) { return arg.first == declared.name; });
      if (given == call.args.end()) {
        positional = false;
        continue;
      }
      positional = positional && !declared.keyword_only;
      json_.open('{').key("name").text(declared.name).key("arg");
      torch_json_.argument(given->second, declared);
      json_.key("kind").number(positional ? 1 : 2).close('}');
    }
    json_.close(']').key("outputs").open('[');
    outputs(call);
    json_.close(']').key("metadata");
    metadata(call);
    json_.key("is_hop_single_tensor_return").null();
    // If a call has several results, each result has its own name.
    const bool single = call.outputs.size() == 1 && call.outputs[0].valid() &&
                        !function.returns()[0].is_list;
    json_.key("name").text(single ? torch_json_.name(call.outputs[0]) : "");
    json_.close('}');
  }

  void outputs(const TorchCall& call) {
    const auto& returns = call.function->returns();
    if (returns.size() == 1 && returns[0].is_list) {
      torch_json_.tensors(call.outputs);
      return;
    }
    // Numbers that the operator returns next to tensors keep their positions.
    // No node reads them, because calls contain their sizes as constants.
    std::size_t next = 0;
    for (const ArgumentSchema& returned : returns) {
      const bool tensor = returned.is_tensor() && next < call.outputs.size();
      torch_json_.tensor(tensor ? call.outputs[next++] : TorchId());
    }
  }

  void metadata(const TorchCall& call) {
    const ProgramNode& of = program_.nodes[call.node];
    JsonText custom;
    custom.open('{').key("phase").text(of.is_backward ? "backward" : "forward");
    custom.key("shardprop").open('{').key("node").text(of.name);
    if (call.copy) {
      custom.key("copy").number(static_cast<std::int64_t>(*call.copy));
    }
    custom.close('}').close('}');
    json_.open('{');
    if (!of.module_path.empty()) {
      json_.key("nn_module_stack")
          .text("L__self___" + of.module_path + "," + of.module_path +
                ",torch.nn.modules.module.Module");
    }
    json_.key("custom").text(custom.take()).close('}');
  }

  void signature() {
    json_.open('{').key("input_specs").open('[');
    for (const std::size_t i : input_order(program_)) input_spec(i);
    json_.close(']').key("output_specs").open('[');
    for (const std::size_t o : output_order(program_)) output_spec(o);
    json_.close(']').close('}');
  }

  void input_spec(std::size_t i) {
    const ProgramInput& input = program_.inputs[i];
    const TorchId id = torch_.inputs[i];
    const std::string& own = program_.value(input.value).name;
    json_.open('{');
    switch (place_of(input.kind)) {
      case InputPlace::kParameter:
        json_.key("parameter").open('{').key("arg");
        torch_json_.name_object(id);
        json_.key("parameter_name").text(own);
        break;
      case InputPlace::kBuffer:
        json_.key("buffer").open('{').key("arg");
        torch_json_.name_object(id);
        json_.key("buffer_name").text(own);
        json_.key("persistent").boolean(input.persistent);
        break;
      case InputPlace::kConstant:
        json_.key("tensor_constant").open('{').key("arg");
        torch_json_.name_object(id);
        json_.key("tensor_constant_name").text(own);
        break;
      case InputPlace::kUser:
        json_.key("user_input").open('{').key("arg");
        torch_json_.tensor(id);
        break;
    }
    json_.close('}').close('}');
  }

  void output_spec(std::size_t o) {
    const ProgramOutput& output = program_.outputs[o];
    const TorchId id = torch_.outputs[o];
    json_.open('{');
    if (output.kind == OutputKind::kUser) {
      json_.key("user_output").open('{').key("arg");
      torch_json_.tensor(id);
    } else if (output.kind == OutputKind::kLoss) {
      json_.key("loss_output").open('{').key("arg");
      torch_json_.name_object(id);
    } else {
      target(output, id);
    }
    json_.close('}').close('}');
  }

  // Writes the target of a gradient, or of the new value of an input.
  void target(const ProgramOutput& output, TorchId id) {
    const ProgramInput& of = program_.inputs[*output.target];
    const std::string& own = program_.value(of.value).name;
    const std::string& argument =
        torch_json_.name(torch_.inputs[*output.target]);
    const InputPlace place = place_of(of.kind);
    const bool gradient = output.kind == OutputKind::kGradient;
    std::string tag =
        gradient ? "gradient_to_user_input" : "user_input_mutation";
    std::string key = "user_input_name";
    if (place == InputPlace::kParameter) {
      tag = gradient ? "gradient_to_parameter" : "parameter_mutation";
      key = "parameter_name";
    } else if (place == InputPlace::kBuffer && !gradient) {
      tag = "buffer_mutation";
      key = "buffer_name";
    }
    json_.key(tag).open('{').key("arg");
    torch_json_.name_object(id);
    json_.key(key).text(key == "user_input_name" ? argument : own);
  }

  // The module takes one flat tuple of tensors and returns another.
  void module_calls() {
    std::size_t inputs = 0;
    for (const ProgramInput& input : program_.inputs) {
      inputs += place_of(input.kind) == InputPlace::kUser ? 1 : 0;
    }
    std::size_t outputs = 0;
    for (const ProgramOutput& output : program_.outputs) {
      const bool handed_back =
          output.kind == OutputKind::kUser || output.kind == OutputKind::kLoss;
      outputs += handed_back ? 1 : 0;
    }
    const auto tuple = [](std::size_t leaves) {
      std::string out =
          R"({"type": "builtins.tuple", "context": "null", "children_spec": [)";
      for (std::size_t i = 0; i < leaves; ++i) {
        out += i == 0 ? "" : ", ";
        out += R"({"type": null, "context": null, "children_spec": []})";
      }
      return out + "]}";
    };
    json_.open('[').open('{').key("fqn").text("").key("signature").open('{');
    json_.key("inputs").raw("[]").key("outputs").raw("[]");
    json_.key("in_spec").text(
        R"([1, {"type": "builtins.tuple", "context": "null", )"
        R"("children_spec": [)" +
        tuple(inputs) +
        R"(, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}])");
    json_.key("out_spec").text("[1, " + tuple(outputs) + "]");
    json_.key("forward_arg_names").null();
    json_.close('}').close('}').close(']');
  }

  const SpmdProgram& program_;
  const TorchProgram& torch_;
  std::string device_;
  JsonText json_;
  TorchJson torch_json_{json_, torch_.graph};
};

}  // namespace

std::string exported_json(const SpmdProgram& program,
                          const TorchProgram& torch) {
  return Writer(program, torch).run();
}

}  // namespace shardprop::emit
