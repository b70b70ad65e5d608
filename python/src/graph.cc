// Bindings of graphs, which are read from files or from memory.
#include <shardprop/graph/graph.h>

#include <shardprop/plan/plan.h>
#include <shardprop/request/graph_reading.h>

#include "bindings.h"
#include "raise.h"

#include <io/inflate.h>
#include <io/input_file.h>
#include <io/pt2_archive.h>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace shardprop::python {
namespace {

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;
// The path of each further export, or its name and its bytes.
using Exports = std::vector<std::pair<std::string, std::optional<nb::bytes>>>;

GraphReading reading_of(std::int64_t max_input_bytes,
                        const std::string& program, const Sizes& bounds,
                        const Sizes& sizes, const Exports& other_sizes,
                        const std::string& blocks,
                        const std::vector<std::string>& rules) {
  GraphReading reading;
  reading.max_input_bytes = max_input_bytes;
  reading.program = {program, "program " + program};
  reading.blocks = {blocks, "blocks " + blocks};
  const auto add = [&](const char* name, const std::string& text) {
    add_option(reading, name, {text, std::string(name) + " " + text});
  };
  for (const std::string& rule : rules) add("rule", rule);
  for (const auto& [name, size] : bounds) {
    add("bound", name + "=" + std::to_string(size));
  }
  for (const auto& [name, size] : sizes) {
    add("size", name + "=" + std::to_string(size));
  }
  for (const auto& [name, bytes] : other_sizes) {
    GivenExport other{{name, nullptr}, "other_sizes " + name};
    if (bytes) {
      other.file.bytes =
          std::make_shared<const std::string>(bytes->c_str(), bytes->size());
    }
    reading.other_sizes.push_back(std::move(other));
  }
  return reading;
}

// Counts the calls of each operator, by name.
std::map<std::string, std::int64_t> operators(const Graph& graph) {
  std::map<std::string, std::int64_t> counts;
  for (const Node& node : graph.nodes()) ++counts[std::string(node.op_name())];
  return counts;
}

nb::dict counts_of(const LoadedGraph& loaded) {
  nb::dict counts;
  for (const auto& [name, count] : operators(*loaded.graph)) {
    counts[nb::str(name.c_str())] = count;
  }
  return counts;
}

std::vector<std::pair<std::string, std::string>> inputs(
    const LoadedGraph& loaded) {
  const Graph& graph = *loaded.graph;
  std::vector<std::pair<std::string, std::string>> rows;
  for (const GraphInput& input : graph.inputs()) {
    const Value& value = graph.value(input.value);
    rows.emplace_back(
        value.qualified_name.empty() ? value.name : value.qualified_name,
        to_string(input.kind));
  }
  return rows;
}

// Returns the JSON of a program. In an archive it is the record that
// load_graph() reads.
std::string json_in(std::string_view bytes, std::int64_t limit,
                    const std::string& program) {
  if (pt2::is_zip(bytes)) {
    return value_of(pt2::read_archive(bytes, program, limit)).json;
  }
  if (is_gzip(bytes)) return value_of(inflate_gzip(bytes, limit));
  return std::string(bytes);
}

// Only this record of an archive is read, since the archive may hold large
// weights.
std::string json_at(const std::string& path, std::int64_t limit,
                    const std::string& program) {
  InputFile file = value_of(InputFile::open(path));
  if (file.is_plain()) {
    std::string start(2, '\0');
    start.resize(value_of(file.read(start.data(), start.size())));
    if (pt2::is_zip(start)) {
      return value_of(pt2::read_archive_file(path, program, limit)).json;
    }
    file = value_of(InputFile::open(path));
  }
  return json_in(value_of(file.read_all(limit)), limit, program);
}

nb::bytes bytes_of(const std::string& text) {
  return nb::bytes(text.data(), text.size());
}

}  // namespace

void bind_graph(nb::module_& module) {
  // Python keeps the source of a graph in an attribute, to pickle the graph.
  nb::class_<LoadedGraph>(
      module, "Graph", nb::dynamic_attr(),
      "An exported program, read for planning: load_graph() "
      "returns one. It never changes.")
      .def_prop_ro(
          "name", [](const LoadedGraph& g) { return g.graph->name(); },
          "The file's name without its ending, or the module's class.")
      .def_prop_ro(
          "hash",
          [](const LoadedGraph& g) { return hash_text(g.graph->hash()); },
          "Hash of the program's meaning: a plan records the one that it was "
          "made for.")
      .def(
          "__len__",
          [](const LoadedGraph& g) { return g.graph->nodes().size(); },
          "Number of operator calls.")
      .def_prop_ro(
          "has_backward",
          [](const LoadedGraph& g) { return g.graph->has_backward(); },
          "Whether the program holds a backward pass.")
      .def_prop_ro("operators", counts_of,
                   "Number of calls of each operator, by its name.")
      .def_prop_ro(
          "inputs", inputs,
          "Name and kind (parameter, buffer, constant or user) of each "
          "input.")
      .def_prop_ro(
          "notes",
          [](const LoadedGraph& g) {
            std::vector<std::string> texts;
            for (const ReadingNote& note : g.graph->notes()) {
              texts.push_back(to_string(note));
            }
            return texts;
          },
          "Assumptions made while the program was read.");

  module.def(
      "load_graph",
      [](const std::string& path, std::int64_t max_input_bytes,
         const std::string& program, const Sizes& bounds, const Sizes& sizes,
         const Exports& other_sizes, const std::string& blocks,
         const std::vector<std::string>& rules) {
        GraphReading reading = reading_of(max_input_bytes, program, bounds,
                                          sizes, other_sizes, blocks, rules);
        auto loaded = [&] {
          const nb::gil_scoped_release released;
          return load_graph(path, std::move(reading));
        }();
        return value_of(std::move(loaded));
      },
      nb::arg("path"), nb::arg("max_input_bytes"), nb::arg("program"),
      nb::arg("bounds"), nb::arg("sizes"), nb::arg("other_sizes"),
      nb::arg("blocks"), nb::arg("rules"));
  module.def(
      "read_graph",
      [](const nb::bytes& bytes, const std::string& name,
         std::int64_t max_input_bytes, const std::string& program,
         const Sizes& bounds, const Sizes& sizes, const Exports& other_sizes,
         const std::string& blocks, const std::vector<std::string>& rules) {
        return value_of(
            read_graph({bytes.c_str(), bytes.size()}, name,
                       reading_of(max_input_bytes, program, bounds, sizes,
                                  other_sizes, blocks, rules)));
      },
      nb::arg("bytes"), nb::arg("name"), nb::arg("max_input_bytes"),
      nb::arg("program"), nb::arg("bounds"), nb::arg("sizes"),
      nb::arg("other_sizes"), nb::arg("blocks"), nb::arg("rules"));
  module.def(
      "program_json",
      [](const std::string& path, std::int64_t max_input_bytes,
         const std::string& program) {
        return bytes_of(json_at(path, max_input_bytes, program));
      },
      nb::arg("path"), nb::arg("max_input_bytes"), nb::arg("program"));
  module.def(
      "program_json_in",
      [](const nb::bytes& bytes, std::int64_t max_input_bytes,
         const std::string& program) {
        return bytes_of(
            json_in({bytes.c_str(), bytes.size()}, max_input_bytes, program));
      },
      nb::arg("bytes"), nb::arg("max_input_bytes"), nb::arg("program"));
}

}  // namespace shardprop::python
