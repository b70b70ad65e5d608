#include <shardprop/report/plan_json.h>

#include "io/json_tree.h"
#include "report/local_run_json.h"
#include "report/topology_json.h"

#include <utility>

namespace shardprop {
namespace {

using Json = LinearJson;

double us(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1000;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json us_or_null(const std::optional<std::int64_t>& nanoseconds) {
  return nanoseconds ? Json(us(*nanoseconds)) : Json();
}

// A list, also when it is empty.
template <class Range, class Function>
Json list_of(const Range& range, Function&& entry) {
  Json list = Json::array();
  for (const auto& element : range) list.push_back(entry(element));
  return list;
}

Json tensor_json(const PlannedTensor& tensor) {
  return {{"shape", list_of(tensor.shape, [](std::int64_t n) { return n; })},
          {"dtype", to_string(tensor.dtype)},
          {"placements", to_strings(tensor.layout)}};
}

Json result_json(const PlannedResult& result) {
  Json out = {{"name", result.name}};
  out.update(tensor_json(result.tensor));
  return out;
}

Json input_json(const PlannedInput& input) {
  Json out = {{"from", input.from}, {"placements", to_strings(input.layout)}};
  if (input.copy) out["copy"] = *input.copy;
  return out;
}

class Writer {
 public:
  explicit Writer(const Plan& plan) : plan_(plan) {}

  Json document() const {
    Json out;
    out["schema"] = kPlanSchema;
    add_subject(out);
    add_answer(out);
    add_remarks(out);
    out["memory"] = memory();
    out["summary"] = summary();
    add_kernels(out);
    out["values"] = values();
    Json copies = Json::array();
    for (std::size_t i = 0; i < plan_.copies.size(); ++i) {
      copies.push_back(copy(i));
    }
    out["copies"] = std::move(copies);
    Json nodes =
        list_of(plan_.nodes, [&](const PlannedNode& n) { return node(n); });
    for (const PlannedUpdate& update : plan_.updates) {
      nodes.push_back(node(update));
    }
    out["nodes"] = std::move(nodes);
    out["outputs"] =
        list_of(plan_.outputs, [](const PlannedOutput& output) -> Json {
          Json entry = {{"kind", to_string(output.kind)}};
          if (!output.target.empty()) entry["target"] = output.target;
          entry.update(input_json(output.value));
          return entry;
        });
    return out;
  }

 private:
  // What was planned, for which machine, and how.
  void add_subject(Json& out) const {
    out["graph"] = {{"name", plan_.graph_name},
                    {"hash", plan_.graph_hash},
                    {"ops", plan_.graph_ops}};
    out["mesh"]["dims"] =
        list_of(plan_.mesh.dims(), [](const MeshDim& dim) -> Json {
          return {{"name", dim.name}, {"size", dim.size}};
        });
    out["topology"] = plan_.topology.name;
    Topology unknown;  // as plans of schema 1 leave it
    unknown.name = plan_.topology.name;
    if (plan_.topology != unknown) {
      out["topology_figures"] = topology_json(plan_.topology);
    }
    out["options"] = options();
  }

  // How good it is, and how that is known.
  void add_answer(Json& out) const {
    out["status"] = to_string(plan_.status);
    out["objective_us"] = us_or_null(plan_.objective_nanoseconds);
    out["lower_bound_us"] = us(plan_.lower_bound_nanoseconds);
    out["gap"] = or_null(plan_.gap());
    if (plan_.space.most_runs) {
      out["space"] = {{"most_runs", *plan_.space.most_runs}};
    }
    if (plan_.is_proof_given) out["proof"] = "as the file says";
    if (plan_.ran_out != RanOut::kNothing) {
      out["ran_out"] = to_string(plan_.ran_out);
    }
    out["solve_seconds"] = plan_.solve_seconds;
    if (plan_.status == PlanStatus::kInfeasible) out["clash"] = clash();
  }

  void add_remarks(Json& out) const {
    out["unsupported"] =
        list_of(plan_.unsupported, [](const UnsupportedOp& op) -> Json {
          return {{"op", op.op}, {"count", op.count}, {"reason", op.reason}};
        });
    out["guards"] = list_of(plan_.guards, [](const Guard& guard) -> Json {
      return {{"condition", guard.condition}, {"origin", guard.origin}};
    });
    out["pins"] = list_of(plan_.pins, [](const PlanPin& pin) -> Json {
      return {
          {"pin", pin.pin}, {"matched", pin.matched}, {"pinned", pin.pinned}};
    });
    if (!plan_.recipes.empty()) {
      out["recipes"] =
          list_of(plan_.recipes, [](const PlanRecipe& recipe) -> Json {
            return {{"name", recipe.name},
                    {"objective_us", us_or_null(recipe.objective_nanoseconds)},
                    {"status", to_string(recipe.status)},
                    {"peak_bytes_per_rank", recipe.peak_bytes}};
          });
    }
    if (!plan_.roles.empty()) {
      out["roles"] = list_of(plan_.roles, [](const PlanRole& role) -> Json {
        return {{"use", role.use},
                {"mesh_dim", role.mesh_dim},
                {"permille", role.permille},
                {"modules", role.modules}};
      });
    }
    if (!(plan_.work == PlanWork{})) {
      out["work"] = {{"flops", plan_.work.flops},
                     {"tokens", plan_.work.tokens},
                     {"samples", plan_.work.samples},
                     {"peak_flops", plan_.work.peak_flops}};
    }
    if (!plan_.notes.empty()) out["notes"] = plan_.notes;
  }

  Json memory() const {
    const PlanMemory& memory = plan_.memory;
    return {{"peak_bytes_per_rank", memory.peak_bytes},
            {"limit_bytes", or_null(memory.limit_bytes)},
            {"peak_at", memory.peak_at},
            {"parameter_bytes", memory.parameter_bytes},
            {"gradient_bytes", memory.gradient_bytes},
            {"optimizer_bytes", memory.optimizer_bytes},
            {"activation_bytes", memory.activation_bytes},
            {"gathered_bytes", memory.gathered_bytes},
            {"buffer_bytes", memory.buffer_bytes}};
  }

  void add_kernels(Json& out) const {
    const PlannedKernels& kernels = plan_.kernels;
    if (kernels.groups == 0) return;
    out["kernels"] = {{"groups", kernels.groups},
                      {"kernels", kernels.kernels},
                      {"bytes_per_rank", kernels.bytes},
                      {"us", us(kernels.nanoseconds)},
                      {"priced_us", us(kernels.priced_nanoseconds)}};
  }

  Json values() const {
    Json out = Json::object();
    for (const PlannedValue& value : plan_.values) {
      Json entry = {{"role", to_string(value.role)}};
      entry.update(tensor_json(value.tensor));
      if (value.state_layout) {
        entry["state_placements"] = to_strings(*value.state_layout);
      }
      if (value.reduced_once) entry["reduced_once"] = true;
      out[value.name] = std::move(entry);
    }
    return out;
  }

  // An option given several times becomes a list.
  Json options() const {
    Json out = Json::object();
    Json pins = Json::array();
    for (const auto& [name, value] : plan_.options) {
      if (name == "pin") {
        pins.push_back(value);
      } else {
        out[name] = value;
      }
    }
    out["pin"] = std::move(pins);
    return out;
  }

  Json clash() const {
    const PlanClash& clash = plan_.clash;
    return {{"pins", clash.pins},
            {"memory", list_of(clash.memory,
                               [](const PlanClash::Step& step) -> Json {
                                 return {{"at", step.at},
                                         {"node", step.node},
                                         {"bytes_short", step.bytes_short}};
                               })},
            {"irreducible", clash.irreducible}};
  }

  Json summary() const {
    const PlanSummary& sum = plan_.summary;
    Json collectives;
    for (const CollectiveKind kind : kAllCollectiveKinds) {
      collectives[std::string(to_string(kind))] =
          sum.collectives[static_cast<std::size_t>(kind)];
    }
    return {{"compute_us", us(sum.compute_nanoseconds)},
            {"optimizer_us", us(plan_.optimizer_nanoseconds)},
            {"communication_us", us(sum.communication_nanoseconds)},
            {"hidden_us", us(sum.hidden_nanoseconds)},
            {"collectives", std::move(collectives)},
            {"bytes_per_rank", sum.bytes_per_rank}};
  }

  Json step(const CollectiveStep& s) const {
    Json out = {{"collective", to_string(s.kind)},
                {"mesh_dims", dim_names_json<Json>(s.mesh_dims, plan_.mesh)}};
    if (s.reduce_op) out["reduce_op"] = to_string(*s.reduce_op);
    out["dtype"] = to_string(s.dtype);
    out["message_bytes"] = s.message_bytes;
    out["bytes_per_rank"] = s.bytes_per_rank;
    out["us"] = us(s.nanoseconds);
    if (s.padded) out["padded"] = true;
    if (s.staged) out["staged"] = true;
    return out;
  }

  Json step(const RedistributeStep& s) const {
    Json out = step(static_cast<const CollectiveStep&>(s));
    out["src"] = to_strings(s.src);
    out["dst"] = to_strings(s.dst);
    out["peak_bytes"] = s.peak_bytes;
    return out;
  }

  template <class Step>
  Json steps(const std::vector<Step>& list) const {
    return list_of(list, [&](const Step& s) { return step(s); });
  }

  Json copy(std::size_t id) const {
    const PlannedCopy& copy = plan_.copies[id];
    Json out = {{"id", id},
                {"from", copy.from},
                {"src", to_strings(copy.src)},
                {"dst", to_strings(copy.dst)}};
    if (copy.source) {
      out["of"] = *copy.source;
      out["source"] = *copy.source;
    } else {
      out["of"] = copy.of;
    }
    if (!copy.undone.empty()) out["undo"] = copy.undone;
    out["views"] = copy.views;
    out.update({{"made_at", copy.made_at},
                {"freed_at", copy.freed_at},
                {"reason", copy.reason},
                {"alternative_us", us_or_null(copy.alternative_nanoseconds)},
                {"hidden_us", us(copy.hidden_nanoseconds)},
                {"steps", steps(copy.steps)}});
    if (copy.cut_nanoseconds > 0) out["cut_us"] = us(copy.cut_nanoseconds);
    return out;
  }

  // "S(0),R->S(0)"; "[S(0),R],[R,R]->[S(0),R]" on meshes of several dims.
  std::string strategy(const PlannedNode& node) const {
    const bool brackets = plan_.mesh.ndim() > 1;
    const auto append = [&](std::string& text, const Layout& layout,
                            bool first) {
      if (!first) text += ',';
      const std::string one = to_string(layout);
      text += brackets ? '[' + one + ']' : one;
    };
    std::string text;
    for (const PlannedInput& input : node.inputs) {
      append(text, input.layout, &input == &node.inputs.front());
    }
    text += "->";
    for (const PlannedResult& output : node.outputs) {
      append(text, output.tensor.layout, &output == &node.outputs.front());
    }
    return text;
  }

  Json node(const PlannedNode& node) const {
    Json out = {{"id", node.name},
                {"op", node.op},
                {"kind", to_string(node.kind)},
                {"module", node.module_path},
                {"source", node.source},
                {"phase", to_string(node.phase)},
                {"compute_us", us(node.compute_nanoseconds)}};
    if (!node.assignment.empty()) {
      out["strategy"] = strategy(node);
      out["assignment"] =
          list_of(node.assignment, [](std::int16_t to) { return to; });
    }
    if (node.is_random) out["rng"] = "by element";
    if (!node.local.arguments.empty()) {
      out["local_args"] = local_args_json<Json>(node.local, plan_.mesh);
    }
    if (node.local.program) {
      out["local_program"] =
          local_program_json<Json>(*node.local.program, plan_.mesh);
    }
    out["inside"] = steps(node.inside);
    out["outputs"] = list_of(node.outputs, result_json);
    out["inputs"] = list_of(node.inputs, input_json);
    return out;
  }

  Json node(const PlannedUpdate& update) const {
    Json inputs = Json::array();
    if (update.gradient) inputs.push_back(input_json(*update.gradient));
    inputs.push_back(input_json(update.value));
    return {{"id", update.result.name},
            {"op", update.op},
            {"module", update.module_path},
            {"source", ""},
            {"phase", kUpdatePhase},
            {"compute_us", us(update.compute_nanoseconds)},
            {"parameter", update.parameter},
            {"inside", Json::array()},
            {"outputs", Json::array({result_json(update.result)})},
            {"inputs", std::move(inputs)}};
  }

  const Plan& plan_;
};

}  // namespace

std::string plan_to_json(const Plan& plan) {
  const JsonTree tree(Writer(plan).document());
  return tree->dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace shardprop
