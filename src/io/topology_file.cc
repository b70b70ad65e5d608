#include <shardprop/io/topology_file.h>

#include "base/edit_distance.h"
#include "base/guard.h"
#include "base/try.h"
#include "io/input_file.h"
#include "io/toml_letters.h"
#include "mesh/topology_figures.h"

#include <fmt/format.h>

// From its headers, with numbers by std::from_chars: as packages build it,
// numbers are read by streams, which say "could not be interpreted" where
// memory ran out.
#define TOML_HEADER_ONLY 1
#define TOML_FLOAT_CHARCONV 1
#include <toml++/toml.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// Far more than any machine needs, and few enough that what the parser does
// with each level of a dotted key fits on its stack.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 20;
constexpr std::ptrdiff_t kMostDots = 10'000;

// x.toml:3:14
std::string place(const std::string& origin, const toml::source_region& of) {
  return fmt::format("{}:{}:{}", origin, of.begin.line, of.begin.column);
}
std::string place(const std::string& origin, const toml::node& node) {
  return place(origin, node.source());
}
// Of what stands behind so much of the text. Columns count letters.
std::string place(const std::string& origin, std::string_view before) {
  const std::size_t line = std::min(before.rfind('\n') + 1, before.size());
  const auto letters = std::ranges::count_if(before.substr(line), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  });
  return fmt::format("{}:{}:{}", origin, std::ranges::count(before, '\n') + 1,
                     letters + 1);
}
// Of the value behind a key; of the file where there is none.
std::string place(const std::string& origin, const toml::table& table,
                  std::string_view key) {
  const toml::node* node = table.get(key);
  return node == nullptr ? origin : place(origin, *node);
}

constexpr const char* kHelp =
    "the keys and their units are those that `shardprop topologies` prints";

tl::unexpected<Error> refuse(const std::string& where, std::string message,
                             std::string help = kHelp) {
  return fail(Error{ErrorCode::kTopologyFile,
                    std::move(message),
                    where,
                    {},
                    std::move(help)});
}

// A key that was read is taken out of its table, so that what is left is
// unknown.
template <class T>
Result<std::optional<T>> take(toml::table& table, std::string_view key,
                              const std::string& origin,
                              std::string_view wanted) {
  toml::node* node = table.get(key);
  if (node == nullptr) return std::optional<T>();
  std::optional<T> value = node->value<T>();
  if (!value) {
    return refuse(place(origin, *node),
                  fmt::format("`{}` is not {}", key, wanted));
  }
  table.erase(key);
  return value;
}

Result<void> refuse_rest(const toml::table& table, const std::string& origin,
                         std::span<const std::string_view> known) {
  for (const auto& [key, node] : table) {
    return refuse(place(origin, key.source()),
                  fmt::format("unknown key `{}`", key.str().substr(0, 80)),
                  did_you_mean(key.str(), known));
  }
  return {};
}

Result<Figure> read_figure(toml::node& node, std::string_view key,
                           const std::string& origin) {
  if (const auto number = node.value<double>(); number && node.is_number()) {
    return Figure{*number, origin};
  }
  toml::table* table = node.as_table();
  if (table == nullptr) {
    return refuse(place(origin, node), fmt::format("`{}` is not a number", key),
                  "write a number or {value = 1.0, source = \"...\"}");
  }
  SP_ASSIGN(const auto value,
            take<double>(*table, "value", origin, "a number"));
  SP_ASSIGN(auto source, take<std::string>(*table, "source", origin, "a text"));
  if (!value) {
    return refuse(place(origin, node), fmt::format("`{}` has no value", key));
  }
  static constexpr std::string_view kKeys[] = {"value", "source"};
  SP_CHECK(refuse_rest(*table, origin, kKeys));
  return Figure{*value, std::move(source).value_or(origin)};
}

Result<void> read_figures(toml::table& root, Topology& topology,
                          const std::string& origin) {
  for (const TopologyField& field : topology_fields()) {
    const std::size_t dot = field.key.find('.');
    const std::string_view section = field.key.substr(0, dot);
    const std::string_view key = field.key.substr(dot + 1);
    toml::node* node = root.get(section);
    if (node == nullptr) continue;
    toml::table* table = node->as_table();
    if (table == nullptr) {
      return refuse(place(origin, *node),
                    fmt::format("`{}` is not a table", section));
    }
    if (toml::node* entry = table->get(key)) {
      const std::string where = place(origin, *entry);
      SP_ASSIGN(topology.*field.figure, read_figure(*entry, field.key, origin));
      if (auto fits = check_figure(field, topology.*field.figure); !fits) {
        return fail(std::move(fits).error().at(where));
      }
      table->erase(key);
    }
  }
  // What is left in a section is unknown; an emptied section is read.
  for (const std::string_view section :
       {"node", "network", "device", "overlap"}) {
    toml::node* node = root.get(section);
    if (node == nullptr) continue;
    std::vector<std::string_view> known;
    for (const TopologyField& field : topology_fields()) {
      if (field.key.substr(0, field.key.find('.')) == section) {
        known.push_back(field.key.substr(section.size() + 1));
      }
    }
    SP_CHECK(refuse_rest(*node->as_table(), origin, known));
    root.erase(section);
  }
  return {};
}

