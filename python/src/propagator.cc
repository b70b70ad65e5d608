// Bindings of the propagator: one operator at a time, and the program of each
// rank.
#include <shardprop/propagate/caching_propagator.h>

#include <shardprop/io/topology_file.h>
#include <shardprop/redistribute/planner.h>
#include <shardprop/request/operator_file.h>

#include "bindings.h"
#include "call_of.h"
#include "raise.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace nb = nanobind;

namespace shardprop::python {
namespace {

using Sizes = std::vector<std::int64_t>;

Sizes sizes_of(const Dims& dims) { return {dims.begin(), dims.end()}; }

nb::tuple tensor_row(const TensorSpec& spec) {
  const TensorMeta& meta = spec.meta();
  return nb::make_tuple(sizes_of(meta.shape()), sizes_of(meta.strides()),
                        std::string(to_string(meta.dtype())),
                        to_string(spec.layout()));
}

nb::list path_of(const RedistributePlan& plan) {
  nb::list path;
  for (const RedistributeStep& step : plan.steps) {
    path.append(nb::make_tuple(std::string(to_string(step.kind)),
                               to_string(step.src), to_string(step.dst)));
  }
  return path;
}

std::vector<int> dims_of(const DimIndices& dims) {
  return {dims.begin(), dims.end()};
}

// Sharding is the answer to one call.
class Sharding {
 public:
  Sharding(const ShardingPropagator& propagator, OpSchema op,
           std::shared_ptr<const OutputSharding> found)
      : mesh_(propagator.mesh()), found_(std::move(found)) {
    // Operators on lists are propagated element by element and have no local
    // strategy.
    if (found_->assignments.size() == 1) {
      local_ = value_of(propagator.local_strategy(op, *found_));
    }
  }

  nb::list inputs() const {
    nb::list rows;
    for (const TensorSpec& spec : found_->inputs) {
      rows.append(to_string(spec.layout()));
    }
    return rows;
  }
  nb::list outputs() const {
    nb::list rows;
    for (const TensorSpec& spec : found_->outputs) {
      rows.append(tensor_row(spec));
    }
    return rows;
  }
  std::vector<int> output_slots() const {
    return {found_->output_slots.begin(), found_->output_slots.end()};
  }
  nb::dict moves() const {
    nb::dict rows;
    for (const InputMove& move : found_->moves) {
      rows[nb::int_(move.input)] = path_of(*move.plan);
    }
    return rows;
  }
  double redistribute_us() const {
    return static_cast<double>(found_->redistribute_nanoseconds) / 1e3;
  }
  double inside_us() const {
    return static_cast<double>(found_->inside_nanoseconds) / 1e3;
  }
  bool has_rank_arguments() const { return !found_->rank_arguments.empty(); }
  bool needs_program() const { return local_ && local_->needs_program(); }

  // Returns arguments by name, for the rank at the row-major index.
  nb::dict rank_arguments(std::int64_t index) const {
    const Coordinate at = coordinate(index);
    nb::dict values;
    for (const RankArgument& argument : found_->rank_arguments) {
      const Sizes found = argument.at(at);
      values[nb::str(argument.name().c_str())] =
          argument.is_list() ? nb::cast(found) : nb::cast(found.front());
    }
    return values;
  }

  // Returns arguments by name if they are equal on all ranks, and None if they
  // differ.
  nb::object shared_arguments() const {
    nb::dict values;
    for (const RankArgument& argument : found_->rank_arguments) {
      const Sizes first = argument.at(mesh_.coordinate_at_index(0));
      for (std::int64_t index = 1; index < mesh_.size(); ++index) {
        if (argument.at(mesh_.coordinate_at_index(index)) != first) {
          return nb::none();
        }
      }
      values[nb::str(argument.name().c_str())] =
          argument.is_list() ? nb::cast(first) : nb::cast(first.front());
    }
    return values;
  }

