#include "cli/op_line.h"

#include "base/edit_distance.h"
#include "base/quantities.h"
#include "base/try.h"
#include "io/json_tree.h"
#include "ops/schema/operand_name.h"
#include "report/json_cursor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace shardprop::cli {
namespace {

using Json = LinearJson;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

// Returns an error at the place of the cursor.
tl::unexpected<Error> bad_line(const JsonCursor& at, std::string why,
                               std::string help = {}) {
  if (help.empty()) {
    help = R"(write {"op": "aten.mm.default", "mesh": [2], "args": […]})";
  }
  return fail(Error{ErrorCode::kBatchLine,
                    std::move(why),
                    "$" + at.path(),
                    {},
                    std::move(help)});
}

// Returns the value, or its error at the place of the cursor.
template <class T>
Result<T> placed(Result<T> value, const JsonCursor& at) {
  if (!value) return fail(std::move(value).error().at("$" + at.path()));
  return value;
}

// Every JSON object in a line is a tensor.
bool is_tensor(const Json& json) { return json.is_object(); }

Result<void> check_keys(const JsonCursor& object,
                        std::span<const std::string_view> known,
                        std::size_t needed) {
  if (!object.json().is_object()) return bad_line(object, "not an object");
  for (const auto& [key, value] : object.json().items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return bad_line(object, "unknown key `" + key.substr(0, 80) + "`",
                      did_you_mean(key, known));
    }
  }
  for (const std::string_view key : known.first(needed)) {
    if (!object.has(key)) {
      return bad_line(object, "`" + std::string(key) + "` is missing");
    }
  }
  return {};
}

// Reads arguments and gathers the tensors among them.
class LineReader {
 public:
  explicit LineReader(JsonCursor::Reading& reading) : reading_(reading) {}

  Result<Argument> argument(const JsonCursor& at) {
    const Json& json = at.json();
    if (json.is_null()) return Argument(NoneArg{});
    if (json.is_boolean()) return Argument(json.get<bool>());
    if (json.is_number_integer()) return Argument(json.get<std::int64_t>());
    if (json.is_number()) return Argument(json.get<double>());
    if (json.is_string()) return text_argument(json.get<std::string>());
    if (json.is_array()) return list_argument(at);
    SP_ASSIGN(const TensorArg tensor, this->tensor(at));
    return Argument(tensor);
  }

  Result<TensorMeta> tensor_meta(const JsonCursor& at) const {
    static constexpr std::string_view kKeys[] = {"shape", "dtype", "strides",
                                                 "placements"};
    SP_CHECK(check_keys(at, kKeys, 2));
    SP_ASSIGN(const Dims shape, integers(at["shape"], 0));
    SP_ASSIGN(const std::string name, text(at["dtype"]));
    SP_ASSIGN(const DType dtype, placed(parse_dtype(name), at["dtype"]));
    if (!at.has("strides")) {
      return placed(TensorMeta::contiguous(shape, dtype), at);
    }
    SP_ASSIGN(const Dims strides, integers(at["strides"], kLeast));
    return placed(TensorMeta::create(shape, strides, dtype), at);
  }

  // Returns an error for the first value that has another type than its place
  // requires.
  Result<void> check() const {
    if (!reading_.problem) return {};
    const auto& [path, message] = *reading_.problem;
    return fail(Error{
        ErrorCode::kBatchLine,
        message,
        "$" + path,
        {},
        R"(a tensor is {"shape": [4, 8], "dtype": "f32", "placements": ["R"]})"});
  }

  Result<Dims> integers(const JsonCursor& at, std::int64_t least) const {
    Dims out;
    for (const JsonCursor& size : at.elements()) {
      out.push_back(size.integer(least));
    }
    SP_CHECK(check());
    return out;
  }

  Result<std::string> text(const JsonCursor& at) const {
    std::string out = at.text();
    SP_CHECK(check());
    return out;
  }

  std::vector<TensorMeta> metas;
  std::vector<std::optional<Layout>> layouts;
  std::vector<JsonCursor> tensors;  // their places, for errors

  Result<Layout> layout(const JsonCursor& at) const {
    const std::vector<std::string> texts = at.texts();
    SP_CHECK(check());
    return placed(parse_layout(texts), at);
  }

  // Reads layouts of one tensor dim, of any size.
  Result<std::vector<FactorSharding>> factor_shardings(const JsonCursor& list,
                                                       const DeviceMesh& mesh) {
    const TensorMeta factor =
        TensorMeta::contiguous(Dims{1}, DType::kF32).value();
    std::vector<FactorSharding> out;
    for (const JsonCursor& at : list.elements()) {
      SP_ASSIGN(FactorSharding sharding, layout(at));
      SP_CHECK(placed(check_layout(sharding, mesh, factor), at));
      if (sharding.has_partial()) {
        return bad_line(at, "a factor is not partial",
                        "write R, S(0), SS(0,k)");
      }
      out.push_back(std::move(sharding));
    }
    SP_CHECK(check());
    return out;
  }