Result<MeasuredLine> read_line(toml::table& table, const std::string& origin) {
  const std::string where = place(origin, table);
  const std::string name_at = place(origin, table, "collective");
  SP_ASSIGN(const auto name,
            take<std::string>(table, "collective", origin, "a text"));
  SP_ASSIGN(const auto ranks, take<std::int64_t>(table, "ranks_per_node",
                                                 origin, "a whole number"));
  SP_ASSIGN(const auto nodes,
            take<std::int64_t>(table, "nodes", origin, "a whole number"));
  SP_ASSIGN(const auto latency,
            take<double>(table, "latency_us", origin, "a number"));
  SP_ASSIGN(const auto bandwidth,
            take<double>(table, "bandwidth_gbps", origin, "a number"));
  SP_ASSIGN(const auto complete,
            take<bool>(table, "complete", origin, "true or false"));
  SP_ASSIGN(auto source, take<std::string>(table, "source", origin, "a text"));
  if (!name || !ranks || !nodes || !latency || !bandwidth) {
    return refuse(where, "a measured line lacks one of its figures",
                  "give collective, ranks_per_node, nodes, latency_us and "
                  "bandwidth_gbps");
  }
  const auto kind = parse_collective_kind(*name);
  if (!kind) {
    std::vector<std::string_view> kinds;
    for (const CollectiveKind known : kAllCollectiveKinds) {
      kinds.push_back(to_string(known));
    }
    return refuse(name_at, fmt::format("`{}` is not a collective", *name),
                  did_you_mean(*name, kinds));
  }
  static constexpr std::string_view kKeys[] = {
      "collective",     "ranks_per_node", "nodes", "latency_us",
      "bandwidth_gbps", "complete",       "source"};
  SP_CHECK(refuse_rest(table, origin, kKeys));
  MeasuredLine line{*kind,
                    *ranks,
                    *nodes,
                    *latency,
                    *bandwidth,
                    complete.value_or(true),
                    std::move(source).value_or(origin)};
  if (auto fits = check_line(line); !fits) {
    return fail(std::move(fits).error().at(where));
  }
  return line;
}

Result<void> read_measured(toml::table& root, Topology& topology,
                           const std::string& origin) {
  toml::node* node = root.get("measured");
  if (node == nullptr) return {};
  toml::array* array = node->as_array();
  if (array == nullptr) {
    return refuse(place(origin, *node), "`measured` is not a list of tables",
                  "write [[measured]]");
  }
  topology.measured.clear();
  for (toml::node& entry : *array) {
    toml::table* table = entry.as_table();
    if (table == nullptr) {
      return refuse(place(origin, entry), "a measured line is not a table",
                    "write [[measured]]");
    }
    SP_ASSIGN(MeasuredLine line, read_line(*table, origin));
    topology.measured.push_back(std::move(line));
  }
  root.erase("measured");
  return {};
}

