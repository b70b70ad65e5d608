#include "report/explanation_json.h"

#include <shardprop/base/error_code.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

namespace shardprop {
namespace {

// ---- writing

double reported_us(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1000;
}

void write_error(JsonText& json, ErrorCode code, std::string_view message) {
  json.key("error").open('{').member("code", code_string(code));
  json.member("message", message).close('}');
}

// Writes the figures of a note after its code.
class NoteMembers {
 public:
  explicit NoteMembers(JsonText& json) : json_(json) {}

  void operator()(const GraphNote& note) const {
    json_.member("text", note.text);
  }
  void operator()(const ReportedNote& note) const {
    json_.member("text", note.text);
  }
  void operator()(const SmallBatchNote& note) const {
    json_.member("batch", note.batch).member("ranks", note.ranks);
    json_.member("mesh_dim", note.mesh_dim).member("size", note.size);
    json_.member("lost_us", reported_us(note.lost_nanoseconds));
  }
  void operator()(const UnevenHeadsNote& note) const {
    json_.member("heads", note.heads);
    json_.member("mesh_dim", note.mesh_dim).member("size", note.size);
    json_.member("lost_us", reported_us(note.lost_nanoseconds));
  }
  void operator()(const BatchNormNote& note) const {
    json_.member("layers", note.layers).member("mesh_dims", note.mesh_dims);
    json_.member("forward_us", reported_us(note.forward_nanoseconds));
    json_.member("backward_us", reported_us(note.backward_nanoseconds));
  }
  void operator()(const ReplicatedOpsNote& note) const {
    json_.member("ops", note.ops);
    json_.member("compute_us", reported_us(note.compute_nanoseconds));
    json_.member("communication_us",
                 reported_us(note.communication_nanoseconds));
  }
  void operator()(const UnlikeLayersNote& note) const {
    json_.member("alike_us", reported_us(note.alike_nanoseconds));
  }
  void operator()(const EagerActivationsNote& /*note*/) const {}
  void operator()(const PipelineDimNote& note) const {
    json_.member("mesh_dim", note.mesh_dim).member("size", note.size);
  }
  void operator()(const LeftOutNote& note) const {
    json_.member("part", note.part);
    write_error(json_, note.code, note.message);
  }
  void operator()(const FailedPartNote& note) const {
    write_error(json_, note.code, note.message);
  }
  void operator()(const EarlierPlanNote& note) const {
    json_.member("graph", note.graph);
    json_.member("same_mesh_ndim", note.has_same_mesh_ndim);
    json_.member("operators", note.operators);
    json_.member("matched_operators", note.matched_operators);
    json_.member("tensors", note.tensors);
    json_.member("matched_tensors", note.matched_tensors);
    json_.member("led_to_plan", note.led_to_plan);
  }
  void operator()(const RecomputeRulesNote& note) const {
    json_.key("tried").list(
        note.tried, [&](const RecomputeRulesNote::Tried& tried) {
          json_.open('{').member("rule", tried.rule);
          json_.member("us", reported_us(tried.nanoseconds));
          json_.member("needed_bytes", tried.needed_bytes).close('}');
        });
  }

 private:
  JsonText& json_;
};

// ---- reading

std::optional<ErrorCode> parse_error_code(std::string_view text) {
  static constexpr ErrorCode kCodes[] = {
// NOLINTNEXTLINE(bugprone-macro-parentheses): an enumerator takes none.
#define SHARDPROP_ERROR_CODE(name, number, exit, meaning) ErrorCode::name,
#include <shardprop/base/error_codes.inc>
#undef SHARDPROP_ERROR_CODE
  };
  for (const ErrorCode code : kCodes) {
    if (code_string(code) == text) return code;
  }
  return std::nullopt;
}

std::pair<ErrorCode, std::string> read_error(const JsonCursor& at) {
  const auto code = parse_error_code(at["code"].text());
  if (!code) at["code"].fail("unknown code of an error");
  return {code.value_or(ErrorCode::kInvalidArgument), at["message"].text()};
}

std::string read_dim_name(const JsonCursor& at, const DeviceMesh& mesh) {
  std::string name = at.text();
  if (!mesh.find_dim(name)) at.fail("not a dim of the mesh");
  return name;
}

// Reads the figures of the note whose code is that of `T`.
class NoteReader {
 public:
  NoteReader(const JsonCursor& at, const DeviceMesh& mesh)
      : at_(at), mesh_(mesh) {}

  // Returns the note with the code `text`; empty if no type has it.
  std::optional<PlanNote> read(std::string_view text) const {
    return first_of<0>(text);
  }