 private:
  static Argument text_argument(const std::string& text) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (text == "Infinity") return kInfinity;
    if (text == "-Infinity") return -kInfinity;
    if (text == "NaN") return std::nan("");
    return text;
  }

  Result<TensorArg> tensor(const JsonCursor& at) {
    SP_ASSIGN(TensorMeta meta, tensor_meta(at));
    std::optional<Layout> layout;
    if (at.has("placements")) {
      SP_ASSIGN(layout, this->layout(at["placements"]));
    }
    metas.push_back(std::move(meta));
    layouts.push_back(std::move(layout));
    tensors.push_back(at);
    return TensorArg{static_cast<std::int32_t>(metas.size()) - 1};
  }

  Result<Argument> list_argument(const JsonCursor& at) {
    const Json& json = at.json();
    const auto all = [&](auto&& is) {
      return std::all_of(json.begin(), json.end(), is);
    };
    const auto is_integer = [](const Json& e) { return e.is_number_integer(); };
    if (all(is_integer)) return Argument(json.get<std::vector<std::int64_t>>());
    if (all([](const Json& e) { return e.is_string(); })) {
      return Argument(json.get<std::vector<std::string>>());
    }
    if (all([](const Json& e) { return e.is_boolean(); })) {
      return Argument(json.get<std::vector<bool>>());
    }
    if (all([](const Json& e) { return e.is_number(); })) {
      return Argument(json.get<std::vector<double>>());
    }
    std::vector<TensorArg> list;
    for (const JsonCursor& element : at.elements()) {
      if (element.is_null()) {
        list.push_back(TensorArg{});
        continue;
      }
      if (!is_tensor(element.json())) {
        return bad_line(element, "a list mixes its elements",
                        "give a list of integers, numbers, bools, texts, or "
                        "of tensors and null");
      }
      SP_ASSIGN(const TensorArg one, tensor(element));
      list.push_back(one);
    }
    return Argument(std::move(list));
  }

  JsonCursor::Reading& reading_;
};

// JSON writes a dtype as text.
Result<Argument> as_declared(Argument value, const ArgumentSchema& declared) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || declared.type != ArgumentType::kDType) return value;
  SP_ASSIGN(const DType dtype, parse_dtype(*text));
  return Argument(dtype);
}

Result<DeviceMesh> parse_mesh(const JsonCursor& at, const LineReader& reader) {
  if (at.json().is_string()) {
    return placed(DeviceMesh::parse(at.json().get<std::string>()), at);
  }
  SP_ASSIGN(const Dims sizes, reader.integers(at, kLeast));
  std::string text;
  for (const std::int64_t size : sizes) {
    text += (text.empty() ? "" : ",") + std::to_string(size);
  }
  return placed(DeviceMesh::parse(text), at);
}

Result<std::vector<GivenArgument>> read_arguments(
    const JsonCursor& root, const FunctionSchema& function,
    LineReader& reader) {
  std::vector<GivenArgument> given;
  const auto& declared = function.arguments();
  const auto read = [&](const JsonCursor& at,
                        const ArgumentSchema* schema) -> Result<Argument> {
    SP_ASSIGN(Argument argument, reader.argument(at));
    if (schema == nullptr) return argument;
    return placed(as_declared(std::move(argument), *schema), at);
  };
  if (root.has("args")) {
    for (const JsonCursor& at : root["args"].elements()) {
      const bool known = given.size() < declared.size();
      SP_ASSIGN(Argument argument,
                read(at, known ? &declared[given.size()] : nullptr));
      given.push_back({"", std::move(argument)});
    }
  }
  if (root.has("kwargs")) {
    const JsonCursor kwargs = root["kwargs"];
    for (const auto& [key, at] : kwargs.members()) {
      if (!function.argument_index(key)) given.push_back({key, NoneArg{}});
    }
    // Arguments are read in declared order, so that operands and layouts have
    // the same indices.
    for (const ArgumentSchema& schema : declared) {
      if (!kwargs.has(schema.name)) continue;
      SP_ASSIGN(Argument argument, read(kwargs[schema.name], &schema));
      given.push_back({schema.name, std::move(argument)});
    }
  }
  SP_CHECK(reader.check());
  return given;
}

// Some dtypes differ between devices.
bool may_have_dtype(const OpLibrary& library, OpSchema op, std::size_t output,
                    DType dtype) {
  auto results = library.infer_results(op);
  if (!results) return true;
  set_results(op, *std::move(results));
  TensorMeta& meta = op.outputs[output];
  if (meta.dtype() == dtype) return true;
  const auto other = TensorMeta::create(meta.shape(), meta.strides(), dtype);
  if (!other) return false;
  meta = *other;
  return library.check_outputs(op).has_value();
}

