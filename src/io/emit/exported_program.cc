#include "io/emit/exported_program.h"

#include "io/emit/json_text.h"
#include "io/pt2_values.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

namespace shardprop::emit {
namespace {

int place_of(ProgramInputKind kind) {
  switch (kind) {
    case ProgramInputKind::kParameter:
      return 0;
    case ProgramInputKind::kBuffer:
    case ProgramInputKind::kOptimizerState:
      return 1;
    case ProgramInputKind::kConstant:
      return 2;
    default:
      return 3;
  }
}

int place_of(const SpmdProgram& program, const ProgramOutput& output) {
  switch (output.kind) {
    case ProgramOutputKind::kUpdate: {
      const int written = place_of(program.inputs[*output.target].kind);
      return written == 0 ? 1 : written == 1 ? 0 : 2;
    }
    case ProgramOutputKind::kUser:
    case ProgramOutputKind::kLoss:
      return 3;
    case ProgramOutputKind::kGradient:
      return 4;
  }
  return 4;
}

template <class Place>
std::vector<std::size_t> ordered(std::size_t count, const Place& place) {
  std::vector<std::size_t> out(count);
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) {
    return place(a) < place(b);
  });
  return out;
}

std::int64_t scalar_type(DType dtype) {
  for (std::int64_t number = 1; number < 64; ++number) {
    if (pt2::dtype_of(number) == dtype) return number;
  }
  throw InternalError("a dtype that torch does not have");
}

std::int64_t memory_format(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {
      "unknown", "contiguous_format", "channels_last", "channels_last_3d",
      "preserve_format"};
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? 0 : found - kNames.begin();
}