 private:
  template <std::size_t kType>
  std::optional<PlanNote> first_of(std::string_view text) const {
    if constexpr (kType == std::variant_size_v<PlanNote>) {
      return std::nullopt;
    } else {
      std::variant_alternative_t<kType, PlanNote> note;
      if (code_of(note) != text) return first_of<kType + 1>(text);
      fill(note);
      return PlanNote(std::move(note));
    }
  }

  void fill(GraphNote& note) const { note.text = at_["text"].text(); }
  void fill(ReportedNote& note) const { note.text = at_["text"].text(); }
  void fill(SmallBatchNote& note) const {
    note.batch = at_["batch"].integer(1);
    note.ranks = at_["ranks"].integer(1);
    fill_dim(note);
    note.lost_nanoseconds = at_["lost_us"].nanoseconds();
  }
  void fill(UnevenHeadsNote& note) const {
    note.heads = at_["heads"].integers();
    fill_dim(note);
    note.lost_nanoseconds = at_["lost_us"].nanoseconds();
  }
  void fill(BatchNormNote& note) const {
    note.layers = at_["layers"].integer(1);
    for (const JsonCursor& dim : at_["mesh_dims"].elements()) {
      note.mesh_dims.push_back(read_dim_name(dim, mesh_));
    }
    note.forward_nanoseconds = at_["forward_us"].nanoseconds();
    note.backward_nanoseconds = at_["backward_us"].nanoseconds();
  }
  void fill(ReplicatedOpsNote& note) const {
    note.ops = at_["ops"].texts();
    note.compute_nanoseconds = at_["compute_us"].nanoseconds();
    note.communication_nanoseconds = at_["communication_us"].nanoseconds();
  }
  void fill(UnlikeLayersNote& note) const {
    note.alike_nanoseconds = at_["alike_us"].nanoseconds_more();
  }
  void fill(EagerActivationsNote& /*note*/) const {}
  void fill(PipelineDimNote& note) const { fill_dim(note); }
  void fill(LeftOutNote& note) const {
    note.part = at_["part"].text();
    std::tie(note.code, note.message) = read_error(at_["error"]);
  }
  void fill(EarlierPlanNote& note) const {
    note.graph = at_["graph"].text();
    note.has_same_mesh_ndim = at_["same_mesh_ndim"].boolean();
    note.operators = at_["operators"].integer();
    note.matched_operators = at_["matched_operators"].integer();
    note.tensors = at_["tensors"].integer();
    note.matched_tensors = at_["matched_tensors"].integer();
    note.led_to_plan = at_["led_to_plan"].boolean();
  }
  void fill(RecomputeRulesNote& note) const {
    for (const JsonCursor& tried : at_["tried"].elements()) {
      note.tried.push_back({tried["rule"].text(), tried["us"].nanoseconds(),
                            tried["needed_bytes"].integer()});
    }
  }
  void fill(FailedPartNote& note) const {
    std::tie(note.code, note.message) = read_error(at_["error"]);
  }

  template <class Note>
  void fill_dim(Note& note) const {
    note.mesh_dim = read_dim_name(at_["mesh_dim"], mesh_);
    note.size = at_["size"].integer(1);
  }