  // Returns steps and results of the rank's program; see torch/_local_call.py.
  nb::tuple program(std::int64_t index) const {
    const Coordinate at = coordinate(index);
    // Operators on lists run as calls of their elements.
    if (!local_) {
      raise(Error{ErrorCode::kInvalidArgument,
                  "an operator on lists has no program of its own",
                  {},
                  {},
                  "ask whether it needs_program first"});
    }
    const LocalProgram program = local_->program();
    nb::list steps;
    for (const LocalStep& step : program.steps) {
      steps.append(
          std::visit([&](const auto& one) { return step_row(one, at); }, step));
    }
    nb::list results;
    for (const LocalRef& ref : program.outputs) results.append(ref_row(ref));
    return nb::make_tuple(steps, results);
  }

 private:
  Coordinate coordinate(std::int64_t index) const {
    if (index < 0 || index >= mesh_.size()) {
      raise(Error{ErrorCode::kMeshCoordinate,
                  "index " + std::to_string(index) + " is not on mesh " +
                      to_string(mesh_),
                  {},
                  {},
                  "count the ranks of the mesh from 0, row by row"});
    }
    return mesh_.coordinate_at_index(index);
  }

  static nb::tuple ref_row(const LocalRef& ref) {
    return nb::make_tuple("ref", ref.step, ref.index);
  }
  nb::object value_row(const LocalOp::Value& value, const Coordinate& at) const;
  nb::tuple step_row(const LocalOp& op, const Coordinate& at) const {
    nb::list args;
    for (const auto& [name, value] : op.args) {
      args.append(nb::make_tuple(name, value_row(value, at)));
    }
    return nb::make_tuple("op", op.name, args);
  }
  nb::tuple step_row(const LocalCollective& collective,
                     const Coordinate&) const {
    return nb::make_tuple("collective", std::string(to_string(collective.kind)),
                          ref_row(collective.value),
                          collective.op
                              ? nb::cast(std::string(to_string(*collective.op)))
                              : nb::none(),
                          dims_of(collective.mesh_dims));
  }

  DeviceMesh mesh_;
  std::shared_ptr<const OutputSharding> found_;
  std::shared_ptr<const LocalStrategy> local_;  // null for lists
};

nb::object Sharding::value_row(const LocalOp::Value& value,
                               const Coordinate& at) const {
  if (const auto* ref = std::get_if<LocalRef>(&value)) return ref_row(*ref);
  if (const auto* refs = std::get_if<std::vector<LocalRef>>(&value)) {
    nb::list rows;
    for (const LocalRef& ref : *refs) rows.append(ref_row(ref));
    return rows;
  }
  if (const auto* scalar = std::get_if<RankScalar>(&value)) {
    return nb::cast(evaluate(*scalar, local_->context(), at));
  }
  if (const auto* scalars = std::get_if<std::vector<RankScalar>>(&value)) {
    nb::list rows;
    for (const RankScalar& scalar : *scalars) {
      rows.append(evaluate(scalar, local_->context(), at));
    }
    return rows;
  }
  return to_python(std::get<Argument>(value));
}

class Propagator {
 public:
  Propagator(const std::vector<std::pair<std::string, std::int64_t>>& dims,
             const Sizes& ranks, const std::string& topology,
             const std::vector<std::string>& rules)
      : cache_(value_of(
            CachingPropagator::create(make(dims, ranks, topology, rules)))) {}

  TensorSpec spec(const Sizes& shape, const Sizes& strides,
                  const std::string& dtype, const std::string& layout) const {
    return value_of(TensorSpec::create(
        cache_.mesh(), value_of(Layout::parse(layout)),
        value_of(TensorMeta::create(Dims(shape.begin(), shape.end()),
                                    Dims(strides.begin(), strides.end()),
                                    value_of(parse_dtype(dtype))))));
  }

  TensorSpec parse(const std::string& text) const {
    return value_of(TensorSpec::parse(text, cache_.mesh()));
  }

  // `results` states the specs that the library cannot infer.
  Sharding propagate(
      const std::string& name, const nb::sequence& args, const nb::dict& kwargs,
      const std::optional<std::vector<std::optional<TensorSpec>>>& results)
      const {
    const ShardingPropagator propagator = cache_.propagator();
    Call call = call_of(*propagator.library(), name, args, kwargs);
    if (results) {
      std::vector<std::optional<TensorMeta>> metas;
      for (const auto& result : *results) {
        metas.push_back(result ? std::optional(result->meta()) : std::nullopt);
      }
      set_results(call.op, std::move(metas));
    }
    auto found = value_of(cache_.propagate(call.op, call.operands));
    return Sharding(propagator, std::move(call.op), std::move(found));
  }