std::int64_t layout_number(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames = {
      "unknown",    "sparse_coo", "sparse_csr", "sparse_csc",
      "sparse_bsr", "sparse_bsc", "_mkldnn",    "strided"};
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? 0 : found - kNames.begin();
}

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

  void meta(const TensorMeta& meta, bool requires_grad, std::string_view device,
            bool one_element = false) {
    json_.open('{').key("dtype").number(scalar_type(meta.dtype()));
    json_.key("sizes").open('[');
    for (const std::int64_t size : meta.shape()) integer(size);
    json_.close(']').key("requires_grad").boolean(requires_grad);
    json_.key("device").open('{').key("type").text(device);
    json_.key("index").null().close('}');
    json_.key("strides").open('[');
    for (const std::int64_t stride : meta.strides()) {
      integer(one_element ? 0 : stride);
    }
    json_.close(']').key("storage_offset").raw("{\"as_int\":0}");
    json_.key("layout").number(7).close('}');
  }

  JsonText& json() { return json_; }

 private:
  void integer(std::int64_t value) {
    json_.open('{').key("as_int").number(value).close('}');
  }
  const std::string& name(TorchId id) const { return torch_.graph[id].name; }

  void name_object(TorchId id) {
    json_.open('{').key("name").text(name(id)).close('}');
  }
  void tensor(TorchId id) {
    if (!id.valid()) {
      json_.raw("{\"as_none\":true}");
      return;
    }
    json_.open('{').key("as_tensor");
    name_object(id);
    json_.close('}');
  }

  void graph() {
    json_.open('{').key("inputs").open('[');
    for (const std::size_t i : input_order(program_)) tensor(torch_.inputs[i]);
    json_.close(']').key("outputs").open('[');
    for (const std::size_t o : output_order(program_)) {
      tensor(torch_.outputs[o]);
    }
    json_.close(']').key("nodes").open('[');
    for (const TorchCall& call : torch_.graph.calls()) node(call);
    json_.close(']').key("tensor_values").open('{');
    for (const TorchValue& value : torch_.graph.values()) {
      json_.key(value.name);
      meta(value.meta, false, device_);
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
      argument(given->second, declared);
      json_.key("kind").number(positional ? 1 : 2).close('}');
    }
    json_.close(']').key("outputs").open('[');
    outputs(call);
    json_.close(']').key("metadata");
    metadata(call);
    json_.key("is_hop_single_tensor_return").null();
    // Of several results each has its own name.
    const bool single = call.outputs.size() == 1 && call.outputs[0].valid() &&
                        !function.returns()[0].is_list;
    json_.key("name").text(single ? name(call.outputs[0]) : "");
    json_.close('}');
  }

  void outputs(const TorchCall& call) {
    const auto& returns = call.function->returns();
    if (returns.size() == 1 && returns[0].is_list) {
      tensors(call.outputs);
      return;
    }
    for (const TorchId id : call.outputs) tensor(id);
  }

  void tensors(const std::vector<TorchId>& ids) {
    json_.open('{').key("as_tensors").open('[');
    for (const TorchId id : ids) name_object(id);
    json_.close(']').close('}');
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

  void argument(const TorchArgument& argument, const ArgumentSchema& declared) {
    if (const auto* id = std::get_if<TorchId>(&argument)) return tensor(*id);
    if (const auto* list = std::get_if<std::vector<TorchId>>(&argument)) {
      if (!declared.elements_optional) return tensors(*list);
      json_.open('{').key("as_optional_tensors").open('[');
      for (const TorchId id : *list) tensor(id);
      json_.close(']').close('}');
      return;
    }
    std::visit([&](const auto& own) { value(own, declared); },
               std::get<Argument>(argument));
  }

  template <class Write>
  void tagged(std::string_view tag, const Write& write) {
    json_.open('{').key(tag);
    write();
    json_.close('}');
  }
  template <class List, class Write>
  void tagged_list(std::string_view tag, const List& list, const Write& write) {
    tagged(tag, [&] {
      json_.open('[');
      for (const auto& element : list) write(element);
      json_.close(']');
    });
  }

  void value(NoneArg, const ArgumentSchema&) {
    json_.raw("{\"as_none\":true}");
  }
  void value(bool held, const ArgumentSchema& declared) {
    if (declared.type == ArgumentType::kInt) {
      return value(std::int64_t{held}, declared);
    }
    tagged("as_bool", [&] { json_.boolean(held); });
  }
  void value(std::int64_t held, const ArgumentSchema& declared) {
    if (declared.is_list) {
      // A lone number fills the list.
      const auto count =
          static_cast<std::size_t>(declared.list_size.value_or(1));
      return value(std::vector<std::int64_t>(count, held), declared);
    }
    if (declared.type == ArgumentType::kFloat) {
      return value(static_cast<double>(held), declared);
    }
    tagged("as_int", [&] { json_.number(held); });
  }
  void value(double held, const ArgumentSchema&) {
    tagged("as_float", [&] { json_.real(held); });
  }
  void value(std::complex<double> held, const ArgumentSchema&) {
    tagged("as_complex", [&] {
      json_.open('{').key("real").real(held.real());
      json_.key("imag").real(held.imag()).close('}');
    });
  }
  void value(const std::string& held, const ArgumentSchema&) {
    tagged("as_string", [&] { json_.text(held); });
  }
  void value(DType held, const ArgumentSchema&) {
    tagged("as_scalar_type", [&] { json_.number(scalar_type(held)); });
  }
  void value(const NamedArg& held, const ArgumentSchema& declared) {
    if (declared.type == ArgumentType::kMemoryFormat) {
      tagged("as_memory_format",
             [&] { json_.number(memory_format(held.name)); });
    } else if (declared.type == ArgumentType::kLayout) {
      tagged("as_layout", [&] { json_.number(layout_number(held.name)); });
    } else if (declared.type == ArgumentType::kDevice) {
      tagged("as_device", [&] {
        json_.open('{').key("type").text(held.name).key("index").null();
        json_.close('}');
      });
    } else {
      value(held.name, declared);
    }
  }
  void value(TensorArg, const ArgumentSchema& declared) {
    value(NoneArg{}, declared);
  }
  void value(const std::vector<TensorArg>&, const ArgumentSchema& declared) {
    value(NoneArg{}, declared);
  }
  void value(const std::vector<std::int64_t>& held,
             const ArgumentSchema& declared) {
    if (declared.type == ArgumentType::kFloat) {
      return value(std::vector<double>(held.begin(), held.end()), declared);
    }
    if (declared.is_tensor_list()) return tensors({});
    tagged_list("as_ints", held, [&](std::int64_t one) { json_.number(one); });
  }
  void value(const std::vector<double>& held, const ArgumentSchema&) {
    tagged_list("as_floats", held, [&](double one) { json_.real(one); });
  }
  void value(const std::vector<bool>& held, const ArgumentSchema&) {
    tagged_list("as_bools", held, [&](bool one) { json_.boolean(one); });
  }
  void value(const std::vector<std::string>& held, const ArgumentSchema&) {
    tagged_list("as_strings", held,
                [&](const std::string& one) { json_.text(one); });
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
      case 0:
        json_.key("parameter").open('{').key("arg");
        name_object(id);
        json_.key("parameter_name").text(own);
        break;
      case 1:
        json_.key("buffer").open('{').key("arg");
        name_object(id);
        json_.key("buffer_name").text(own);
        json_.key("persistent").boolean(input.persistent);
        break;
      case 2:
        json_.key("tensor_constant").open('{').key("arg");
        name_object(id);
        json_.key("tensor_constant_name").text(own);
        break;
      default:
        json_.key("user_input").open('{').key("arg");
        tensor(id);
        break;
    }
    json_.close('}').close('}');
  }

  void output_spec(std::size_t o) {
    const ProgramOutput& output = program_.outputs[o];
    const TorchId id = torch_.outputs[o];
    json_.open('{');
    if (output.kind == ProgramOutputKind::kUser) {
      json_.key("user_output").open('{').key("arg");
      tensor(id);
    } else if (output.kind == ProgramOutputKind::kLoss) {
      json_.key("loss_output").open('{').key("arg");
      name_object(id);
    } else {
      target(output, id);
    }
    json_.close('}').close('}');
  }

  // Of a gradient, or of what an input becomes.
  void target(const ProgramOutput& output, TorchId id) {
    const ProgramInput& of = program_.inputs[*output.target];
    const std::string& own = program_.value(of.value).name;
    const std::string& argument = name(torch_.inputs[*output.target]);
    const int place = place_of(of.kind);
    const bool gradient = output.kind == ProgramOutputKind::kGradient;
    std::string tag =
        gradient ? "gradient_to_user_input" : "user_input_mutation";
    std::string key = "user_input_name";
    if (place == 0) {
      tag = gradient ? "gradient_to_parameter" : "parameter_mutation";
      key = "parameter_name";
    } else if (place == 1 && !gradient) {
      tag = "buffer_mutation";
      key = "buffer_name";
    }
    json_.key(tag).open('{').key("arg");
    name_object(id);
    json_.key(key).text(key == "user_input_name" ? argument : own);
  }

  // One flat tuple of tensors each way.
  void module_calls() {
    std::size_t inputs = 0;
    for (const ProgramInput& input : program_.inputs) {
      inputs += place_of(input.kind) == 3 ? 1 : 0;
    }
    std::size_t outputs = 0;
    for (const ProgramOutput& output : program_.outputs) {
      outputs += place_of(program_, output) == 3 ? 1 : 0;
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
};

}  // namespace

