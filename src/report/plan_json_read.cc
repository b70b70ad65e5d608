#include <shardprop/report/plan_json.h>

#include "io/json_tree.h"
#include "report/json_cursor.h"

#include <cmath>
#include <utility>

namespace shardprop {
namespace {

class Reader {
 public:
  explicit Reader(const JsonCursor& root) : root_(root) {}

  Plan read() {
    const JsonCursor graph = root_["graph"];
    plan_.graph_name = graph["name"].text();
    plan_.graph_hash = graph["hash"].text();
    plan_.graph_ops = static_cast<std::size_t>(graph["ops"].integer());
    plan_.mesh = mesh(root_["mesh"]["dims"]);
    plan_.topology = root_["topology"].text();
    read_options(root_["options"]);
    read_status();
    if (!root_["gap"].is_null()) root_["gap"].number();  // said, not believed
    plan_.solve_seconds = root_["solve_seconds"].number();
    if (root_.has("clash")) read_clash(root_["clash"]);
    for (const JsonCursor& op : root_["unsupported"].elements()) {
      plan_.unsupported.push_back(
          {op["op"].text(), op["count"].integer(1), op["reason"].text()});
    }
    for (const JsonCursor& guard : root_["guards"].elements()) {
      plan_.guards.push_back(
          {guard["condition"].text(), guard["origin"].text()});
    }
    read_memory(root_["memory"]);
    for (const auto& [name, value] : root_["values"].members()) {
      plan_.values.push_back({name, value["role"].text(), tensor(value), {}});
      if (value.has("state_placements")) {
        plan_.values.back().state_layout = layout(value["state_placements"]);
      }
    }
    num_copies_ = static_cast<std::int64_t>(root_["copies"].elements().size());
    for (const JsonCursor& entry : root_["copies"].elements()) {
      if (entry["id"].integer() !=
          static_cast<std::int64_t>(plan_.copies.size())) {
        entry["id"].fail("copies are numbered from 0 on");
      }
      plan_.copies.push_back(copy(entry));
    }
    for (const JsonCursor& entry : root_["nodes"].elements()) {
      plan_.nodes.push_back(node(entry));
    }
    for (const JsonCursor& entry : root_["outputs"].elements()) {
      plan_.outputs.push_back(
          {entry["kind"].text(),
           entry.has("target") ? entry["target"].text() : std::string(),
           input(entry)});
    }
    read_summary(root_["summary"]);
    return std::move(plan_);
  }

 private:
  static DeviceMesh mesh(const JsonCursor& dims) {
    std::vector<MeshDim> sizes;
    for (const JsonCursor& dim : dims.elements()) {
      sizes.push_back({dim["name"].text(), dim["size"].integer(1)});
    }
    auto mesh = DeviceMesh::create(sizes);
    if (mesh) return *std::move(mesh);
    dims.fail(mesh.error().message);
    return {};
  }

  void read_options(const JsonCursor& options) {
    for (const auto& [name, value] : options.members()) {
      if (name == "pin") continue;
      plan_.options.emplace_back(name, value.text());
    }
    for (const std::string& pin : options["pin"].texts()) {
      plan_.options.emplace_back("pin", pin);
    }
  }

  void read_status() {
    const JsonCursor status = root_["status"];
    if (const auto known = parse_plan_status(status.text())) {
      plan_.status = *known;
    } else {
      status.fail("unknown status");
    }
    plan_.objective_nanoseconds = maybe_nanoseconds(root_["objective_us"]);
    plan_.lower_bound_nanoseconds = root_["lower_bound_us"].nanoseconds();
    const bool planned = plan_.status == PlanStatus::kOptimal ||
                         plan_.status == PlanStatus::kFeasible;
    if (planned != plan_.has_plan()) {
      root_["objective_us"].fail("status and objective disagree");
    }
  }

  void read_clash(const JsonCursor& clash) {
    plan_.clash.pins = clash["pins"].texts();
    for (const JsonCursor& step : clash["memory"].elements()) {
      plan_.clash.memory.push_back({step["at"].integer(0, ops()),
                                    step["node"].text(),
                                    step["bytes_short"].integer()});
    }
    plan_.clash.irreducible = clash["irreducible"].boolean();
  }

  void read_memory(const JsonCursor& memory) {
    plan_.memory = {memory["peak_bytes_per_rank"].integer(),
                    memory["peak_at"].integer(0, ops()),
                    memory["parameter_bytes"].integer(),
                    memory["optimizer_bytes"].integer(),
                    {}};
    if (!memory["limit_bytes"].is_null()) {
      plan_.memory.limit_bytes = memory["limit_bytes"].integer();
    }
  }

  void read_summary(const JsonCursor& summary) {
    plan_.optimizer_nanoseconds = summary["optimizer_us"].nanoseconds();
    plan_.summary = summarize(plan_);
    PlanSummary said;
    said.compute_nanoseconds = summary["compute_us"].nanoseconds();
    said.communication_nanoseconds = summary["communication_us"].nanoseconds();
    said.hidden_nanoseconds = summary["hidden_us"].nanoseconds();
    said.bytes_per_rank = summary["bytes_per_rank"].integer();
    for (const CollectiveKind kind : kAllCollectiveKinds) {
      said.collectives[static_cast<std::size_t>(kind)] =
          summary["collectives"][to_string(kind)].integer();
    }
    if (!(said == plan_.summary)) {
      summary.fail("the totals are not the sums of what the plan lists");
    }
    const std::int64_t total = said.compute_nanoseconds +
                               said.communication_nanoseconds -
                               said.hidden_nanoseconds;
    if (plan_.has_plan() && *plan_.objective_nanoseconds != total) {
      root_["objective_us"].fail("not the sum of the totals");
    }
  }

