#include "io/pt2_decode_argument.h"
#include "io/pt2_program.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

namespace shardprop::pt2 {
namespace {

constexpr std::int64_t kSchemaMajor = 8;
// A bound on hostile input; every operator declares fewer than a hundred
// arguments.
constexpr std::size_t kMostArguments = 1024;

void missing(JsonReader& json, std::string_view field) {
  json.fail(ErrorCode::kFieldMissing,
            "the field `" + std::string(field) + "` is missing");
}

// Metadata values are strings; a value of another type is skipped.
std::string_view read_metadata_text(JsonReader& json) {
  if (json.peek() == JsonReader::Kind::kString) return json.string();
  json.skip();
  return {};
}

NamedArgument read_named_argument(JsonReader& json) {
  NamedArgument argument;
  bool has_value = false;
  json.object([&](std::string_view key) {
    if (key == "name") {
      argument.name = json.string();
    } else if (key == "arg") {
      argument.value = read_argument(json);
      has_value = true;
    } else {
      json.skip();
    }
  });
  if (json.ok() && !has_value) missing(json, "arg");
  return argument;
}

Node read_node(JsonReader& json) {
  Node node;
  json.object([&](std::string_view key) {
    if (key == "target") {
      node.target = json.string();
    } else if (key == "name") {
      if (!json.null()) node.name = json.string();
    } else if (key == "inputs") {
      json.array([&] {
        if (node.inputs.size() == kMostArguments) {
          json.fail(ErrorCode::kListTooLong,
                    "a node has more than " + std::to_string(kMostArguments) +
                        " arguments");
          return;
        }
        node.inputs.push_back(read_named_argument(json));
      });
      node.inputs.shrink_to_fit();
    } else if (key == "outputs") {
      json.array([&] { node.outputs.push_back(read_argument(json)); });
      node.outputs.shrink_to_fit();
    } else if (key == "metadata" && !json.null()) {
      json.members([&](std::string_view field) {
        if (field == "stack_trace") {
          node.stack_trace = read_metadata_text(json);
        } else if (field == "nn_module_stack") {
          node.module_stack = read_metadata_text(json);
        } else if (field == "custom") {
          node.custom = read_metadata_text(json);
        } else {
          json.skip();
        }
      });
    } else if (key != "metadata") {
      json.skip();
    }
  });
  if (json.ok() && node.target.empty()) missing(json, "target");
  return node;
}

std::vector<SymValue> read_sizes(JsonReader& json) {
  std::vector<SymValue> sizes;
  json.array([&] {
    // One more than a tensor may have, so that its own check reports it.
    constexpr std::size_t kMost = 65;
    const SymValue size = read_sym_value(json);
    if (sizes.size() < kMost) sizes.push_back(size);
  });
  sizes.shrink_to_fit();
  return sizes;
}

// `device` is the device of the earlier tensors; if it is empty, it becomes the
// device of this one.
void note_device(const Device& of, std::string_view& device) {
  if (device.empty() && of.type != "cpu" && of.type != "meta") device = of.type;
}

Tensor read_tensor(JsonReader& json, std::string_view name,
                   std::string_view& device) {
  Tensor tensor;
  tensor.name = name;
  std::array<bool, 3> has{};
  json.object([&](std::string_view key) {
    if (key == "dtype") {
      tensor.dtype = json.integer();
      has[0] = true;
    } else if (key == "sizes") {
      tensor.sizes = read_sizes(json);
      has[1] = true;
    } else if (key == "strides") {
      tensor.strides = read_sizes(json);
      has[2] = true;
    } else if (key == "device") {
      note_device(read_device(json), device);
    } else {
      json.skip();
    }
  });
  constexpr std::array<std::string_view, 3> kFields = {"dtype", "sizes",
                                                       "strides"};
  for (std::size_t i = 0; i < has.size(); ++i) {
    if (json.ok() && !has[i]) missing(json, kFields[i]);
  }
  return tensor;
}

void read_scalars(JsonReader& json, GraphBody& graph) {
  if (json.null()) return;
  json.members([&](std::string_view name) {
    graph.scalars.push_back({name, read_sym_value(json)});
  });
}

}  // namespace

void read_graph(JsonReader& json, GraphBody& graph) {
  bool has_nodes = false;
  json.object([&](std::string_view key) {
    if (key == "inputs") {
      json.array([&] { graph.inputs.push_back(read_argument(json)); });
    } else if (key == "outputs") {
      json.array([&] { graph.outputs.push_back(read_argument(json)); });
    } else if (key == "nodes") {
      has_nodes = true;
      json.array([&] { graph.nodes.push_back(read_node(json)); });
    } else if (key == "tensor_values") {
      json.members([&](std::string_view name) {
        graph.tensors.push_back(read_tensor(json, name, graph.device));
      });
    } else if (key == "sym_int_values" || key == "sym_bool_values") {
      read_scalars(json, graph);
    } else {
      json.skip();
    }
  });
  if (json.ok() && !has_nodes) missing(json, "nodes");
}

namespace {

struct InputVariant {
  std::string_view tag;
  std::optional<InputKind> role;
  std::string_view target;  // the field that names the target
};
constexpr InputVariant kInputVariants[] = {
    {"user_input", InputKind::kUser, ""},
    {"parameter", InputKind::kParameter, "parameter_name"},
    {"buffer", InputKind::kBuffer, "buffer_name"},
    {"tensor_constant", InputKind::kConstant, "tensor_constant_name"},
    {"custom_obj", std::nullopt, ""},
    {"token", std::nullopt, ""},
    {"constant_input", std::nullopt, ""},
};

struct OutputVariant {
  std::string_view tag;
  OutputRole role;
  std::string_view target;
};
constexpr OutputVariant kOutputVariants[] = {
    {"user_output", OutputRole::kUser, ""},
    {"loss_output", OutputRole::kLoss, ""},
    {"buffer_mutation", OutputRole::kBufferMutation, "buffer_name"},
    {"parameter_mutation", OutputRole::kParameterMutation, "parameter_name"},
    {"user_input_mutation", OutputRole::kInputMutation, "user_input_name"},
    {"gradient_to_parameter", OutputRole::kParameterGradient, "parameter_name"},
    {"gradient_to_user_input", OutputRole::kInputGradient, "user_input_name"},
    {"token", OutputRole::kNoTensor, ""},
};

// Reads the value of a spec: a full argument if it may be no tensor, else the
// bare {"name": ...} of a tensor.
std::string_view read_spec_value(JsonReader& json, bool whole_argument) {
  if (!whole_argument) return read_name(json);
  const Argument argument = read_argument(json);
  const auto* tensor = std::get_if<TensorName>(&argument);
  return tensor == nullptr ? std::string_view{} : tensor->name;
}

bool is_tensor(const InputSpec& spec) { return spec.role.has_value(); }
bool is_tensor(const OutputSpec& spec) {
  return spec.role != OutputRole::kNoTensor;
}
bool is_users(const InputSpec& spec) { return spec.role == InputKind::kUser; }
bool is_users(const OutputSpec& spec) { return spec.role == OutputRole::kUser; }

template <class Spec, class Variants>
Spec read_spec(JsonReader& json, const Variants& variants) {
  Spec spec;
  read_union(json, [&](std::string_view tag) {
    for (const auto& variant : variants) {
      if (variant.tag != tag) continue;
      spec.role = variant.role;
      if (!is_tensor(spec)) {
        json.skip();
        return;
      }
      json.object([&](std::string_view key) {
        if (key == "arg") {
          spec.value = read_spec_value(json, is_users(spec));
        } else if (!variant.target.empty() && key == variant.target) {
          spec.target = json.string();
        } else if (key == "persistent") {
          if constexpr (requires { spec.persistent; }) {
            spec.persistent = json.boolean();
          } else {
            json.skip();
          }
        } else {
          json.skip();
        }
      });
      if (!variant.target.empty() && spec.target.empty() && json.ok()) {
        missing(json, variant.target);
      }
      return;
    }
    unknown_variant(json, tag);
  });
  return spec;
}

void read_signature(JsonReader& json, Program& program) {
  json.object([&](std::string_view key) {
    if (key == "input_specs") {
      json.array([&] {
        program.input_specs.push_back(
            read_spec<InputSpec>(json, kInputVariants));
      });
    } else if (key == "output_specs") {
      json.array([&] {
        program.output_specs.push_back(
            read_spec<OutputSpec>(json, kOutputVariants));
      });
    } else {
      json.skip();
    }
  });
}

void read_graph_module(JsonReader& json, Program& program) {
  bool has_graph = false;
  bool has_signature = false;
  json.object([&](std::string_view key) {
    if (key == "graph") {
      has_graph = true;
      read_graph(json, program);
    } else if (key == "signature") {
      has_signature = true;
      read_signature(json, program);
    } else {
      json.skip();
    }
  });
  if (json.ok() && !has_graph) missing(json, "graph");
  if (json.ok() && !has_signature) missing(json, "signature");
}

std::optional<std::int64_t> read_bound(JsonReader& json) {
  if (json.null()) return std::nullopt;
  return json.integer();
}

void read_ranges(JsonReader& json, Program& program) {
  json.members([&](std::string_view symbol) {
    Range range;
    range.symbol = symbol;
    json.object([&](std::string_view key) {
      if (key == "min_val") {
        range.min = read_bound(json);
      } else if (key == "max_val") {
        range.max = read_bound(json);
      } else {
        json.skip();
      }
    });
    program.ranges.push_back(range);
  });
}

void read_version(JsonReader& json, Program& program) {
  json.object([&](std::string_view key) {
    if (key == "major") {
      program.schema.major = json.integer();
    } else if (key == "minor") {
      program.schema.minor = json.integer();
    } else {
      json.skip();
    }
  });
  if (json.ok() && program.schema.major != kSchemaMajor) {
    json.fail(ErrorCode::kSchemaVersion,
              "the program is of schema " +
                  std::to_string(program.schema.major) + "." +
                  std::to_string(program.schema.minor) + ", not " +
                  std::to_string(kSchemaMajor) + ".x",
              "export it again with PyTorch 2.5 or later");
  }
}

}  // namespace

Result<Program> parse_program(std::string_view text) {
  Program program;
  JsonReader json(text, program.arena);
  bool has_module = false;
  bool has_version = false;
  json.object([&](std::string_view key) {
    if (key == "graph_module") {
      has_module = true;
      read_graph_module(json, program);
    } else if (key == "schema_version") {
      has_version = true;
      read_version(json, program);
    } else if (key == "range_constraints" && !json.null()) {
      read_ranges(json, program);
    } else if (key == "guards_code" && !json.null()) {
      json.array([&] { program.guards.push_back(json.string()); });
    } else if (key == "torch_version" && !json.null()) {
      program.torch_version = json.string();
    } else if (key != "range_constraints" && key != "guards_code" &&
               key != "torch_version") {
      json.skip();
    }
  });
  json.end();
  if (json.ok() && !has_version) missing(json, "schema_version");
  if (json.ok() && !has_module) missing(json, "graph_module");
  if (json.error()) return fail(*json.error());
  return program;
}

}  // namespace shardprop::pt2
