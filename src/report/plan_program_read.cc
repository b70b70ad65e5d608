#include "report/plan_program_read.h"

#include "report/explanation_json.h"
#include "report/local_run_read.h"

#include <shardprop/report/plan_json.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

class PlanProgramReader {
 public:
  PlanProgramReader(const JsonCursor& root, PlanSchema schema, std::int64_t end,
                    Plan& plan)
      : root_(root), schema_(schema), end_(end), plan_(plan) {}

  void read() {
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
    for (const JsonCursor& entry : root_["nodes"].elements()) {
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
  }

 private:
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
    if (schema_.is_runnable()) {
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
    if (!schema_.is_runnable()) return out;
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
    const bool of_copy =
        schema_.is_runnable() ? at["of"].is_integer() : at.has("source");
    if (of_copy) {
      const JsonCursor source = at[schema_.is_runnable() ? "of" : "source"];
      out.source = static_cast<std::size_t>(source.integer(0, num_copies_ - 1));
      // The source is written twice, for readers of schema 1.
      if (at.has("source") && at["source"].integer() != source.integer()) {
        at["source"].fail("not the id in `of`");
      }
    } else {
      out.of = schema_.is_runnable() ? at["of"].text() : out.from;
    }
    if (at.has("undo")) out.undone = at["undo"].texts();
    if (schema_.is_runnable()) out.views = at["views"].texts();
    out.produced_at = at["made_at"].integer(0, end_);
    out.freed_at = at["freed_at"].integer(out.produced_at, end_);
    if (at.has("issued_at")) {
      PlannedFlight& flight = out.in_flight.emplace();
      flight.issued_at = at["issued_at"].integer(0, end_ - 1);
      flight.waited_at = at["waited_at"].integer(flight.issued_at + 1, end_);
    }
    if (at.has("bucket")) {
      // A bucket has the number of its first copy.
      const auto own = static_cast<std::int64_t>(plan_.copies.size());
      out.bucket = static_cast<std::size_t>(at["bucket"].integer(0, own));
    }
    out.reason = reason(at);
    out.overlapped_nanoseconds = at["hidden_us"].nanoseconds();
    if (at.has("cut_us")) out.cut_nanoseconds = at["cut_us"].nanoseconds();
    if (at.has("once_a_step")) out.once_a_step = at["once_a_step"].boolean();
    for (const JsonCursor& element : at["steps"].elements()) {
      out.steps.push_back(move(element));
    }
    if (schema_.is_runnable()) check_steps(at["steps"], out);
    return out;
  }

  CopyReason reason(const JsonCursor& copy) const {
    const JsonCursor other = copy["alternative_us"];
    std::optional<std::int64_t> more;
    if (!other.is_null()) more = other.nanoseconds_more();
    if (schema_.is_typed()) {
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
      if (!schema_.is_runnable()) continue;
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
    if (at.has("factor_shardings")) {
      const JsonCursor of_all = at["factor_shardings"];
      out.shardings = FactorShardings(layout(of_all));
      if (out.shardings.of_all().has_partial()) {
        of_all.fail("a factor is not partial");
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
    } else if (phase == kSecondRunPhase) {
      out.phase = Phase::kBackward;
      out.second_run_of = at["of"].text();
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
  PlanSchema schema_;
  std::int64_t end_;
  std::int64_t num_copies_ = 0;
  Plan& plan_;
};

}  // namespace

void read_program(const JsonCursor& root, PlanSchema schema, std::int64_t end,
                  Plan& plan) {
  PlanProgramReader(root, schema, end, plan).read();
}

}  // namespace shardprop
