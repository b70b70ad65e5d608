#include <shardprop/report/plan_dot.h>

#include "base/printable.h"
#include "base/quantities.h"
#include "report/module_tree.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

// Escapes control characters and quotes for Graphviz.
std::string dot_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// Lines of a label, as Graphviz ends them.
std::string label(const std::vector<std::string>& lines) {
  std::string out = "\"";
  for (const std::string& line : lines) {
    if (out.size() > 1) out += "\\n";
    const std::string one = dot_quoted(line);
    out.append(one, 1, one.size() - 2);
  }
  return out + '"';
}

class DotGraph {
 public:
  explicit DotGraph(const Plan& plan) : plan_(plan) {}

  std::string run() {
    write("digraph {}", dot_quoted(plan_.graph_name));
    out_ += " {\n  node [shape=box, fontname=\"monospace\"];\n";
    for (const PlannedValue& value : plan_.values) {
      made_by_[value.name] = value.name;
      write("  {} [shape=ellipse, label={}];\n", dot_quoted(value.name),
            label({value.name, to_string(value.tensor.layout)}));
    }
    for (const PlannedNode& node : plan_.nodes) {
      for (const PlannedResult& result : node.outputs) {
        made_by_[result.name] = node.name;
      }
    }
    boxes();
    updates();
    for (const PlannedNode& node : plan_.nodes) {
      for (const PlannedInput& input : node.inputs) edge(input, node.name);
    }
    for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
      const PlannedOutput& output = plan_.outputs[i];
      const std::string name = fmt::format("output {}", i);
      write("  {} [shape=ellipse, label={}];\n", dot_quoted(name),
            label({std::string(to_string(output.kind)), output.target,
                   to_string(output.value.layout)}));
      edge(output.value, name);
    }
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  template <class... Args>
  void write(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format,
                   std::forward<Args>(args)...);
  }

  // Draws a frame around the operators of each module, in order of first use.
  void boxes() {
    const std::vector<ModuleNodes> modules = nodes_by_module(plan_);
    for (std::size_t m = 0; m < modules.size(); ++m) {
      const bool framed = !modules[m].path.empty();
      if (framed) {
        write("  subgraph cluster_{} {{\n    label={};\n", m,
              dot_quoted(modules[m].path));
      }
      for (const PlannedNode* node : modules[m].nodes) {
        std::vector<std::string> lines{node->name, node->op};
        for (const PlannedResult& result : node->outputs) {
          lines.push_back(to_string(result.tensor.layout));
        }
        write("    {} [label={}];\n", dot_quoted(node->name), label(lines));
      }
      if (framed) out_ += "  }\n";
    }
  }

  // Writes the optimizer's step as a box for each parameter.
  void updates() {
    if (plan_.updates.empty()) return;
    out_ += "  subgraph cluster_optimizer {\n    label=\"optimizer\";\n";
    for (const PlannedUpdate& update : plan_.updates) {
      const std::string& name = update.result.name;
      made_by_[name] = name;
      write("    {} [label={}];\n", dot_quoted(name),
            label({name, update.op, to_string(update.result.tensor.layout)}));
    }
    out_ += "  }\n";
    for (const PlannedUpdate& update : plan_.updates) {
      if (update.gradient) edge(*update.gradient, update.result.name);
      edge(update.value, update.result.name);
    }
  }

  void edge(const PlannedInput& input, const std::string& to) {
    const auto from = made_by_.find(input.from);
    if (from == made_by_.end()) return;
    write("  {} -> {}", dot_quoted(from->second), dot_quoted(to));
    if (input.copy) {
      const PlannedCopy& copy = plan_.copies[*input.copy];
      std::vector<std::string> lines{to_string(copy.src) + " -> " +
                                     to_string(input.layout)};
      for (const RedistributeStep& step : copy.steps) {
        lines.push_back(fmt::format("{} {:.1f} us", to_string(step.kind),
                                    microseconds(step.nanoseconds)));
      }
      write(" [color=red, fontcolor=red, label={}]", label(lines));
    }
    out_ += ";\n";
  }

  const Plan& plan_;
  std::map<std::string, std::string, std::less<>> made_by_;
  std::string out_;
};

}  // namespace

std::string plan_to_dot(const Plan& plan) { return DotGraph(plan).run(); }

}  // namespace shardprop
