#include <shardprop/report/plan_json.h>

#include "base/index.h"
#include "io/json_text.h"
#include "report/demanded_shardings.h"
#include "report/explanation_json.h"
#include "report/local_run_json.h"
#include "report/mesh_json.h"
#include "report/once_a_step.h"
#include "report/plan_overlap_json.h"
#include "report/repeatable_options.h"
#include "report/topology_json.h"

#include <algorithm>
#include <optional>

namespace shardprop {
namespace {

double us(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1000;
}

std::optional<double> us(const std::optional<std::int64_t>& nanoseconds) {
  if (!nanoseconds) return std::nullopt;
  return us(*nanoseconds);
}

// "S(0),R->S(0)"; "[S(0),R],[R,R]->[S(0),R]" on meshes of several dims.
std::string strategy_text(const PlannedNode& node, bool brackets) {
  std::string text;
  const auto append = [&](const Layout& layout, bool first) {
    if (!first) text += ',';
    const std::string one = to_string(layout);
    text += brackets ? '[' + one + ']' : one;
  };
  for (const PlannedInput& input : node.inputs) {
    append(input.layout, &input == &node.inputs.front());
  }
  text += "->";
  for (const PlannedResult& output : node.outputs) {
    append(output.tensor.layout, &output == &node.outputs.front());
  }
  return text;
}

// Writes one plan. Each function writes the members or the value of its name.
class Writer {
 public:
  Writer(const Plan& plan, RankForm form) : plan_(plan), form_(form) {}

  std::string document() {
    json_.open('{').member("schema", kPlanSchema);
    subject();
    answer();
    remarks();
    memory();
    summary();
    kernels();
    values();
    json_.key("copies").open('[');
    for (std::size_t i = 0; i < plan_.copies.size(); ++i) copy(i);
    json_.close(']').key("nodes").open('[');
    for (const PlannedNode& planned : plan_.nodes) node(planned);
    for (const PlannedUpdate& planned : plan_.updates) update(planned);
    json_.close(']');
    json_.key("outputs").list(plan_.outputs, [&](const PlannedOutput& output) {
      json_.open('{').member("kind", to_string(output.kind));
      if (!output.target.empty()) json_.member("target", output.target);
      input_members(output.value);
      json_.close('}');
    });
    json_.close('}');
    return json_.take();
  }

 private:
  // Writes the subject of the plan: the graph, the machine and the options.
  void subject() {
    json_.key("graph").open('{').member("name", plan_.graph_name);
    json_.member("hash", plan_.graph_hash).member("ops", plan_.graph_ops);
    json_.close('}').key("mesh");
    write_mesh(json_, plan_.mesh);
    json_.member("topology", plan_.topology.name);
    Topology unknown;  // as plans of schema 1 leave it
    unknown.name = plan_.topology.name;
    if (plan_.topology != unknown) {
      json_.key("topology_figures");
      write_topology(json_, plan_.topology);
    }
    options();
  }

  // An option given several times becomes a list.
  void options() {
    json_.key("options").open('{');
    for (const auto& [name, value] : plan_.options) {
      if (!is_repeatable(name)) json_.member(name, value);
    }
    for (const std::string_view repeated : kRepeatableOptions) {
      const auto is_it = [&](const auto& option) {
        return option.first == repeated;
      };
      if (!is_always_listed(repeated) &&
          std::none_of(plan_.options.begin(), plan_.options.end(), is_it)) {
        continue;
      }
      json_.key(repeated).open('[');
      for (const auto& option : plan_.options) {
        if (is_it(option)) json_.text(option.second);
      }
      json_.close(']');
    }
    json_.close('}');
  }

  // Writes the quality of the plan, and its proof.
  void answer() {
    json_.member("status", to_string(plan_.status));
    json_.member("objective_us", us(plan_.objective_nanoseconds));
    json_.member("step_us", us(step_nanoseconds(plan_)));
    json_.member("lower_bound_us", us(plan_.lower_bound_nanoseconds));
    if (plan_.free_lower_bound_nanoseconds) {
      json_.member("free_lower_bound_us",
                   us(plan_.free_lower_bound_nanoseconds));
    }
    json_.member("gap", plan_.gap());
    if (!plan_.space.is_named()) space("space", plan_.space);
    if (plan_.made_in != plan_.space) space("made_in", plan_.made_in);
    if (!plan_.demanded_shardings.empty()) {
      json_.key("demanded_shardings");
      write_demanded_shardings(json_, plan_.demanded_shardings);
    }
    if (plan_.is_proof_given) json_.member("proof", "as the file says");
    const RanOut end = plan_.ran_out;
    if (end != RanOut::kNothing) json_.member("ran_out", to_string(end));
    if (end == RanOut::kInterrupted) json_.member("interrupted", true);
    write_overlap(json_, plan_);
    json_.member("solve_seconds", plan_.solve_seconds);
    if (plan_.status == PlanStatus::kInfeasible) {
      json_.key("clash");
      write_conflict(json_, plan_.conflict);
    }
  }

