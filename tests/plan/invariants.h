// Checks the invariants of every plan, recomputed from the plan alone.
#pragma once

#include <doctest/doctest.h>
#include <shardprop/plan/plan.h>

#include <algorithm>
#include <map>
#include <string>

namespace shardprop::test {

// Returns the node of that name, which must exist.
inline const PlannedNode& node_of(const Plan& plan, const std::string& name) {
  const auto found =
      std::find_if(plan.nodes.begin(), plan.nodes.end(),
                   [&](const PlannedNode& node) { return node.name == name; });
  REQUIRE_MESSAGE(found != plan.nodes.end(), "no node " << name);
  return *found;
}

// Checks a plan step by step: which values and copies exist, when, and in which
// layout.
class PlanChecker {
 public:
  explicit PlanChecker(const Plan& plan)
      : plan_(plan),
        nodes_(static_cast<std::int64_t>(plan.nodes.size())),
        end_(nodes_ + static_cast<std::int64_t>(plan.updates.size())) {}

  void run() {
    REQUIRE(plan_.has_plan());
    for (const PlannedValue& value : plan_.values) {
      produced_[value.name] = {-1, value.tensor.layout};
    }
    for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
      const PlannedNode& node = plan_.nodes[n];
      node_[node.name] = n;
      for (const PlannedResult& result : node.outputs) {
        produced_[result.name] = {static_cast<std::int64_t>(n),
                                  result.tensor.layout};
      }
    }
    for (std::size_t u = 0; u < plan_.updates.size(); ++u) {
      const PlannedResult& result = plan_.updates[u].result;
      produced_[result.name] = {nodes_ + static_cast<std::int64_t>(u),
                                result.tensor.layout};
    }
    check_copies();
    check_nodes();
    check_updates();
    check_outputs();
    check_totals();
  }

 private:
  struct Made {
    std::int64_t slot = 0;  // -1: before the program
    Layout layout;
  };

  void check_copies() {
    for (std::size_t c = 0; c < plan_.copies.size(); ++c) {
      const PlannedCopy& copy = plan_.copies[c];
      CAPTURE(c);
      CHECK(0 <= copy.produced_at);
      CHECK(copy.produced_at <= copy.freed_at);
      CHECK(copy.freed_at <= end_);
      CHECK(copy.reason.cause != CopyCause::kUnused);
      CHECK((copy.src == copy.dst) == copy.steps.empty());
      if (c > 0) CHECK(plan_.copies[c - 1].produced_at <= copy.produced_at);
      if (copy.in_flight) {
        CHECK(0 <= copy.in_flight->issued_at);
        CHECK(copy.in_flight->issued_at < copy.in_flight->waited_at);
        CHECK(copy.in_flight->waited_at <= end_);
      }
      check_source(c);
      check_views(copy);
      check_steps(copy);
      check_alone(c);
      check_bucket(c);
      hidden_ += copy.overlapped_nanoseconds;
      compute_ += copy.cut_nanoseconds;
    }
  }

  // The source of a copy must exist when the copy is produced.
  void check_source(std::size_t c) {
    const PlannedCopy& copy = plan_.copies[c];
    const bool viewed = !copy.undone.empty() || !copy.views.empty();
    if (copy.source) {
      REQUIRE(*copy.source < c);
      const PlannedCopy& source = plan_.copies[*copy.source];
      CHECK(source.from == copy.of);
      CHECK(source.produced_at <= copy.produced_at);
      CHECK(copy.produced_at <= source.freed_at);
      if (!viewed) CHECK(copy.src == source.dst);
    } else {
      REQUIRE(produced_.contains(copy.of));
      CHECK(produced_[copy.of].slot < copy.produced_at);
      if (!viewed) CHECK(copy.src == produced_[copy.of].layout);
    }
  }