  const JsonCursor& at_;
  const DeviceMesh& mesh_;
};

CopyUser read_user(const JsonCursor& at) {
  const auto kind = parse_copy_user(at["kind"].text());
  if (!kind) at["kind"].fail("unknown kind of user");
  return {kind.value_or(CopyUser::Kind::kNode), at["name"].text()};
}

// Reads everything of a role but its modules.
PlanRole role_of(const JsonCursor& at, const DeviceMesh& mesh) {
  PlanRole role;
  if (const auto use = parse_role_use(at["use"].text())) {
    role.use = *use;
  } else {
    at["use"].fail("unknown use of a mesh dim");
  }
  role.mesh_dim = read_dim_name(at["mesh_dim"], mesh);
  role.permille = at["permille"].integer(0, 1000);
  return role;
}

}  // namespace

void write_reason(JsonText& json, const CopyReason& reason) {
  json.open('{').member("cause", to_string(reason.cause));
  if (reason.user) {
    json.key("user").open('{').member("kind", to_string(reason.user->kind));
    json.member("name", reason.user->name).close('}');
    if (reason.operand) json.member("operand", *reason.operand);
    json.member("wanted", to_strings(reason.wanted));
  }
  if (reason.other_users > 0) json.member("other_users", reason.other_users);
  if (const auto& other = reason.alternative) {
    json.key("alternative").open('{');
    if (other->layout) json.member("placements", to_strings(*other->layout));
    json.member("us", reported_us(other->nanoseconds)).close('}');
  }
  if (reason.pin) json.member("pin", to_string(*reason.pin));
  if (reason.recipe) json.member("recipe", to_string(*reason.recipe));
  if (reason.cause == CopyCause::kReported) json.member("text", reason.text);
  json.close('}');
}

CopyReason read_reason(const JsonCursor& at, const DeviceMesh& mesh) {
  CopyReason out;
  if (const auto cause = parse_copy_cause(at["cause"].text())) {
    out.cause = *cause;
  } else {
    at["cause"].fail("unknown cause of a copy");
    return out;
  }
  const bool is_reported = out.cause == CopyCause::kReported;
  if (is_reported) {
    out.text = at["text"].text();
  } else if (out.cause != CopyCause::kUnused) {
    out.user = read_user(at["user"]);
    if (out.user->kind == CopyUser::Kind::kNode) {
      out.operand = static_cast<std::size_t>(at["operand"].integer());
    }
    out.wanted = read_layout(at["wanted"], mesh);
  }
  if (at.has("other_users")) out.other_users = at["other_users"].integer(1);
  if (out.cause == CopyCause::kCost || at.has("alternative")) {
    const JsonCursor other = at["alternative"];
    out.alternative = {other["us"].nanoseconds_more(), {}};
    if (!is_reported) {
      out.alternative->layout = read_layout(other["placements"], mesh);
    }
  }
  if (out.cause == CopyCause::kPin) out.pin = read_pin(at["pin"]);
  if (out.cause == CopyCause::kRecipe) {
    out.recipe = read_recipe(at["recipe"]);
  }
  return out;
}

void write_note(JsonText& json, const PlanNote& note) {
  json.open('{').member("code", code_of(note));
  std::visit(NoteMembers(json), note);
  json.close('}');
}

PlanNote read_note(const JsonCursor& at, const DeviceMesh& mesh) {
  if (auto note = NoteReader(at, mesh).read(at["code"].text())) {
    return *std::move(note);
  }
  at["code"].fail("unknown code of a note");
  return GraphNote{};
}

void write_role(JsonText& json, const PlanRole& role) {
  json.open('{').member("use", to_string(role.use));
  json.member("mesh_dim", role.mesh_dim).member("permille", role.permille);
  json.key("modules").list(role.modules, [&](const RoleModule& module) {
    json.open('{').member("name", module.name);
    if (module.is_part) json.member("part", true);
    json.close('}');
  });
  json.close('}');
}

PlanRole read_role(const JsonCursor& at, const DeviceMesh& mesh) {
  PlanRole role = role_of(at, mesh);
  for (const JsonCursor& module : at["modules"].elements()) {
    role.modules.push_back({module["name"].text(),
                            module.has("part") && module["part"].boolean()});
  }
  return role;
}

PlanRole read_role_of_text(const JsonCursor& at, const DeviceMesh& mesh) {
  constexpr std::string_view kPart = "part of ";
  PlanRole role = role_of(at, mesh);
  for (const std::string& text : at["modules"].texts()) {
    const bool is_part = text.starts_with(kPart);
    role.modules.push_back(
        {is_part ? text.substr(kPart.size()) : text, is_part});
  }
  return role;
}

void write_conflict(JsonText& json, const PlanConflict& conflict) {
  json.open('{');
  if (conflict.recipe) json.member("recipe", to_string(*conflict.recipe));
  json.key("pins").list(conflict.pins,
                        [&](const Pin& pin) { json.text(to_string(pin)); });
  json.key("memory").list(conflict.memory, [&](const PlanConflict::Step& step) {
    json.open('{').member("at", step.at).member("node", step.node);
    json.member("bytes_short", step.bytes_short).close('}');
  });
  json.member("irreducible", conflict.irreducible).close('}');
}

PlanConflict read_conflict(const JsonCursor& at, std::int64_t end) {
  PlanConflict conflict;
  if (at.has("recipe")) conflict.recipe = read_recipe(at["recipe"]);
  for (const JsonCursor& pin : at["pins"].elements()) {
    conflict.pins.push_back(read_pin(pin));
  }
  for (const JsonCursor& step : at["memory"].elements()) {
    conflict.memory.push_back({step["at"].integer(0, end), step["node"].text(),
                               step["bytes_short"].integer()});
  }
  conflict.irreducible = at["irreducible"].boolean();
  return conflict;
}

Layout read_layout(const JsonCursor& at, const DeviceMesh& mesh) {
  auto layout = parse_layout(at.texts());
  if (layout && layout->mesh_ndim() == mesh.ndim()) return *std::move(layout);
  at.fail(layout ? "not one placement per mesh dim" : layout.error().message);
  return Layout::replicated(mesh.ndim());
}

Pin read_pin(const JsonCursor& at) {
  auto pin = Pin::parse(at.text());
  if (pin) return *std::move(pin);
  at.fail(pin.error().message);
  return {};
}

Recipe read_recipe(const JsonCursor& at) {
  auto recipe = Recipe::parse(at.text());
  if (recipe) return *std::move(recipe);
  at.fail(recipe.error().message);
  return {};
}

}  // namespace shardprop
