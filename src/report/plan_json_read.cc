#include <shardprop/report/plan_json.h>

#include "base/guard.h"
#include "base/index.h"
#include "io/json_tree.h"
#include "report/demanded_shardings.h"
#include "report/explanation_json.h"
#include "report/json_cursor.h"
#include "report/plan_program_read.h"
#include "report/repeatable_options.h"
#include "report/topology_json.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

class Reader {
 public:
  Reader(const JsonCursor& root, PlanSchema schema)
      : root_(root), schema_(schema) {}

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
    end_ =
        std::max(static_cast<std::int64_t>(plan_.graph_ops),
                 static_cast<std::int64_t>(root_["nodes"].elements().size()));
    read_options(root_["options"]);
    read_status();
    // The reader does not trust `gap` and `step_us`.
    if (!root_["gap"].is_null()) root_["gap"].number();
    if (root_.has("step_us")) maybe_nanoseconds(root_["step_us"]);
    if (root_.has("overlap_multipliers")) {
      plan_.overlap_multipliers = root_["overlap_multipliers"].integers();
    }
    if (root_.has("overlap_windows")) read_windows(root_["overlap_windows"]);
    plan_.solve_seconds = root_["solve_seconds"].number();
    if (root_.has("clash")) {
      plan_.conflict = read_conflict(root_["clash"], end_);
      if (!schema_.is_typed()) add_recipe_of_options();
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
    read_program(root_, schema_, end_, plan_);
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
    if (root_.has("free_lower_bound_us")) {
      plan_.free_lower_bound_nanoseconds =
          root_["free_lower_bound_us"].nanoseconds();
    }
    if (!schema_.is_runnable() && plan_.status == PlanStatus::kOptimal) {
      plan_.status = PlanStatus::kFeasible;
    }
    plan_.is_proof_given = !schema_.is_runnable();
    if (root_.has("proof")) root_["proof"].text();  // said, not believed
    if (root_.has("space")) plan_.space = space(root_["space"]);
    plan_.made_in =
        root_.has("made_in") ? space(root_["made_in"]) : plan_.space;
    if (root_.has("demanded_shardings")) {
      plan_.demanded_shardings =
          read_demanded_shardings(root_["demanded_shardings"], plan_.mesh);
    }
    if (root_.has("ran_out")) {
      if (const auto what = parse_ran_out(root_["ran_out"].text())) {
        plan_.ran_out = *what;
      } else {
        root_["ran_out"].fail("unknown");
      }
    }
    // `ran_out` says the same.
    if (root_.has("interrupted")) root_["interrupted"].boolean();
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

  void read_windows(const JsonCursor& windows) {
    std::int64_t slot = 0;
    for (const JsonCursor& at : windows.elements()) {
      PlannedWindow window;
      window.begins_at = slot = at["begins_at"].integer(slot, end_);
      window.compute_nanoseconds = at["compute_us"].nanoseconds();
      window.overlappable_nanoseconds = at["overlappable_us"].nanoseconds();
      if (at.has("micro_batches")) {
        const std::string text = at["micro_batches"].text();
        if (const auto set = parse_micro_batches(text)) {
          window.micro_batches = *set;
        } else {
          at["micro_batches"].fail("found `" + text +
                                   "`, expected first, between or last");
        }
      }
      plan_.windows.push_back(window);
    }
  }

  void read_roles(const JsonCursor& roles) {
    for (const JsonCursor& role : roles.elements()) {
      plan_.roles.push_back(schema_.is_typed()
                                ? read_role(role, plan_.mesh)
                                : read_role_of_text(role, plan_.mesh));
    }
  }

  void read_notes(const JsonCursor& notes) {
    for (const JsonCursor& note : notes.elements()) {
      plan_.notes.push_back(schema_.is_typed() ? read_note(note, plan_.mesh)
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
    plan_.memory.unfused_peak_bytes =
        memory.has("unfused_peak_bytes_per_rank")
            ? memory["unfused_peak_bytes_per_rank"].integer()
            : plan_.memory.peak_bytes;
    plan_.memory.peak_at = memory["peak_at"].integer(0, end_);
    plan_.memory.parameter_bytes = memory["parameter_bytes"].integer();
    plan_.memory.optimizer_bytes = memory["optimizer_bytes"].integer();
    if (schema_.is_runnable()) {
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
    if (summary.has("recompute_us")) {
      said.recompute_nanoseconds = summary["recompute_us"].nanoseconds();
    }
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

  static std::optional<std::int64_t> maybe_nanoseconds(const JsonCursor& at) {
    if (at.is_null()) return std::nullopt;
    return at.nanoseconds();
  }

  const JsonCursor& root_;
  PlanSchema schema_;
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
  const auto number =
      std::find(std::begin(kPlanSchemas), std::end(kPlanSchemas), schema) -
      std::begin(kPlanSchemas) + 1;
  if (!reading.problem && number > std::ssize(kPlanSchemas)) {
    return fail(ErrorCode::kPlanSchemaVersion,
                "the plan is of schema `" + schema.substr(0, 80) + "`, not `" +
                    std::string(kPlanSchema) + "`",
                "make it again with this version");
  }
  Plan plan = Reader(root, {static_cast<int>(number)}).read();
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