  // The views lead to the value that it is a copy of.
  void check_views(const PlannedCopy& copy) {
    std::string at = copy.of;
    const auto view = [&](const std::string& name) -> const PlannedNode& {
      REQUIRE(node_.contains(name));
      const PlannedNode& node = plan_.nodes[node_[name]];
      REQUIRE(node.inputs.size() == 1);
      REQUIRE(node.outputs.size() == 1);
      return node;
    };
    for (const std::string& name : copy.undone) {
      CHECK(view(name).outputs[0].name == at);
      at = view(name).inputs[0].from;
    }
    for (const std::string& name : copy.views) {
      CHECK(view(name).inputs[0].from == at);
      at = view(name).outputs[0].name;
    }
    CHECK(at == copy.from);
  }

  void check_steps(const PlannedCopy& copy) {
    const Layout* before = &copy.src;
    for (const RedistributeStep& step : copy.steps) {
      CHECK(step.src == *before);
      before = &step.dst;
      communication_ += step.nanoseconds;
      const bool reduces = step.kind == CollectiveKind::kAllReduce ||
                           step.kind == CollectiveKind::kReduceScatter;
      CHECK(step.reduce_op.has_value() == reduces);
    }
    CHECK(*before == copy.dst);
  }

  // Never two of a value in a layout at once, but for slices, which are free.
  void check_alone(std::size_t c) {
    const PlannedCopy& copy = plan_.copies[c];
    for (std::size_t other = 0; other < c; ++other) {
      const PlannedCopy& before = plan_.copies[other];
      if (before.from != copy.from || !(before.dst == copy.dst) ||
          before.nanoseconds() == 0 || copy.nanoseconds() == 0) {
        continue;
      }
      CHECK((before.freed_at < copy.produced_at ||
             copy.freed_at < before.produced_at));
    }
  }

  // The copies of a bucket start and end together, with equal collectives.
  void check_bucket(std::size_t c) {
    const PlannedCopy& copy = plan_.copies[c];
    if (!copy.bucket) return;
    REQUIRE(*copy.bucket <= c);
    const PlannedCopy& first = plan_.copies[*copy.bucket];
    CHECK(first.bucket == copy.bucket);
    CHECK_FALSE(copy.source);
    CHECK(copy.in_flight == first.in_flight);
    if (!copy.in_flight) CHECK(copy.produced_at == first.produced_at);
    REQUIRE(copy.steps.size() == first.steps.size());
    for (std::size_t s = 0; s < copy.steps.size(); ++s) {
      CHECK(copy.steps[s].kind == first.steps[s].kind);
      CHECK(copy.steps[s].mesh_dims == first.steps[s].mesh_dims);
      CHECK(copy.steps[s].dtype == first.steps[s].dtype);
    }
    const auto members = std::count_if(
        plan_.copies.begin(), plan_.copies.end(),
        [&](const PlannedCopy& other) { return other.bucket == copy.bucket; });
    CHECK(members > 1);
  }

  void check_input(const PlannedInput& input, std::int64_t at) {
    CAPTURE(input.from);
    REQUIRE(produced_.contains(input.from));
    if (!input.copy) {
      CHECK(input.layout == produced_[input.from].layout);
      CHECK(produced_[input.from].slot < at);
      return;
    }
    REQUIRE(*input.copy < plan_.copies.size());
    const PlannedCopy& copy = plan_.copies[*input.copy];
    CHECK(copy.from == input.from);
    CHECK(copy.dst == input.layout);
    CHECK(copy.produced_at <= at);
    CHECK(at <= copy.freed_at);
    if (copy.in_flight) CHECK(copy.in_flight->waited_at <= at);
  }