  void space(const char* key, const PlanSpace& space) {
    json_.key(key).open('{');
    if (space.most_runs) json_.member("most_runs", *space.most_runs);
    if (space.joined_dims != 0) json_.member("joined_dims", space.joined_dims);
    json_.close('}');
  }

  void remarks() {
    json_.key("unsupported");
    json_.list(plan_.unsupported, [&](const UnsupportedOp& op) {
      json_.open('{').member("op", op.op).member("count", op.count);
      json_.member("reason", op.reason).close('}');
    });
    json_.key("guards").list(plan_.guards, [&](const Guard& guard) {
      json_.open('{').member("condition", guard.condition);
      json_.member("origin", guard.origin).close('}');
    });
    json_.key("pins").list(plan_.pins, [&](const PlanPin& pin) {
      json_.open('{').member("pin", to_string(pin.pin));
      json_.member("matched", pin.matched);
      json_.member("pinned", pin.pinned).close('}');
    });
    if (!plan_.recipes.empty()) recipes();
    if (!plan_.procedures.empty()) procedures();
    if (!plan_.roles.empty()) {
      json_.key("roles").list(
          plan_.roles, [&](const PlanRole& role) { write_role(json_, role); });
    }
    if (!(plan_.work == PlanWork{})) work();
    if (!plan_.notes.empty()) {
      json_.key("notes").list(
          plan_.notes, [&](const PlanNote& note) { write_note(json_, note); });
    }
  }

  void recipes() {
    json_.key("recipes").list(plan_.recipes, [&](const PlanRecipe& recipe) {
      json_.open('{').member("name", recipe.name);
      json_.member("objective_us", us(recipe.objective_nanoseconds));
      json_.member("status", to_string(recipe.status));
      json_.member("peak_bytes_per_rank", recipe.peak_bytes).close('}');
    });
  }

  // Clocks are left out: the same request then gives the same text.
  void procedures() {
    json_.key("procedures").list(plan_.procedures, [&](const Procedure& p) {
      json_.open('{').member("name", p.name);
      if (!p.enabled) json_.member("enabled", false);
      json_.member("runs", p.runs).member("work", p.work);
      json_.member("improvements", p.improvements);
      json_.member("gap_closed_us", us(p.gap_closed)).close('}');
    });
  }

  void work() {
    const PlanWork& work = plan_.work;
    json_.key("work").open('{').member("flops", work.flops);
    json_.member("model_flops", work.model_flops);
    json_.member("tokens", work.tokens).member("samples", work.samples);
    json_.member("peak_flops", work.peak_flops).close('}');
  }

  void memory() {
    const PlanMemory& memory = plan_.memory;
    json_.key("memory").open('{');
    json_.member("peak_bytes_per_rank", memory.peak_bytes);
    json_.member("unfused_peak_bytes_per_rank", memory.unfused_peak_bytes);
    json_.member("limit_bytes", memory.limit_bytes);
    json_.member("peak_at", memory.peak_at);
    json_.member("parameter_bytes", memory.parameter_bytes);
    json_.member("gradient_bytes", memory.gradient_bytes);
    json_.member("optimizer_bytes", memory.optimizer_bytes);
    json_.member("activation_bytes", memory.activation_bytes);
    json_.member("gathered_bytes", memory.gathered_bytes);
    json_.member("buffer_bytes", memory.buffer_bytes).close('}');
  }

  void summary() {
    const PlanSummary& sum = plan_.summary;
    json_.key("summary").open('{');
    json_.member("compute_us", us(sum.compute_nanoseconds));
    json_.member("optimizer_us", us(plan_.optimizer_nanoseconds));
    json_.member("communication_us", us(sum.communication_nanoseconds));
    json_.member("hidden_us", us(sum.overlapped_nanoseconds));
    json_.member("recompute_us", us(sum.recompute_nanoseconds));
    json_.key("collectives").open('{');
    for (const CollectiveKind kind : kAllCollectiveKinds) {
      json_.member(to_string(kind), sum.collectives[index(kind)]);
    }
    json_.close('}').member("bytes_per_rank", sum.bytes_per_rank).close('}');
  }

  void kernels() {
    const PlannedKernels& kernels = plan_.kernels;
    if (kernels.groups == 0) return;
    json_.key("kernels").open('{').member("groups", kernels.groups);
    json_.member("kernels", kernels.kernels);
    json_.member("bytes_per_rank", kernels.bytes);
    json_.member("us", us(kernels.nanoseconds));
    json_.member("priced_us", us(kernels.priced_nanoseconds)).close('}');
  }

  void values() {
    json_.key("values").open('{');
    for (const PlannedValue& value : plan_.values) {
      json_.key(value.name).open('{').member("role", to_string(value.kind));
      tensor_members(value.tensor);
      if (value.state_layout) {
        json_.member("state_placements", to_strings(*value.state_layout));
      }
      if (value.reduced_once) json_.member("reduced_once", true);
      json_.close('}');
    }
    json_.close('}');
  }

  void tensor_members(const PlannedTensor& tensor) {
    json_.member("shape", tensor.shape);
    json_.member("dtype", to_string(tensor.dtype));
    json_.member("placements", to_strings(tensor.layout));
  }

