#include <shardprop/report/plan_json.h>

#include <nlohmann/json.hpp>

#include <utility>

namespace shardprop {
namespace {

using Json = nlohmann::ordered_json;

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
    out["graph"] = {{"name", plan_.graph_name},
                    {"hash", plan_.graph_hash},
                    {"ops", plan_.graph_ops}};
    out["mesh"]["dims"] =
        list_of(plan_.mesh.dims(), [](const MeshDim& dim) -> Json {
          return {{"name", dim.name}, {"size", dim.size}};
        });
    out["topology"] = plan_.topology;
    out["options"] = options();
    out["status"] = to_string(plan_.status);
    out["objective_us"] = us_or_null(plan_.objective_nanoseconds);
    out["lower_bound_us"] = us(plan_.lower_bound_nanoseconds);
    out["gap"] = or_null(plan_.gap());
    out["solve_seconds"] = plan_.solve_seconds;
    if (plan_.status == PlanStatus::kInfeasible) out["clash"] = clash();
    out["unsupported"] =
        list_of(plan_.unsupported, [](const UnsupportedOp& op) -> Json {
          return {{"op", op.op}, {"count", op.count}, {"reason", op.reason}};
        });
    out["guards"] =
        list_of(plan_.guards, [](const PlannedGuard& guard) -> Json {
          return {{"condition", guard.condition}, {"origin", guard.origin}};
        });
    out["memory"] = {{"peak_bytes_per_rank", plan_.memory.peak_bytes},
                     {"limit_bytes", or_null(plan_.memory.limit_bytes)},
                     {"peak_at", plan_.memory.peak_at},
                     {"parameter_bytes", plan_.memory.parameter_bytes},
                     {"optimizer_bytes", plan_.memory.optimizer_bytes}};
    out["summary"] = summary();
    out["values"] = Json::object();
    for (const PlannedValue& value : plan_.values) {
      Json entry = {{"role", value.role}};
      entry.update(tensor_json(value.tensor));
      if (value.state_layout) {
        entry["state_placements"] = to_strings(*value.state_layout);
      }
      out["values"][value.name] = std::move(entry);
    }
    out["copies"] = Json::array();
    for (std::size_t i = 0; i < plan_.copies.size(); ++i) {
      out["copies"].push_back(copy(i));
    }
    out["nodes"] =
        list_of(plan_.nodes, [&](const PlannedNode& n) { return node(n); });
    out["outputs"] =
        list_of(plan_.outputs, [](const PlannedOutput& output) -> Json {
          Json entry = {{"kind", output.kind}};
          if (!output.target.empty()) entry["target"] = output.target;
          entry.update(input_json(output.value));
          return entry;
        });
    return out;
  }

 private:
  // An option given several times becomes a list.
  Json options() const {
    Json out = Json::object();
    out["pin"] = Json::array();
    for (const auto& [name, value] : plan_.options) {
      if (name == "pin") {
        out["pin"].push_back(value);
      } else {
        out[name] = value;
      }
    }
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

  Json step(const PlannedStep& s) const {
    return {{"collective", to_string(s.collective)},
            {"mesh_dims",
             list_of(s.mesh_dims,
                     [&](std::int32_t dim) { return plan_.mesh.name(dim); })},
            {"bytes_per_rank", s.bytes_per_rank},
            {"us", us(s.nanoseconds)}};
  }

  Json steps(const std::vector<PlannedStep>& list) const {
    return list_of(list, [&](const PlannedStep& s) { return step(s); });
  }

  Json copy(std::size_t id) const {
    const PlannedCopy& copy = plan_.copies[id];
    Json out = {{"id", id},
                {"from", copy.from},
                {"src", to_strings(copy.src)},
                {"dst", to_strings(copy.dst)}};
    if (copy.source) out["source"] = *copy.source;
    out.update({{"made_at", copy.made_at},
                {"freed_at", copy.freed_at},
                {"reason", copy.reason},
                {"alternative_us", us_or_null(copy.alternative_nanoseconds)},
                {"hidden_us", us(copy.hidden_nanoseconds)},
                {"steps", steps(copy.steps)}});
    return out;
  }

  Json node(const PlannedNode& node) const {
    return {{"id", node.name},
            {"op", node.op},
            {"module", node.module_path},
            {"source", node.source},
            {"phase", to_string(node.phase)},
            {"compute_us", us(node.compute_nanoseconds)},
            {"inside", steps(node.inside)},
            {"outputs", list_of(node.outputs, result_json)},
            {"inputs", list_of(node.inputs, input_json)}};
  }

  const Plan& plan_;
};

}  // namespace

std::string plan_to_json(const Plan& plan) {
  return Writer(plan).document().dump(1, ' ', false,
                                      Json::error_handler_t::replace) +
         "\n";
}

}  // namespace shardprop