  void check_nodes() {
    for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
      const PlannedNode& node = plan_.nodes[n];
      CAPTURE(node.name);
      for (const PlannedInput& input : node.inputs) {
        check_input(input, static_cast<std::int64_t>(n));
      }
      if (!node.outputs.empty()) {
        CHECK(static_cast<int>(node.assignment.size()) == plan_.mesh.ndim());
      }
      compute_ += node.compute_nanoseconds;
      std::size_t collectives = 0;
      if (node.local.program) {
        CHECK(node.local.arguments.empty());
        CHECK(node.local.program->outputs.size() == node.outputs.size());
        for (const auto& step : node.local.program->steps) {
          const auto* inside = std::get_if<LocalRunCollective>(&step);
          if (inside == nullptr) continue;
          REQUIRE(collectives < node.inside.size());
          const CollectiveStep& said = node.inside[collectives++];
          CHECK(said.kind == inside->kind);
          CHECK(said.reduce_op == inside->reduce_op);
          CHECK(said.mesh_dims == inside->mesh_dims);
        }
      }
      CHECK(collectives == node.inside.size());
      for (const CollectiveStep& step : node.inside) {
        communication_ += step.nanoseconds;
      }
    }
  }

  void check_updates() {
    std::int64_t all = 0;
    for (std::size_t u = 0; u < plan_.updates.size(); ++u) {
      const PlannedUpdate& update = plan_.updates[u];
      CAPTURE(update.parameter);
      const std::int64_t at = nodes_ + static_cast<std::int64_t>(u);
      check_input(update.value, at);
      CHECK(update.value.from == update.parameter);
      CHECK(update.value.layout == update.result.tensor.layout);
      if (update.gradient) {
        check_input(*update.gradient, at);
        CHECK(update.gradient->layout == update.result.tensor.layout);
      }
      all += update.compute_nanoseconds;
    }
    CHECK(all == plan_.optimizer_nanoseconds);
    compute_ += all;
  }

  void check_outputs() {
    for (const PlannedOutput& output : plan_.outputs) {
      check_input(output.value, end_);
      CHECK_FALSE(output.value.layout.has_partial());
      if (output.target.empty()) continue;
      const auto target = std::find_if(
          plan_.values.begin(), plan_.values.end(),
          [&](const PlannedValue& v) { return v.name == output.target; });
      REQUIRE(target != plan_.values.end());
      CHECK(output.value.layout ==
            (output.kind == OutputKind::kGradient
                 ? target->state_layout.value_or(target->tensor.layout)
                 : target->tensor.layout));
    }
  }

  void check_totals() {
    CHECK(*plan_.objective_nanoseconds == compute_ + communication_ - hidden_);
    CHECK(plan_.summary.compute_nanoseconds == compute_);
    CHECK(plan_.summary.communication_nanoseconds == communication_);
    CHECK(plan_.lower_bound_nanoseconds <= *plan_.objective_nanoseconds);
    std::int64_t overlapped = 0;
    for (const PlannedWindow& window : plan_.windows) {
      overlapped +=
          std::min(window.compute_nanoseconds, window.overlappable_nanoseconds);
    }
    CHECK(hidden_ == overlapped);
    const PlanMemory& memory = plan_.memory;
    CHECK(memory.peak_bytes == memory.parameter_bytes + memory.optimizer_bytes +
                                   memory.gradient_bytes +
                                   memory.activation_bytes +
                                   memory.gathered_bytes + memory.buffer_bytes);
    if (memory.limit_bytes) CHECK(memory.peak_bytes <= *memory.limit_bytes);
    // A bound of a smaller space proves nothing of the named one.
    const bool proven =
        plan_.space.is_named() &&
        plan_.lower_bound_nanoseconds == *plan_.objective_nanoseconds;
    CHECK((plan_.status == PlanStatus::kOptimal) ==
          (proven && plan_.unsupported.empty()));
  }

  const Plan& plan_;
  std::int64_t nodes_;
  std::int64_t end_;
  std::map<std::string, Made> produced_;
  std::map<std::string, std::size_t> node_;
  std::int64_t compute_ = 0;
  std::int64_t communication_ = 0;
  std::int64_t hidden_ = 0;
};

inline void check_plan(const Plan& plan) { PlanChecker(plan).run(); }

}  // namespace shardprop::test