std::vector<std::size_t> input_order(const SpmdProgram& program) {
  return ordered(program.inputs.size(), [&](std::size_t i) {
    return place_of(program.inputs[i].kind);
  });
}

std::vector<std::size_t> output_order(const SpmdProgram& program) {
  return ordered(program.outputs.size(), [&](std::size_t o) {
    return place_of(program, program.outputs[o]);
  });
}

std::string exported_json(const SpmdProgram& program,
                          const TorchProgram& torch) {
  return Writer(program, torch).run();
}

PlaceholderWeights placeholder_weights(const SpmdProgram& program,
                                       const TorchProgram& torch) {
  PlaceholderWeights out;
  std::set<std::pair<bool, DType>> written;
  const auto config = [&](bool constants) {
    Writer writer(program, torch);
    JsonText& json = writer.json();
    json.open('{').key("config").open('{');
    for (const std::size_t i : input_order(program)) {
      const ProgramInput& input = program.inputs[i];
      const int place = place_of(input.kind);
      const bool constant = place == 2 || (place == 1 && !input.persistent);
      if (place == 3 || constant != constants) continue;
      const TensorMeta& meta = torch.graph.meta(torch.inputs[i]);
      const std::string file = std::string(constant ? "tensor_" : "weight_") +
                               std::to_string(scalar_type(meta.dtype()));
      json.key(program.value(input.value).name).open('{');
      json.key("path_name").text(file);
      json.key("is_param").boolean(place == 0);
      json.key("use_pickle").boolean(false).key("tensor_meta");
      writer.meta(meta, place == 0 && is_floating(meta.dtype()), "cpu", true);
      json.close('}');
      if (!written.emplace(constant, meta.dtype()).second) continue;
      out.files.emplace_back(
          (constant ? "data/constants/" : "data/weights/") + file,
          std::string(static_cast<std::size_t>(item_size(meta.dtype())), '\0'));
    }
    json.close('}').close('}');
    return json.take();
  };
  out.weights_config = config(false);
  out.constants_config = config(true);
  return out;
}

}  // namespace shardprop::emit