// The library names the operand that does not fit. The user needs its path in
// the line.
Error at_path(Error error, const OpSchema& op, const LineReader& reader) {
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (error.location.empty() || error.location != operand_name(op, i)) {
      continue;
    }
    error.location = "$" + reader.tensors[i].path();
    break;
  }
  return error;
}

// The stated metas of the results must equal the inferred ones, if the library
// can infer them.
Result<std::vector<TensorMeta>> read_outputs(const JsonCursor& root,
                                             const OpSchema& op,
                                             const OpLibrary& library,
                                             const LineReader& reader) {
  auto inferred = library.infer_outputs(op);
  if (!root.has("outputs")) return inferred;
  const bool known = inferred.has_value();
  if (!known && inferred.error().code != ErrorCode::kNoShapeInference) {
    return inferred;
  }
  const JsonCursor list = root["outputs"];
  std::vector<TensorMeta> stated;
  for (const JsonCursor& at : list.elements()) {
    SP_ASSIGN(TensorMeta meta, reader.tensor_meta(at));
    const std::size_t i = stated.size();
    if (known && i < inferred->size()) {
      const TensorMeta& right = (*inferred)[i];
      if (meta.shape() != right.shape() ||
          !may_have_dtype(library, op, i, meta.dtype())) {
        return bad_line(at,
                        "the output is " + to_string(meta) +
                            " here, and by the arguments " + to_string(right),
                        "leave out `outputs`");
      }
      // If the line states no strides, the inferred ones apply.
      if (!at.has("strides")) meta = right;
    }
    stated.push_back(std::move(meta));
  }
  SP_CHECK(reader.check());
  if (known && stated.size() != inferred->size()) {
    return bad_line(list,
                    "the operator has " + counted(inferred->size(), "output") +
                        ", not " + std::to_string(stated.size()),
                    "leave out `outputs`");
  }
  return stated;
}

}  // namespace

Result<OpLine> parse_op_line(std::string_view line, const OpLibrary& library,
                             std::optional<std::string>& name) {
  auto json = parse_json_tree(line);
  if (!json) {
    Error error = std::move(json).error();
    error.code = ErrorCode::kBatchLine;
    // The place already has the line number of the file.
    constexpr std::string_view kOnlyLine = ", line 1";
    for (std::string& note : error.notes) {
      if (note.ends_with(kOnlyLine)) {
        note.resize(note.size() - kOnlyLine.size());
      }
    }
    if (error.help.empty()) {
      error.help = "write one JSON object a line, with `op`, `mesh` and `args`";
    }
    return fail(std::move(error));
  }
  JsonCursor::Reading reading;
  const JsonCursor root(**json, reading);
  if (root.json().is_object() && root.has("op") &&
      root["op"].json().is_string()) {
    name = root["op"].text();
  }
  static constexpr std::string_view kKeys[] = {
      "op", "mesh", "args", "kwargs", "outputs", "factor_shardings"};
  SP_CHECK(check_keys(root, kKeys, 2));
  LineReader reader(reading);
  SP_CHECK(reader.text(root["op"]));
  OpLine out;
  SP_ASSIGN(out.mesh, parse_mesh(root["mesh"], reader));
  auto function = library.find(*name);
  if (!function) {
    return fail(
        Error{ErrorCode::kUnknownOperator,
              "`" + name->substr(0, 80) + "` is not a declared operator",
              "$.op",
              {},
              library.suggest(name->substr(0, 80))});
  }
  SP_ASSIGN(std::vector<GivenArgument> given,
            read_arguments(root, *function, reader));
  SP_ASSIGN(OpSchema op,
            make_op_schema(function, std::move(given), reader.metas));
  auto outputs = read_outputs(root, op, library, reader);
  if (!outputs) return fail(at_path(std::move(outputs).error(), op, reader));
  op.outputs = *std::move(outputs);
  std::size_t placed_count = 0;
  for (const auto& layout : reader.layouts) placed_count += layout ? 1 : 0;
  for (std::size_t i = 0; placed_count != 0 && i < op.inputs.size(); ++i) {
    const JsonCursor& at = reader.tensors[i];
    if (!reader.layouts[i]) {
      return bad_line(
          at, "some tensors of the line have placements, this one has none",
          "give all of them placements, or none");
    }
    SP_CHECK(
        placed(check_layout(*reader.layouts[i], out.mesh, op.inputs[i]), at));
    out.layouts.push_back(*std::move(reader.layouts[i]));
  }
  if (root.has("factor_shardings")) {
    SP_ASSIGN(out.shardings,
              reader.factor_shardings(root["factor_shardings"], out.mesh));
  }
  out.op = std::make_shared<const OpSchema>(std::move(op));
  return out;
}

}  // namespace shardprop::cli