  void result(const PlannedResult& result) {
    json_.open('{').member("name", result.name);
    tensor_members(result.tensor);
    json_.close('}');
  }

  void input_members(const PlannedInput& input) {
    json_.member("from", input.from);
    json_.member("placements", to_strings(input.layout));
    if (input.copy) json_.member("copy", *input.copy);
  }

  void input(const PlannedInput& input) {
    json_.open('{');
    input_members(input);
    json_.close('}');
  }

  void step_members(const CollectiveStep& s) {
    json_.member("collective", to_string(s.kind)).key("mesh_dims");
    write_dim_names(json_, s.mesh_dims, plan_.mesh);
    if (s.reduce_op) json_.member("reduce_op", to_string(*s.reduce_op));
    json_.member("dtype", to_string(s.dtype));
    json_.member("message_bytes", s.message_bytes);
    json_.member("bytes_per_rank", s.bytes_per_rank);
    json_.member("us", us(s.nanoseconds));
    if (s.padded) json_.member("padded", true);
    if (s.staged) json_.member("staged", true);
  }

  void copy(std::size_t id) {
    const PlannedCopy& copy = plan_.copies[id];
    json_.open('{').member("id", id).member("from", copy.from);
    json_.member("src", to_strings(copy.src));
    json_.member("dst", to_strings(copy.dst));
    if (copy.source) {
      json_.member("of", *copy.source).member("source", *copy.source);
    } else {
      json_.member("of", copy.of);
    }
    if (!copy.undone.empty()) json_.member("undo", copy.undone);
    json_.member("views", copy.views).member("made_at", copy.produced_at);
    json_.member("freed_at", copy.freed_at);
    if (copy.in_flight) {
      json_.member("issued_at", copy.in_flight->issued_at);
      json_.member("waited_at", copy.in_flight->waited_at);
    }
    if (copy.bucket) json_.member("bucket", *copy.bucket);
    json_.key("reason");
    write_reason(json_, copy.reason);
    const auto& other = copy.reason.alternative;
    json_.member("alternative_us",
                 other ? std::optional(us(other->nanoseconds)) : std::nullopt);
    json_.member("hidden_us", us(copy.overlapped_nanoseconds));
    json_.key("steps").list(copy.steps, [&](const RedistributeStep& s) {
      json_.open('{');
      step_members(s);
      json_.member("src", to_strings(s.src)).member("dst", to_strings(s.dst));
      json_.member("peak_bytes", s.peak_bytes).close('}');
    });
    if (copy.cut_nanoseconds > 0) {
      json_.member("cut_us", us(copy.cut_nanoseconds));
    }
    if (copy.once_a_step) json_.member("once_a_step", true);
    json_.close('}');
  }

  void node(const PlannedNode& node) {
    json_.open('{').member("id", node.name).member("op", node.op);
    json_.member("kind", to_string(node.kind));
    json_.member("module", node.module_path).member("source", node.source);
    if (node.second_run_of.empty()) {
      json_.member("phase", to_string(node.phase));
    } else {
      json_.member("phase", kSecondRunPhase).member("of", node.second_run_of);
    }
    json_.member("compute_us", us(node.compute_nanoseconds));
    if (!node.assignment.empty()) {
      json_.member("strategy", strategy_text(node, plan_.mesh.ndim() > 1));
      json_.member("assignment", node.assignment);
    }
    if (!node.shardings.is_mesh_order()) {
      json_.member("factor_shardings", to_strings(node.shardings.of_all()));
    }
    if (node.is_random) json_.member("rng", "by element");
    if (!node.local.arguments.empty()) {
      json_.key("local_args");
      write_local_args(json_, node.local, plan_.mesh, form_);
    }
    if (node.local.program) {
      json_.key("local_program");
      write_local_program(json_, *node.local.program, plan_.mesh, form_);
    }
    json_.key("inside").list(node.inside, [&](const CollectiveStep& s) {
      json_.open('{');
      step_members(s);
      json_.close('}');
    });
    json_.key("outputs").list(node.outputs,
                              [&](const PlannedResult& r) { result(r); });
    json_.key("inputs").list(node.inputs,
                             [&](const PlannedInput& i) { input(i); });
    json_.close('}');
  }

  void update(const PlannedUpdate& update) {
    json_.open('{').member("id", update.result.name).member("op", update.op);
    json_.member("module", update.module_path).member("source", "");
    json_.member("phase", kUpdatePhase);
    json_.member("compute_us", us(update.compute_nanoseconds));
    json_.member("parameter", update.parameter);
    json_.key("inside").open('[').close(']').key("outputs").open('[');
    result(update.result);
    json_.close(']').key("inputs").open('[');
    if (update.gradient) input(*update.gradient);
    input(update.value);
    json_.close(']').close('}');
  }

  const Plan& plan_;
  RankForm form_;
  JsonText json_{JsonText::Form::kIndented};
};

}  // namespace

std::string plan_to_json(const Plan& plan, RankForm form) {
  return Writer(plan, form).document() + "\n";
}

}  // namespace shardprop
