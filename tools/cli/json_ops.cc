#include "cli/json_ops.h"

#include "base/try.h"
#include "report/local_run_json.h"

#include <shardprop/strategy/op_cost.h>

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace shardprop::cli {
namespace {

using Json = nlohmann::ordered_json;

auto bad_line(const std::string& why) {
  return fail(ErrorCode::kBatchLine, why,
              R"(write {"op": "aten.mm.default", "mesh": [2], "args": […]})");
}

bool is_tensor(const Json& json) {
  return json.is_object() && json.contains("shape");
}

// Reads arguments and gathers the tensors among them.
class LineReader {
 public:
  Result<Argument> argument(const Json& json) {
    if (json.is_null()) return Argument(NoneArg{});
    if (json.is_boolean()) return Argument(json.get<bool>());
    if (json.is_number_integer()) return Argument(json.get<std::int64_t>());
    if (json.is_number()) return Argument(json.get<double>());
    if (json.is_string()) return text_argument(json.get<std::string>());
    if (is_tensor(json)) {
      SP_ASSIGN(const TensorArg tensor, this->tensor(json));
      return Argument(tensor);
    }
    if (json.is_array()) return list_argument(json);
    return bad_line("an argument is neither tensor, scalar nor list");
  }

  std::vector<TensorMeta> metas;
  std::vector<std::optional<Layout>> layouts;

 private:
  static Argument text_argument(const std::string& text) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (text == "Infinity") return kInfinity;
    if (text == "-Infinity") return -kInfinity;
    if (text == "NaN") return std::nan("");
    return text;
  }

  Result<TensorArg> tensor(const Json& json) {
    SP_ASSIGN(TensorMeta meta, tensor_meta(json));
    std::optional<Layout> layout;
    if (json.contains("placements")) {
      const Json& entries = json["placements"];
      std::vector<std::string> texts;
      for (const Json& entry : entries) {
        if (!entry.is_string()) return bad_line("a placement is no string");
        texts.push_back(entry.get<std::string>());
      }
      SP_ASSIGN(Layout parsed, parse_layout(texts));
      layout = std::move(parsed);
    }
    metas.push_back(std::move(meta));
    layouts.push_back(std::move(layout));
    return TensorArg{static_cast<std::int32_t>(metas.size()) - 1};
  }

  Result<Argument> list_argument(const Json& json) {
    bool tensors = false;
    bool strings = !json.empty();
    bool bools = !json.empty();
    bool integers = true;
    for (const Json& element : json) {
      tensors = tensors || is_tensor(element);
      strings = strings && element.is_string();
      bools = bools && element.is_boolean();
      integers = integers && element.is_number_integer();
    }
    if (tensors) {
      std::vector<TensorArg> list;
      for (const Json& element : json) {
        if (element.is_null()) {
          list.push_back(TensorArg{});
          continue;
        }
        if (!is_tensor(element)) return bad_line("a list mixes its elements");
        SP_ASSIGN(const TensorArg one, tensor(element));
        list.push_back(one);
      }
      return Argument(std::move(list));
    }
    if (strings) return Argument(json.get<std::vector<std::string>>());
    if (bools) return Argument(json.get<std::vector<bool>>());
    if (integers) return Argument(json.get<std::vector<std::int64_t>>());
    std::vector<double> numbers;
    for (const Json& element : json) {
      if (!element.is_number()) return bad_line("a list mixes its elements");
      numbers.push_back(element.get<double>());
    }
    return Argument(std::move(numbers));
  }

 public:
  static Result<TensorMeta> tensor_meta(const Json& json) {
    const auto sizes = [](const Json& list) -> std::optional<Dims> {
      if (!list.is_array()) return std::nullopt;
      Dims out;
      for (const Json& size : list) {
        if (!size.is_number_integer()) return std::nullopt;
        out.push_back(size.get<std::int64_t>());
      }
      return out;
    };
    const auto shape = sizes(json["shape"]);
    if (!shape || !json.contains("dtype") || !json["dtype"].is_string()) {
      return bad_line("a tensor has no shape and dtype");
    }
    SP_ASSIGN(const DType dtype, parse_dtype(json["dtype"].get<std::string>()));
    if (!json.contains("strides")) return TensorMeta::contiguous(*shape, dtype);
    const auto strides = sizes(json["strides"]);
    if (!strides) return bad_line("strides are no list of integers");
    return TensorMeta::create(*shape, *strides, dtype);
  }
};

// JSON writes a dtype as text.
Result<Argument> as_declared(Argument value, const ArgumentSchema& declared) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || declared.type != ArgumentType::kDType) return value;
  SP_ASSIGN(const DType dtype, parse_dtype(*text));
  return Argument(dtype);
}

Result<DeviceMesh> parse_mesh(const Json& json) {
  if (json.is_string()) return DeviceMesh::parse(json.get<std::string>());
  std::string text;
  if (json.is_array()) {
    for (const Json& size : json) {
      text += (text.empty() ? "" : ",") + size.dump();
    }
  }
  return DeviceMesh::parse(text);
}

Json names_of(const DimIndices& mesh_dims, const DeviceMesh& mesh) {
  Json names = Json::array();
  for (const std::int32_t dim : mesh_dims) names.push_back(mesh.name(dim));
  return names;
}

DimIndices all_dims(const DeviceMesh& mesh) {
  DimIndices all;
  for (std::int32_t m = 0; m < mesh.ndim(); ++m) all.push_back(m);
  return all;
}

