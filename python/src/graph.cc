// Graphs, read from files or from memory.
#include <shardprop/graph/graph.h>

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/plan.h>

#include "bindings.h"
#include "raise.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace shardprop::python {
namespace {

using Bounds = std::map<std::string, std::int64_t>;

LoadOptions load_options(std::int64_t max_input_bytes,
                         const std::string& program, const Bounds& bounds) {
  LoadOptions options;
  options.max_input_bytes = max_input_bytes;
  options.program = program;
  options.bounds = bounds;
  return options;
}

// How often each operator is called, by name.
std::map<std::string, std::int64_t> operators(const Graph& graph) {
  std::map<std::string, std::int64_t> counts;
  for (const Node& node : graph.nodes()) ++counts[std::string(node.op_name())];
  return counts;
}

nb::dict counts_of(const Graph& graph) {
  nb::dict counts;
  for (const auto& [name, count] : operators(graph)) {
    counts[nb::str(name.c_str())] = count;
  }
  return counts;
}

std::vector<std::pair<std::string, std::string>> inputs(const Graph& graph) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const GraphInput& input : graph.inputs()) {
    const Value& value = graph.value(input.value);
    rows.emplace_back(
        value.qualified_name.empty() ? value.name : value.qualified_name,
        to_string(input.kind));
  }
  return rows;
}

}  // namespace

void bind_graph(nb::module_& module) {
  nb::class_<Graph>(module, "Graph")
      .def_prop_ro("name", [](const Graph& g) { return g.name(); })
      .def_prop_ro("hash", [](const Graph& g) { return hash_text(g.hash()); })
      .def("__len__", [](const Graph& g) { return g.nodes().size(); })
      .def_prop_ro("has_backward", &Graph::has_backward)
      .def_prop_ro("operators", counts_of)
      .def_prop_ro("inputs", inputs)
      .def_prop_ro("notes", [](const Graph& g) {
        return std::vector<std::string>(g.notes().begin(), g.notes().end());
      });

  module.def(
      "load_graph",
      [](const std::string& path, std::int64_t max_input_bytes,
         const std::string& program, const Bounds& bounds) {
        const nb::gil_scoped_release released;
        auto graph = load_graph(path, *OpLibrary::standard(),
                                load_options(max_input_bytes, program, bounds));
        const nb::gil_scoped_acquire held;
        return value_of(std::move(graph));
      },
      nb::arg("path"), nb::arg("max_input_bytes"), nb::arg("program"),
      nb::arg("bounds"));
  module.def(
      "read_graph",
      [](const nb::bytes& bytes, const std::string& name,
         std::int64_t max_input_bytes, const std::string& program,
         const Bounds& bounds) {
        return value_of(read_graph(
            {bytes.c_str(), bytes.size()}, name, *OpLibrary::standard(),
            load_options(max_input_bytes, program, bounds)));
      },
      nb::arg("bytes"), nb::arg("name"), nb::arg("max_input_bytes"),
      nb::arg("program"), nb::arg("bounds"));
}

}  // namespace shardprop::python