  nb::list redistribute(const TensorSpec& src, const TensorSpec& dst) const {
    const ShardingPropagator propagator = cache_.propagator();
    return path_of(
        value_of(plan_redistribution(src, dst, propagator.topology())));
  }

  std::vector<std::string> operators() const {
    return cache_.propagator().library()->names();
  }

  nb::dict statistics() const {
    const CacheStatistics seen = cache_.statistics();
    nb::dict row;
    row["hits"] = seen.hits;
    row["shared_hits"] = seen.shared_hits;
    row["misses"] = seen.misses;
    row["evictions"] = seen.evictions;
    row["entries"] = seen.entries;
    row["bytes"] = seen.bytes;
    return row;
  }

 private:
  static ShardingPropagator make(
      const std::vector<std::pair<std::string, std::int64_t>>& dims,
      const Sizes& ranks, const std::string& topology,
      const std::vector<std::string>& rules) {
    std::vector<GivenText> given;
    for (const std::string& rule : rules) {
      given.push_back({rule, "rule " + rule});
    }
    std::vector<MeshDim> named;
    for (const auto& [name, size] : dims) named.push_back({name, size});
    DeviceMesh mesh =
        value_of(ranks.empty() ? DeviceMesh::create(named)
                               : DeviceMesh::from_ranks(named, ranks));
    return value_of(ShardingPropagator::create(
        std::move(mesh), value_of(load_topology(topology)),
        value_of(library_with(value_of(with_files(std::move(given)))))));
  }

  CachingPropagator cache_;
};

}  // namespace

void bind_propagator(nb::module_& module) {
  nb::class_<TensorSpec>(module, "Spec")
      .def("__repr__", [](const TensorSpec& spec) { return to_string(spec); })
      .def("__eq__",
           [](const TensorSpec& a, const TensorSpec& b) { return a == b; })
      .def("__hash__",
           [](const TensorSpec& s) { return std::hash<TensorSpec>()(s); })
      .def_prop_ro("layout",
                   [](const TensorSpec& s) { return to_string(s.layout()); });

  nb::class_<Sharding>(module, "Sharding")
      .def_prop_ro("inputs", &Sharding::inputs)
      .def_prop_ro("outputs", &Sharding::outputs)
      .def_prop_ro("output_slots", &Sharding::output_slots)
      .def_prop_ro("moves", &Sharding::moves)
      .def_prop_ro("redistribute_us", &Sharding::redistribute_us)
      .def_prop_ro("inside_us", &Sharding::inside_us)
      .def_prop_ro("has_rank_arguments", &Sharding::has_rank_arguments)
      .def_prop_ro("needs_program", &Sharding::needs_program)
      .def("rank_arguments", &Sharding::rank_arguments, nb::arg("index"))
      .def("shared_arguments", &Sharding::shared_arguments)
      .def("program", &Sharding::program, nb::arg("index"));

  nb::class_<Propagator>(module, "Propagator")
      .def(nb::init<const std::vector<std::pair<std::string, std::int64_t>>&,
                    const Sizes&, const std::string&,
                    const std::vector<std::string>&>(),
           nb::arg("dims"), nb::arg("ranks"), nb::arg("topology"),
           nb::arg("rules") = std::vector<std::string>())
      .def("spec", &Propagator::spec, nb::arg("shape"), nb::arg("strides"),
           nb::arg("dtype"), nb::arg("layout"))
      .def("parse", &Propagator::parse, nb::arg("text"))
      .def("propagate", &Propagator::propagate, nb::arg("op"), nb::arg("args"),
           nb::arg("kwargs"), nb::arg("results").none() = nb::none())
      .def("redistribute", &Propagator::redistribute, nb::arg("src"),
           nb::arg("dst"))
      .def("operators", &Propagator::operators)
      .def("statistics", &Propagator::statistics);
}

}  // namespace shardprop::python