// The values of an argument on the ranks that differ in `dims` only.
Json values_json(const RankArgument& argument, const DimIndices& dims) {
  const DeviceMesh& mesh = argument.mesh();
  Coordinate at(static_cast<std::size_t>(mesh.ndim()));
  Json values = Json::array();
  while (true) {
    const std::vector<std::int64_t> row = argument.at(at);
    values.push_back(argument.is_list() ? Json(row) : Json(row.front()));
    std::size_t d = dims.size();
    while (d > 0) {
      std::int64_t& index = at[static_cast<std::size_t>(dims[d - 1])];
      if (++index < mesh.size(dims[d - 1])) break;
      index = 0;
      --d;
    }
    if (d == 0) return values;
  }
}

// A value a rank, or on larger meshes one for each rank of the mesh dims that
// it depends on.
Json short_values_json(const RankArgument& argument) {
  constexpr std::int64_t kMostListed = 4096;
  if (argument.mesh().size() <= kMostListed) {
    return values_json(argument, all_dims(argument.mesh()));
  }
  const DimIndices dims = argument.mesh_dims();
  return {{"mesh_dims", names_of(dims, argument.mesh())},
          {"values", values_json(argument, dims)}};
}

}  // namespace

double microseconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1000.0;
}

Result<OpLine> parse_op_line(const std::string& line,
                             const OpLibrary& library) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded()) return bad_line("the line is no JSON");
  if (!json.is_object() || !json.contains("op") || !json["op"].is_string() ||
      !json.contains("mesh")) {
    return bad_line("the line has no op and mesh");
  }
  OpLine out;
  SP_ASSIGN(out.mesh, parse_mesh(json["mesh"]));
  const auto name = json["op"].get<std::string>();
  auto function = library.find(name);
  if (!function) {
    return fail(ErrorCode::kUnknownOperator,
                "`" + name + "` is not a declared operator",
                library.suggest(name));
  }
  LineReader reader;
  std::vector<GivenArgument> given;
  for (const Json& value : json.value("args", Json::array())) {
    SP_ASSIGN(Argument argument, reader.argument(value));
    if (given.size() < function->arguments().size()) {
      SP_ASSIGN(argument, as_declared(std::move(argument),
                                      function->arguments()[given.size()]));
    }
    given.push_back({"", std::move(argument)});
  }
  // Read in declared order, so that operands and layouts count alike.
  const Json kwargs = json.value("kwargs", Json::object());
  for (const auto& [key, value] : kwargs.items()) {
    if (!function->argument_index(key)) given.push_back({key, NoneArg{}});
  }
  for (const ArgumentSchema& declared : function->arguments()) {
    if (!kwargs.contains(declared.name)) continue;
    SP_ASSIGN(Argument read, reader.argument(kwargs[declared.name]));
    SP_ASSIGN(Argument argument, as_declared(std::move(read), declared));
    given.push_back({declared.name, std::move(argument)});
  }
  SP_ASSIGN(OpSchema op,
            make_op_schema(function, std::move(given), reader.metas));
  if (json.contains("outputs")) {
    for (const Json& output : json["outputs"]) {
      if (!is_tensor(output)) return bad_line("an output is no tensor");
      SP_ASSIGN(TensorMeta meta, LineReader::tensor_meta(output));
      op.outputs.push_back(std::move(meta));
    }
  } else {
    SP_ASSIGN(op.outputs, library.infer_outputs(op));
  }
  std::size_t placed = 0;
  for (const auto& layout : reader.layouts) placed += layout ? 1 : 0;
  if (placed != 0 && placed != reader.layouts.size()) {
    return bad_line("some tensors of the line have placements, others none");
  }
  for (std::size_t i = 0; placed != 0 && i < op.inputs.size(); ++i) {
    SP_CHECK(check_layout(*reader.layouts[i], out.mesh, op.inputs[i]));
    out.layouts.push_back(*std::move(reader.layouts[i]));
  }
  out.op = std::make_shared<const OpSchema>(std::move(op));
  return out;
}

Json outputs_json(std::span<const TensorMeta> metas,
                  std::span<const Layout> layouts) {
  Json list = Json::array();
  for (std::size_t i = 0; i < metas.size(); ++i) {
    Json shape = Json::array();
    for (const std::int64_t size : metas[i].shape()) shape.push_back(size);
    list.push_back({{"shape", std::move(shape)},
                    {"dtype", to_string(metas[i].dtype())},
                    {"placements", to_strings(layouts[i])}});
  }
  return list;
}

Json rank_arguments_json(std::span<const RankArgument> arguments) {
  Json out = Json::object();
  for (const RankArgument& argument : arguments) {
    out[argument.name()] = values_json(argument, all_dims(argument.mesh()));
  }
  return out;
}

Json strategy_json(const LocalContext& context, const Topology& topology) {
  Json out;
  const auto layouts_json = [&](const InlineVector<LayoutId, 4>& ids) {
    Json list = Json::array();
    for (const LayoutId id : ids) {
      list.push_back(to_strings(context.layouts[id]));
    }
    return list;
  };
  out["outputs"] = layouts_json(context.strategy.outputs);
  out["inputs"] = layouts_json(context.strategy.inputs);
  const LocalRun run = local_run(context);
  out["local_args"] = local_args_json<Json>(run, context.mesh);
  out["inside"] = Json::array();
  for (const CollectiveStep& step : collectives_inside(context, topology)) {
    out["inside"].push_back(
        {{"collective", to_string(step.kind)},
         {"mesh_dims", dim_names_json<Json>(step.mesh_dims, context.mesh)},
         {"bytes_per_rank", step.bytes_per_rank},
         {"us", microseconds(step.nanoseconds)}});
  }
  if (run.program) {
    out["local_program"] = local_program_json<Json>(*run.program, context.mesh);
  }
  return out;
}

}  // namespace shardprop::cli