Result<Topology> read(toml::table root, const std::string& origin) {
  const std::string base_at = place(origin, root, "base");
  SP_ASSIGN(const auto base, take<std::string>(root, "base", origin, "a text"));
  auto found = find_topology(base.value_or(default_topology().name));
  if (!found) {
    return refuse(base_at, found.error().message, found.error().help);
  }
  Topology topology = *std::move(found);
  SP_ASSIGN(auto name, take<std::string>(root, "name", origin, "a text"));
  topology.name = std::move(name).value_or(origin);
  SP_ASSIGN(auto text,
            take<std::string>(root, "description", origin, "a text"));
  if (text) topology.description = *std::move(text);
  SP_ASSIGN(const auto reduces,
            take<bool>(root, "node_reduces", origin, "true or false"));
  topology.node_reduces = reduces.value_or(topology.node_reduces);
  const std::string engine_at = place(origin, root, "engine");
  SP_ASSIGN(const auto engine,
            take<std::string>(root, "engine", origin, "a text"));
  if (engine) {
    const auto known = parse_engine(*engine);
    if (!known) {
      return refuse(engine_at, fmt::format("`{}` is not an engine", *engine),
                    "known: nccl, mpi, threads");
    }
    topology.engine = *known;
  }
  const std::string generation_at = place(origin, root, "generation");
  SP_ASSIGN(const auto generation,
            take<std::string>(root, "generation", origin, "a text"));
  if (generation) {
    const auto known = parse_generation(*generation);
    if (!known) {
      return refuse(generation_at,
                    fmt::format("`{}` is not a generation", *generation),
                    "known: ampere, hopper, blackwell");
    }
    topology.generation = *known;
  }
  SP_CHECK(read_figures(root, topology, origin));
  SP_CHECK(read_measured(root, topology, origin));
  static constexpr std::string_view kKeys[] = {
      "name", "description", "base",   "engine",  "generation", "node_reduces",
      "node", "network",     "device", "overlap", "measured"};
  SP_CHECK(refuse_rest(root, origin, kKeys));
  return topology;
}

// Shortest text that reads back as the same double.
std::string number(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // else it is cut off without memory
  out << toml::value<std::string>(text);
  return out.str();
}

Result<Topology> parse(std::string_view text, const std::string& origin) {
  if (std::count(text.begin(), text.end(), '.') > kMostDots) {
    return refuse(origin,
                  fmt::format("the file has more than {} dots, as in "
                              "numbers and keys",
                              kMostDots),
                  "list fewer measured lines");
  }
  if (const auto letter = bare_letter(text)) {
    return refuse(place(origin, text.substr(0, *letter)),
                  "a letter beyond ASCII outside of quotes, or behind a "
                  "backslash that joins lines",
                  "write it in quotes, or in a comment");
  }
  try {
    // Without the origin, which toml++ would copy where nothing may be thrown.
    return read(toml::parse(text), origin);
  } catch (const toml::parse_error& error) {
    return refuse(place(origin, error.source()),
                  fmt::format("this is not TOML: {}", error.description()),
                  kHelp);
  }
}

Result<Topology> load(const std::string& path, Deadline deadline) {
  auto text = read_file(path, kMostBytes, deadline);
  if (text) return parse(*text, path);
  Error error = std::move(text).error();
  if (error.code != ErrorCode::kStopped) {
    error.code = ErrorCode::kTopologyFile;
  }
  return fail(std::move(error));
}

}  // namespace

Result<Topology> parse_topology_toml(std::string_view text,
                                     const std::string& origin) {
  return guarded([&] { return parse(text, origin); });
}

Result<Topology> load_topology(const std::string& name_or_path,
                               Deadline deadline) {
  constexpr std::string_view kSuffix = ".toml";
  const bool is_file =
      name_or_path.size() > kSuffix.size() &&
      std::string_view(name_or_path)
              .substr(name_or_path.size() - kSuffix.size()) == kSuffix;
  return guarded([&] {
    return is_file ? load(name_or_path, deadline) : find_topology(name_or_path);
  });
}

std::string topology_to_toml(const Topology& topology) {
  std::string out;
  out += "name = " + quoted(topology.name) + "\n";
  out += "description = " + quoted(topology.description) + "\n";
  out +=
      fmt::format("engine = \"{}\"\ngeneration = \"{}\"\n",
                  to_string(topology.engine), to_string(topology.generation));
  out += fmt::format("node_reduces = {}\n", topology.node_reduces);
  if (topology.measured.empty()) out += "measured = []\n";
  std::string_view section;
  for (const TopologyField& field : topology_fields()) {
    const std::size_t dot = field.key.find('.');
    if (field.key.substr(0, dot) != section) {
      section = field.key.substr(0, dot);
      out += fmt::format("\n[{}]\n", section);
    }
    const Figure& figure = topology.*field.figure;
    out += fmt::format("{} = {{value = {}, source = {}}}  # {}\n",
                       field.key.substr(dot + 1), number(figure.value),
                       quoted(figure.source), field.unit);
  }
  for (const MeasuredLine& line : topology.measured) {
    out += fmt::format(
        "\n[[measured]]\ncollective = \"{}\"\nranks_per_node = {}\n"
        "nodes = {}\nlatency_us = {}\nbandwidth_gbps = {}\ncomplete = {}\n"
        "source = {}\n",
        to_string(line.collective), line.ranks_per_node, line.nodes,
        number(line.latency_us), number(line.bandwidth_gbps), line.complete,
        quoted(line.source));
  }
  return out;
}

}  // namespace shardprop
