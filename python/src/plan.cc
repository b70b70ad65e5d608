// Bindings that make, read and print plans.
#include <shardprop/plan/plan.h>

#include <shardprop/io/topology_file.h>
#include <shardprop/report/plan_json.h>
#include <shardprop/report/plan_text.h>
#include <shardprop/request/operator_file.h>
#include <shardprop/request/plan_request.h>
#include <shardprop/request/saved_plan.h>

#include "bindings.h"
#include "raise.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace shardprop::python {
namespace {

using OptionTexts = std::vector<std::tuple<std::string, std::string>>;

PlanRequest request_of(const LoadedGraph& loaded, const std::string& mesh,
                       const std::string& topology, const OptionTexts& options,
                       const std::vector<std::string>& rules) {
  PlanRequest request;
  request.graph = loaded.graph;
  request.mesh = value_of(planned_mesh(mesh));
  request.topology = value_of(load_topology(topology));
  request.reading = loaded.reading;
  std::vector<GivenText> given_rules;
  for (const std::string& rule : rules) {
    given_rules.push_back({rule, "rule " + rule});
  }
  replace_rules(request.reading, value_of(with_files(std::move(given_rules))));
  value_of(check_rules(request.reading.rules, *request.graph));
  drop_unused(request.reading.rules, *request.graph);
  request.library = value_of(library_with(request.reading.rules));
  std::vector<GivenOption> given;
  for (const auto& [name, text] : options) given.push_back({name, text, {}});
  request.options =
      value_of(plan_options(given, request.topology, SearchLimit::kWork));
  return request;
}

std::optional<double> microseconds(const std::optional<std::int64_t>& ns) {
  if (!ns) return std::nullopt;
  return static_cast<double>(*ns) / 1e3;
}

// Calls back into Python while a plan is made, and ends the search when Python
// has a signal to handle or the callback raises. A signal keeps the best plan
// so far; an exception of the callback is raised again at the end.
class Progress {
 public:
  explicit Progress(nb::object callback) : callback_(std::move(callback)) {}

  std::stop_token token() const { return source_.get_token(); }
  bool interrupted() const { return interrupted_; }

  void operator()(const PlanProgress& now) {
    const nb::gil_scoped_acquire held;
    if (source_.stop_requested()) return;
    if (PyErr_CheckSignals() != 0) {
      // After a KeyboardInterrupt the best plan so far is the answer.
      interrupted_ = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
      if (interrupted_) {
        PyErr_Clear();
      } else {
        thrown_ = std::make_exception_ptr(nb::python_error());
      }
      source_.request_stop();
      return;
    }
    if (callback_.is_none()) return;
    static constexpr const char* kPhases[] = {"set up", "search", "report"};
    try {
      callback_(kPhases[static_cast<std::size_t>(now.phase)], now.seconds,
                microseconds(now.objective), microseconds(now.lower_bound));
    } catch (nb::python_error& error) {
      interrupted_ = error.matches(PyExc_KeyboardInterrupt);
      if (!interrupted_) thrown_ = std::current_exception();
      source_.request_stop();
    }
  }

  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  nb::object callback_;
  std::stop_source source_;
  std::exception_ptr thrown_;
  bool interrupted_ = false;
};

// Returns the plan, and whether it was interrupted.
std::tuple<Plan, bool> make(const LoadedGraph& graph, const std::string& mesh,
                            const std::string& topology,
                            const OptionTexts& options,
                            const std::vector<std::string>& rules,
                            const Plan* start, const Plan* like,
                            bool keeps_warm_start, nb::object callback) {
  PlanRequest request = request_of(graph, mesh, topology, options, rules);
  if (start != nullptr)
    request.options.start_from = std::make_shared<const Plan>(*start);
  if (like != nullptr) request.like = std::make_shared<const Plan>(*like);
  request.options.keeps_warm_start = keeps_warm_start;
  Progress progress(std::move(callback));
  request.options.stop = progress.token();
  request.options.progress = [&](const PlanProgress& now) { progress(now); };
  auto made = [&] {
    const nb::gil_scoped_release released;
    return plan(request);
  }();
  progress.rethrow();
  if (!made && progress.interrupted()) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nb::python_error();
  }
  return {value_of(std::move(made)), progress.interrupted()};
}

nb::list option_table() {
  nb::list rows;
  for (const OptionInfo& info : plan_option_table()) {
    nb::dict row;
    row["name"] = std::string(info.name);
    row["description"] = std::string(info.description);
    row["range"] = info.range;
    row["default"] = info.fallback;
    row["choices"] = info.choices;
    row["repeatable"] = info.repeatable;
    row["flag"] = info.value.empty();
    rows.append(row);
  }
  return rows;
}

nb::list topologies() {
  nb::list rows;
  for (const Topology& topology : topology_presets()) {
    rows.append(nb::make_tuple(topology.name, topology.description));
  }
  return rows;
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<Plan>(module, "Plan")
      .def_prop_ro("graph_hash", [](const Plan& p) { return p.graph_hash; })
      // The rules that its graph was read with.
      .def_prop_ro("rules",
                   [](const Plan& p) {
                     std::vector<std::string> rules;
                     for (const auto& [name, text] : p.options) {
                       if (name == "rule") rules.push_back(text);
                     }
                     return rules;
                   })
      .def(
          "text",
          [](const Plan& p, bool detail) {
            TextOptions options;
            options.detail = detail;
            return plan_to_text(p, options);
          },
          nb::arg("detail"))
      .def("json", [](const Plan& p) { return plan_to_json(p); });
  module.def("plan", &make, nb::arg("graph"), nb::arg("mesh"),
             nb::arg("topology"), nb::arg("options"), nb::arg("rules"),
             nb::arg("start").none(), nb::arg("like").none(),
             nb::arg("keep_warm_start"), nb::arg("progress").none());
  module.def(
      "read_plan",
      [](const std::string& json) { return value_of(parse_plan_json(json)); },
      nb::arg("json"));
  module.def(
      "load_plan",
      [](const std::string& path, std::int64_t max_input_bytes) {
        return value_of(load_plan(path, path, max_input_bytes));
      },
      nb::arg("path"), nb::arg("max_input_bytes"));
  module.def("plan_options", &option_table);
  module.def("topologies", &topologies);
}

}  // namespace shardprop::python
