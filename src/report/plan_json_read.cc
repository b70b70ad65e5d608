#include <shardprop/report/plan_json.h>

#include "base/guard.h"
#include "base/index.h"
#include "io/json_tree.h"
#include "report/explanation_json.h"
#include "report/json_cursor.h"
#include "report/local_run_read.h"
#include "report/repeatable_options.h"
#include "report/topology_json.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

class Reader {
 public:
  // `schema` is the number of the file's schema.
  Reader(const JsonCursor& root, int schema)
      : root_(root), runnable_(schema > 1), is_typed_(schema > 2) {}

  Plan read() {
    const JsonCursor graph = root_["graph"];
    plan_.graph_name = graph["name"].text();
    plan_.graph_hash = graph["hash"].text();
    plan_.graph_ops = static_cast<std::size_t>(graph["ops"].integer());
    plan_.mesh = mesh(root_["mesh"]["dims"]);
    if (root_.has("topology_figures")) {
      plan_.topology = read_topology(root_["topology_figures"]);
    }
    const std::string topology = root_["topology"].text();
    if (root_.has("topology_figures") && plan_.topology.name != topology) {
      root_["topology"].fail("not the name that its figures have");
    }
    plan_.topology.name = topology;
    const std::vector<JsonCursor> nodes = root_["nodes"].elements();
    end_ = std::max(static_cast<std::int64_t>(plan_.graph_ops),
                    static_cast<std::int64_t>(nodes.size()));
    read_options(root_["options"]);
    read_status();
    if (!root_["gap"].is_null()) root_["gap"].number();  // said, not believed
    if (root_.has("overlap_multipliers")) {
      plan_.overlap_multipliers = root_["overlap_multipliers"].integers();
    }
    plan_.solve_seconds = root_["solve_seconds"].number();
    if (root_.has("clash")) {
      plan_.conflict = read_conflict(root_["clash"], end_);
      if (!is_typed_) add_recipe_of_options();
    }
    for (const JsonCursor& op : root_["unsupported"].elements()) {
      plan_.unsupported.push_back(
          {op["op"].text(), op["count"].integer(1), op["reason"].text()});
    }
    for (const JsonCursor& guard : root_["guards"].elements()) {
      plan_.guards.push_back(
          {guard["condition"].text(), guard["origin"].text()});
    }
    if (root_.has("roles")) read_roles(root_["roles"]);
    if (root_.has("work")) read_work(root_["work"]);
    if (root_.has("notes")) read_notes(root_["notes"]);
    if (root_.has("pins")) read_pins(root_["pins"]);
    if (root_.has("recipes")) read_recipes(root_["recipes"]);
    if (root_.has("procedures")) read_procedures(root_["procedures"]);
    read_memory(root_["memory"]);
    if (root_.has("kernels")) read_kernels(root_["kernels"]);
    for (const auto& [name, value] : root_["values"].members()) {
      plan_.values.push_back(
          {name,
           input_kind(value["role"]),
           tensor(value),
           {},
           value.has("reduced_once") && value["reduced_once"].boolean()});
      if (value.has("state_placements")) {
        plan_.values.back().state_layout = layout(value["state_placements"]);
      }
    }
    const std::vector<JsonCursor> copies = root_["copies"].elements();
    num_copies_ = static_cast<std::int64_t>(copies.size());
    for (const JsonCursor& entry : copies) {
      if (entry["id"].integer() !=
          static_cast<std::int64_t>(plan_.copies.size())) {
        entry["id"].fail("copies are numbered from 0 on");
      }
      plan_.copies.push_back(copy(entry));
    }
    check_copies(copies);
    for (const JsonCursor& entry : nodes) {
      if (entry["phase"].text() == kUpdatePhase) {
        plan_.updates.push_back(update(entry));
      } else if (plan_.updates.empty()) {
        plan_.nodes.push_back(node(entry));
      } else {
        entry["phase"].fail("a node behind those of the optimizer");
      }
    }
    check_reasons(copies);
    for (const JsonCursor& entry : root_["outputs"].elements()) {
      plan_.outputs.push_back(
          {output_kind(entry["kind"]),
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
      if (is_repeatable(name)) continue;
      plan_.options.emplace_back(name, value.text());
    }
    for (const std::string_view repeated : kRepeatableOptions) {
      if (!is_always_listed(repeated) && !options.has(repeated)) continue;
      for (const std::string& text : options[repeated].texts()) {
        plan_.options.emplace_back(repeated, text);
      }
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
    if (!runnable_ && plan_.status == PlanStatus::kOptimal) {
      plan_.status = PlanStatus::kFeasible;
    }
    plan_.is_proof_given = !runnable_;
    if (root_.has("proof")) root_["proof"].text();  // said, not believed
    if (root_.has("space")) plan_.space = space(root_["space"]);
    plan_.made_in =
        root_.has("made_in") ? space(root_["made_in"]) : plan_.space;
    if (root_.has("ran_out")) {
      if (const auto what = parse_ran_out(root_["ran_out"].text())) {
        plan_.ran_out = *what;
      } else {
        root_["ran_out"].fail("unknown");
      }
    }
    const bool planned = plan_.status == PlanStatus::kOptimal ||
                         plan_.status == PlanStatus::kFeasible;
    if (planned != plan_.has_plan()) {
      root_["objective_us"].fail("status and objective disagree");
    }
  }

  PlanSpace space(const JsonCursor& at) const {
    if (!at.has("most_runs")) return {};
    PlanSpace out{
        static_cast<int>(at["most_runs"].integer(0, plan_.mesh.ndim()))};
    if (at.has("joined_dims")) {
      const std::int64_t most = (std::int64_t{1} << plan_.mesh.ndim()) - 1;
      out.joined_dims =
          static_cast<std::uint32_t>(at["joined_dims"].integer(0, most));
    }
    return out;
  }

  // Earlier schemas have the recipe of a conflict only in the options.
  void add_recipe_of_options() {
    for (const auto& [name, value] : plan_.options) {
      if (name != "recipe") continue;
      plan_.conflict.recipe = read_recipe(root_["options"]["recipe"]);
    }
  }

  void read_roles(const JsonCursor& roles) {
    for (const JsonCursor& role : roles.elements()) {
      plan_.roles.push_back(is_typed_ ? read_role(role, plan_.mesh)
                                      : read_role_of_text(role, plan_.mesh));
    }
  }

  void read_notes(const JsonCursor& notes) {
    for (const JsonCursor& note : notes.elements()) {
      plan_.notes.push_back(is_typed_ ? read_note(note, plan_.mesh)
                                      : ReportedNote{note.text()});
    }
  }

  void read_work(const JsonCursor& work) {
    plan_.work.flops = work["flops"].integer();
    // Plans of earlier releases have no figure for MFU.
    if (work.has("model_flops")) {
      plan_.work.model_flops = work["model_flops"].integer();
    }
    plan_.work.tokens = work["tokens"].integer();
    plan_.work.samples = work["samples"].integer();
    plan_.work.peak_flops = work["peak_flops"].integer();
  }

  void read_recipes(const JsonCursor& recipes) {
    for (const JsonCursor& recipe : recipes.elements()) {
      PlanRecipe read;
      read.name = recipe["name"].text();
      if (const auto status = parse_plan_status(recipe["status"].text())) {
        read.status = *status;
      } else {
        recipe["status"].fail("unknown status");
      }
      read.objective_nanoseconds = maybe_nanoseconds(recipe["objective_us"]);
      read.peak_bytes = recipe["peak_bytes_per_rank"].integer();
      plan_.recipes.push_back(std::move(read));
    }
  }

  void read_procedures(const JsonCursor& procedures) {
    for (const JsonCursor& procedure : procedures.elements()) {
      Procedure& read = plan_.procedures.emplace_back();
      read.name = procedure["name"].text();
      read.enabled =
          !procedure.has("enabled") || procedure["enabled"].boolean();
      read.runs = static_cast<std::uint64_t>(procedure["runs"].integer());
      read.work = static_cast<std::uint64_t>(procedure["work"].integer());
      read.improvements =
          static_cast<std::uint64_t>(procedure["improvements"].integer());
      read.gap_closed = procedure["gap_closed_us"].nanoseconds();
    }
  }

  void read_pins(const JsonCursor& pins) {
    for (const JsonCursor& pin : pins.elements()) {
      plan_.pins.push_back({read_pin(pin["pin"]), pin["matched"].integer(),
                            pin["pinned"].integer()});
    }
  }

  void read_memory(const JsonCursor& memory) {
    plan_.memory.peak_bytes = memory["peak_bytes_per_rank"].integer();
    plan_.memory.peak_at = memory["peak_at"].integer(0, end_);
    plan_.memory.parameter_bytes = memory["parameter_bytes"].integer();
    plan_.memory.optimizer_bytes = memory["optimizer_bytes"].integer();
    if (runnable_) {
      plan_.memory.gradient_bytes = memory["gradient_bytes"].integer();
      plan_.memory.activation_bytes = memory["activation_bytes"].integer();
      plan_.memory.gathered_bytes = memory["gathered_bytes"].integer();
      plan_.memory.buffer_bytes = memory["buffer_bytes"].integer();
    }
    if (!memory["limit_bytes"].is_null()) {
      plan_.memory.limit_bytes = memory["limit_bytes"].integer();
    }
  }

  void read_kernels(const JsonCursor& kernels) {
    plan_.kernels.groups = kernels["groups"].integer(1);
    plan_.kernels.kernels = kernels["kernels"].integer();
    plan_.kernels.bytes = kernels["bytes_per_rank"].integer();
    plan_.kernels.nanoseconds = kernels["us"].nanoseconds();
    plan_.kernels.priced_nanoseconds = kernels["priced_us"].nanoseconds();
  }

  void read_summary(const JsonCursor& summary) {
    plan_.optimizer_nanoseconds = summary["optimizer_us"].nanoseconds();
    plan_.summary = summarize(plan_);
    PlanSummary said;
    said.compute_nanoseconds = summary["compute_us"].nanoseconds();
    said.communication_nanoseconds = summary["communication_us"].nanoseconds();
    said.overlapped_nanoseconds = summary["hidden_us"].nanoseconds();
    said.bytes_per_rank = summary["bytes_per_rank"].integer();
    for (const CollectiveKind kind : kAllCollectiveKinds) {
      said.collectives[index(kind)] =
          summary["collectives"][to_string(kind)].integer();
    }
    if (!(said == plan_.summary)) {
      summary.fail("the totals are not the sums of what the plan lists");
    }
    const std::int64_t total = said.compute_nanoseconds +
                               said.communication_nanoseconds -
                               said.overlapped_nanoseconds;
    if (plan_.has_plan() && *plan_.objective_nanoseconds != total) {
      root_["objective_us"].fail("not the sum of the totals");
    }
  }

  static InputKind input_kind(const JsonCursor& at) {
    const auto kind = parse_input_kind(at.text());
    if (kind && is_of_graph(*kind)) return *kind;
    at.fail("unknown role");
    return InputKind::kUser;
  }

  static OutputKind output_kind(const JsonCursor& at) {
    if (const auto kind = parse_output_kind(at.text())) return *kind;
    at.fail("unknown kind of output");
    return OutputKind::kUser;
  }

  static std::optional<std::int64_t> maybe_nanoseconds(const JsonCursor& at) {
    if (at.is_null()) return std::nullopt;
    return at.nanoseconds();
  }

  Layout layout(const JsonCursor& at) const {
    return read_layout(at, plan_.mesh);
  }

  static DType dtype(const JsonCursor& at) {
    const auto known = parse_dtype(at.text());
    if (known) return *known;
    at.fail(known.error().message);
    return DType::kF32;
  }

  PlannedTensor tensor(const JsonCursor& at) const {
    PlannedTensor out;
    for (const JsonCursor& size : at["shape"].elements()) {
      out.shape.push_back(size.integer());
    }
    out.dtype = dtype(at["dtype"]);
    out.layout = layout(at["placements"]);
    if (out.layout.min_tensor_rank() > static_cast<int>(out.shape.size())) {
      at["placements"].fail("shards a dim that the tensor lacks");
    }
    return out;
  }

  CollectiveStep step(const JsonCursor& at) const {
    CollectiveStep out;
    out.kind = read_collective_kind(at["collective"]);
    out.mesh_dims = read_mesh_dims(at["mesh_dims"], plan_.mesh);
    if (runnable_) {
      out.reduce_op = read_reduce_op(at);
      out.dtype = dtype(at["dtype"]);
      out.message_bytes = at["message_bytes"].integer();
    }
    out.bytes_per_rank = at["bytes_per_rank"].integer();
    out.nanoseconds = at["us"].nanoseconds();
    out.padded = at.has("padded") && at["padded"].boolean();
    out.staged = at.has("staged") && at["staged"].boolean();
    return out;
  }

  RedistributeStep move(const JsonCursor& at) const {
    RedistributeStep out{step(at), {}, {}};
    if (!runnable_) return out;
    out.src = layout(at["src"]);
    out.dst = layout(at["dst"]);
    out.peak_bytes = at["peak_bytes"].integer();
    return out;
  }

  PlannedCopy copy(const JsonCursor& at) const {
    PlannedCopy out;
    out.from = at["from"].text();
    out.src = layout(at["src"]);
    out.dst = layout(at["dst"]);
    const bool of_copy = runnable_ ? at["of"].is_integer() : at.has("source");
    if (of_copy) {
      const JsonCursor source = at[runnable_ ? "of" : "source"];
      out.source = static_cast<std::size_t>(source.integer(0, num_copies_ - 1));
      // The source is written twice, for readers of schema 1.
      if (at.has("source") && at["source"].integer() != source.integer()) {
        at["source"].fail("not the id in `of`");
      }
    } else {
      out.of = runnable_ ? at["of"].text() : out.from;
    }
    if (at.has("undo")) out.undone = at["undo"].texts();
    if (runnable_) out.views = at["views"].texts();
    out.produced_at = at["made_at"].integer(0, end_);
    out.freed_at = at["freed_at"].integer(out.produced_at, end_);
    out.reason = reason(at);
    out.overlapped_nanoseconds = at["hidden_us"].nanoseconds();
    if (at.has("cut_us")) out.cut_nanoseconds = at["cut_us"].nanoseconds();
    if (at.has("once_a_step")) out.once_a_step = at["once_a_step"].boolean();
    for (const JsonCursor& element : at["steps"].elements()) {
      out.steps.push_back(move(element));
    }
    if (runnable_) check_steps(at["steps"], out);
    return out;
  }

  CopyReason reason(const JsonCursor& copy) const {
    const JsonCursor other = copy["alternative_us"];
    std::optional<std::int64_t> more;
    if (!other.is_null()) more = other.nanoseconds_more();
    if (is_typed_) {
      CopyReason reason = read_reason(copy["reason"], plan_.mesh);
      const auto& known = reason.alternative;
      if (known ? known->nanoseconds != more : more.has_value()) {
        other.fail("not the alternative of `reason`");
      }
      return reason;
    }
    CopyReason reason;
    reason.cause = CopyCause::kReported;
    reason.text = copy["reason"].text();
    if (more) reason.alternative = {*more, {}};
    return reason;
  }

  // Checks that the plan has the nodes and operands that the reasons name.
  void check_reasons(const std::vector<JsonCursor>& entries) const {
    std::unordered_map<std::string_view, std::size_t> operands;
    for (const PlannedNode& node : plan_.nodes) {
      operands.emplace(node.name, node.inputs.size());
    }
    for (std::size_t c = 0; c < plan_.copies.size(); ++c) {
      const CopyReason& reason = plan_.copies[c].reason;
      if (!reason.operand) continue;
      const auto found = operands.find(reason.user->name);
      if (found == operands.end()) {
        entries[c]["reason"]["user"]["name"].fail("no node has this name");
      } else if (*reason.operand >= found->second) {
        entries[c]["reason"]["operand"].fail("the node has no such input");
      }
    }
  }

  // Checks that the steps lead from `src` to `dst`.
  static void check_steps(const JsonCursor& at, const PlannedCopy& copy) {
    const Layout* before = &copy.src;
    for (const RedistributeStep& step : copy.steps) {
      if (!(step.src == *before)) at.fail("a step starts elsewhere");
      before = &step.dst;
    }
    if (!(*before == copy.dst)) at.fail("the steps lead elsewhere");
  }

  // Checks that copies are in the order of production, and that their sources
  // exist.
  void check_copies(const std::vector<JsonCursor>& entries) {
    std::int64_t slot = 0;
    for (std::size_t c = 0; c < entries.size(); ++c) {
      PlannedCopy& copy = plan_.copies[c];
      if (copy.source) copy.of = plan_.copies[*copy.source].from;
      if (!runnable_) continue;
      if (copy.produced_at < slot) {
        entries[c]["made_at"].fail("before the copy above it");
      }
      slot = copy.produced_at;
      if (copy.source && *copy.source >= c) {
        entries[c]["of"].fail("a later copy is the source");
      }
    }
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
    if (at.has("kind")) {
      if (const auto kind = parse_op_kind(at["kind"].text())) {
        out.kind = *kind;
      } else {
        at["kind"].fail("unknown kind of operator");
      }
    }
    out.module_path = at["module"].text();
    out.source = at["source"].text();
    if (at.has("assignment")) {
      for (const JsonCursor& to : at["assignment"].elements()) {
        out.assignment.push_back(
            static_cast<std::int16_t>(to.integer(kUnassigned, INT16_MAX)));
      }
    }
    if (at.has("strategy")) at["strategy"].text();  // follows from the rest
    out.is_random = at.has("rng");
    if (out.is_random && at["rng"].text() != "by element") {
      at["rng"].fail("unknown way to draw numbers");
    }
    if (at.has("local_args")) {
      out.local.arguments = read_local_args(at["local_args"], plan_.mesh);
    }
    if (at.has("local_program")) {
      out.local.program = read_local_program(at["local_program"], plan_.mesh);
    }
    const std::string phase = at["phase"].text();
    if (phase == to_string(Phase::kBackward)) {
      out.phase = Phase::kBackward;
    } else if (phase != to_string(Phase::kForward)) {
      at["phase"].fail("unknown phase");
    }
    out.compute_nanoseconds = at["compute_us"].nanoseconds();
    for (const JsonCursor& element : at["inside"].elements()) {
      out.inside.push_back(step(element));
    }
    for (const JsonCursor& element : at["outputs"].elements()) {
      out.outputs.push_back({element["name"].text(), tensor(element)});
    }
    for (const JsonCursor& element : at["inputs"].elements()) {
      out.inputs.push_back(input(element));
    }
    return out;
  }

  PlannedUpdate update(const JsonCursor& at) const {
    PlannedUpdate out;
    at["id"].text();  // the name of its output
    at["source"].text();
    if (!at["inside"].elements().empty()) {
      at["inside"].fail("an update moves nothing");
    }
    out.op = at["op"].text();
    out.parameter = at["parameter"].text();
    out.module_path = at["module"].text();
    out.compute_nanoseconds = at["compute_us"].nanoseconds();
    const std::vector<JsonCursor> inputs = at["inputs"].elements();
    const std::vector<JsonCursor> outputs = at["outputs"].elements();
    if (inputs.empty() || inputs.size() > 2 || outputs.size() != 1) {
      at.fail("an update reads a gradient and a parameter, and produces one");
      return out;
    }
    if (inputs.size() == 2) out.gradient = input(inputs.front());
    out.value = input(inputs.back());
    out.result = {outputs[0]["name"].text(), tensor(outputs[0])};
    return out;
  }

  const JsonCursor& root_;
  bool runnable_;
  bool is_typed_;  // reasons, notes and roles are objects
  std::int64_t num_copies_ = 0;
  std::int64_t end_ = 0;  // of the program: as many slots come before it
  Plan plan_;
};

Result<Plan> parse(std::string_view text) {
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
  const JsonCursor root(**json, reading);
  const std::string schema = root["schema"].text();
  const auto number = std::find(std::begin(kPlanSchemas),
                                std::end(kPlanSchemas), schema) -
                      std::begin(kPlanSchemas) + 1;
  if (!reading.problem && number > std::ssize(kPlanSchemas)) {
    return fail(ErrorCode::kPlanSchemaVersion,
                "the plan is of schema `" + schema.substr(0, 80) + "`, not `" +
                    std::string(kPlanSchema) + "`",
                "make it again with this version");
  }
  Plan plan = Reader(root, static_cast<int>(number)).read();
  root.refuse_unread();
  if (const auto& problem = reading.problem) {
    return fail(malformed(problem->message, "$" + problem->path));
  }
  return plan;
}

}  // namespace

Result<Plan> parse_plan_json(std::string_view text) {
  return guarded([&] { return parse(text); });
}

}  // namespace shardprop