  std::int64_t ops() const {
    return static_cast<std::int64_t>(plan_.graph_ops);
  }

  static std::optional<std::int64_t> maybe_nanoseconds(const JsonCursor& at) {
    if (at.is_null()) return std::nullopt;
    return at.nanoseconds();
  }

  Layout layout(const JsonCursor& at) const {
    auto layout = parse_layout(at.texts());
    if (layout && layout->mesh_ndim() == plan_.mesh.ndim()) {
      return *std::move(layout);
    }
    at.fail(layout ? "not one placement per mesh dim" : layout.error().message);
    return Layout::replicated(plan_.mesh.ndim());
  }

  PlannedTensor tensor(const JsonCursor& at) const {
    PlannedTensor out;
    for (const JsonCursor& size : at["shape"].elements()) {
      out.shape.push_back(size.integer());
    }
    const auto dtype = parse_dtype(at["dtype"].text());
    if (dtype) {
      out.dtype = *dtype;
    } else {
      at["dtype"].fail(dtype.error().message);
    }
    out.layout = layout(at["placements"]);
    if (out.layout.min_tensor_rank() > static_cast<int>(out.shape.size())) {
      at["placements"].fail("shards a dim that the tensor lacks");
    }
    return out;
  }

  PlannedStep step(const JsonCursor& at) const {
    PlannedStep out;
    if (const auto kind = parse_collective_kind(at["collective"].text())) {
      out.collective = *kind;
    } else {
      at["collective"].fail("unknown collective");
    }
    for (const JsonCursor& name : at["mesh_dims"].elements()) {
      if (const auto dim = plan_.mesh.find_dim(name.text())) {
        out.mesh_dims.push_back(*dim);
      } else {
        name.fail("the mesh has no such dim");
      }
    }
    out.bytes_per_rank = at["bytes_per_rank"].integer();
    out.nanoseconds = at["us"].nanoseconds();
    return out;
  }

  std::vector<PlannedStep> steps(const JsonCursor& at) const {
    std::vector<PlannedStep> out;
    for (const JsonCursor& element : at.elements()) {
      out.push_back(step(element));
    }
    return out;
  }

  PlannedCopy copy(const JsonCursor& at) const {
    PlannedCopy out;
    out.from = at["from"].text();
    out.src = layout(at["src"]);
    out.dst = layout(at["dst"]);
    if (at.has("source")) {
      out.source =
          static_cast<std::size_t>(at["source"].integer(0, num_copies_ - 1));
    }
    out.made_at = at["made_at"].integer(0, ops());
    out.freed_at = at["freed_at"].integer(out.made_at, ops());
    out.reason = at["reason"].text();
    if (const JsonCursor other = at["alternative_us"]; !other.is_null()) {
      out.alternative_nanoseconds = std::llround(other.number() * 1000);
    }
    out.hidden_nanoseconds = at["hidden_us"].nanoseconds();
    out.steps = steps(at["steps"]);
    return out;
  }

  PlannedInput input(const JsonCursor& at) const {
    PlannedInput out{at["from"].text(), layout(at["placements"]), {}};
    if (at.has("copy")) {
      out.copy = static_cast<std::size_t>(at["copy"].integer(
          0, static_cast<std::int64_t>(plan_.copies.size()) - 1));
    }
    return out;
  }

  PlannedNode node(const JsonCursor& at) const {
    PlannedNode out;
    out.name = at["id"].text();
    out.op = at["op"].text();
    out.module_path = at["module"].text();
    out.source = at["source"].text();
    const std::string phase = at["phase"].text();
    if (phase == to_string(Phase::kBackward)) {
      out.phase = Phase::kBackward;
    } else if (phase != to_string(Phase::kForward)) {
      at["phase"].fail("unknown phase");
    }
    out.compute_nanoseconds = at["compute_us"].nanoseconds();
    out.inside = steps(at["inside"]);
    for (const JsonCursor& element : at["outputs"].elements()) {
      out.outputs.push_back({element["name"].text(), tensor(element)});
    }
    for (const JsonCursor& element : at["inputs"].elements()) {
      out.inputs.push_back(input(element));
    }
    return out;
  }

  const JsonCursor& root_;
  std::int64_t num_copies_ = 0;
  Plan plan_;
};

}  // namespace

Result<Plan> parse_plan_json(std::string_view text) {
  const auto malformed = [](std::string why, std::string path) {
    return Error{ErrorCode::kPlanFile,
                 "the plan is malformed: " + std::move(why),
                 std::move(path),
                 {},
                 "save it again with --format json -o FILE"};
  };
  const auto json = parse_json_tree(text);
  if (!json) {
    Error error = malformed(json.error().message, json.error().location);
    error.notes = json.error().notes;
    return fail(std::move(error));
  }
  JsonCursor::Reading reading;
  const JsonCursor root(*json, reading);
  const std::string schema = root["schema"].text();
  if (!reading.problem && schema != kPlanSchema) {
    return fail(ErrorCode::kPlanSchemaVersion,
                "the plan is of schema `" + schema.substr(0, 80) + "`, not `" +
                    std::string(kPlanSchema) + "`",
                "make it again with this version");
  }
  Plan plan = Reader(root).read();
  root.refuse_unread();
  if (const auto& problem = reading.problem) {
    return fail(malformed(problem->message, "$" + problem->path));
  }
  return plan;
}

}  // namespace shardprop
