#include <shardprop/report/plan_html.h>

#include "base/index.h"
#include "base/printable.h"
#include "base/quantities.h"
#include "report/module_tree.h"

#include <shardprop/report/plan_sentences.h>
#include <shardprop/report/plan_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

constexpr std::string_view kStyle = R"(
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 80em;
       padding: 0 1em; color: #222; background: #fff }
pre, td.n, code { font: 13px/1.45 ui-monospace, monospace }
pre { background: #f6f6f4; padding: 1em; overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .2em .8em .2em 0;
         border-bottom: 1px solid #e4e4e0; overflow-wrap: anywhere }
td.n, th.n { text-align: right; white-space: nowrap }
details { overflow-x: auto }
summary { cursor: pointer; padding: .15em 0 }
.bar { display: flex; height: 1.6em; margin: .5em 0 }
.bar span { min-width: 1px }
.key span { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #1b1b1d } pre { background: #262629 }
  th, td { border-color: #3a3a3e } }
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// As plan_to_text() breaks it.
std::string escaped_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += escaped(text.substr(0, end)) + '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string tensor_text(const PlannedTensor& tensor) {
  return fmt::format("{}[{}]", to_string(tensor.dtype),
                     fmt::join(tensor.shape, ","));
}

// A slice of the time bar.
struct TimePart {
  std::string_view name;
  std::string_view colour;
  std::int64_t nanoseconds = 0;
};

std::vector<TimePart> time_parts(const Plan& plan) {
  constexpr std::array<std::string_view, std::size(kAllOpKinds)> kColours = {
      "#4269d0", "#6cc5b0", "#3ca951", "#efb118", "#9c6b4e", "#9498a0"};
  std::vector<TimePart> parts;
  for (const OpKind kind : kAllOpKinds) {
    const auto i = index(kind);
    parts.push_back({to_string(kind), kColours[i], 0});
  }
  for (const PlannedNode& node : plan.nodes) {
    parts[index(node.kind)].nanoseconds += node.compute_nanoseconds;
  }
  parts.push_back({"optimizer", "#a463f2", plan.optimizer_nanoseconds});
  parts.push_back({"communication waited for", "#ff725c",
                   plan.summary.communication_nanoseconds -
                       plan.summary.overlapped_nanoseconds});
  std::erase_if(parts, [](const TimePart& p) { return p.nanoseconds <= 0; });
  return parts;
}

class Page {
 public:
  explicit Page(const Plan& plan) : plan_(plan) {}

  std::string run() {
    const std::string title =
        escaped(plan_.graph_name) + " on " + escaped(to_string(plan_.mesh));
    write(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
        "<title>{}</title>\n<style>{}</style>\n<h1>{}</h1>\n<pre>{}</pre>\n",
        title, kStyle, title, escaped_lines(plan_to_text(plan_)));
    if (plan_.has_plan()) {
      time();
      transfers();
      values();
      modules();
    }
    write("</html>\n");
    return std::move(out_);
  }

 private:
  template <class... Args>
  void write(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format,
                   std::forward<Args>(args)...);
  }

  void time() {
    const std::vector<TimePart> parts = time_parts(plan_);
    write("<h2>Time</h2>\n<div class=\"bar\">");
    for (const TimePart& part : parts) {
      write("<span style=\"flex:{};background:{}\" title=\"{} {}\"></span>",
            part.nanoseconds, part.colour, part.name,
            time_text(part.nanoseconds));
    }
    write("</div>\n<p class=\"key\">");
    for (const TimePart& part : parts) {
      write("<span style=\"background:{}\"></span>{} {}\n", part.colour,
            part.name, time_text(part.nanoseconds));
    }
    write("</p>\n");
  }

  void transfers() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < plan_.copies.size(); ++i) {
      if (!plan_.copies[i].steps.empty()) order.push_back(i);
    }
    std::stable_sort(
        order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
          return plan_.copies[a].nanoseconds() > plan_.copies[b].nanoseconds();
        });
    write(
        "<h2>Redistributions</h2>\n<details open><summary>{} "
        "redistributions</summary>\n<table>\n<tr><th>value<th>from<th>to"
        "<th>by<th class=\"n\">bytes a rank<th class=\"n\">time"
        "<th class=\"n\">overlapped<th>why\n",
        order.size());
    const std::vector<std::string> reasons = reasons_in_words(plan_);
    for (const std::size_t i : order) transfer(plan_.copies[i], reasons[i]);
    write("</table></details>\n");
  }

  void transfer(const PlannedCopy& copy, const std::string& reason) {
    std::string by;
    std::int64_t bytes = 0;
    for (const RedistributeStep& step : copy.steps) {
      by += (by.empty() ? "" : ", ") + std::string(to_string(step.kind));
      bytes += step.bytes_per_rank;
    }
    write(
        "<tr><td><code>{}</code><td>{}<td>{}<td>{}<td class=\"n\">{}"
        "<td class=\"n\">{}<td class=\"n\">{}<td>{}\n",
        escaped(copy.from), to_string(copy.src), to_string(copy.dst), by,
        bytes_text(bytes), time_text(copy.nanoseconds()),
        time_text(copy.overlapped_nanoseconds), escaped(reason));
  }

  void values() {
    write(
        "<h2>Inputs and parameters</h2>\n<details><summary>{} "
        "values</summary>\n<table>\n<tr><th>name<th>role<th>tensor"
        "<th>layout<th>optimizer's state\n",
        plan_.values.size());
    for (const PlannedValue& value : plan_.values) {
      write("<tr><td><code>{}</code><td>{}<td>{}<td>{}<td>{}\n",
            escaped(value.name), to_string(value.kind),
            tensor_text(value.tensor), to_string(value.tensor.layout),
            value.state_layout ? to_string(*value.state_layout) : "");
    }
    write("</table></details>\n");
  }

  // Writes the modules in order of first use, each with its compute time.
  void modules() {
    write("<h2>Operators</h2>\n");
    for (const ModuleNodes& module : nodes_by_module(plan_)) {
      std::int64_t nanoseconds = 0;
      for (const PlannedNode* node : module.nodes) {
        nanoseconds += node->compute_nanoseconds;
      }
      write(
          "<details><summary><code>{}</code> {} operators, {}</summary>\n"
          "<table>\n<tr><th>node<th>operator<th>phase<th>reads<th>produces"
          "<th class=\"n\">compute<th>source\n",
          module.path.empty() ? "(the model)" : escaped(module.path),
          module.nodes.size(), time_text(nanoseconds));
      for (const PlannedNode* node : module.nodes) row(*node);
      write("</table></details>\n");
    }
  }

  void row(const PlannedNode& node) {
    std::string takes;
    for (const PlannedInput& input : node.inputs) {
      takes += (takes.empty() ? "" : "<br>") + to_string(input.layout);
      if (input.copy) takes += " *";
    }
    std::string makes;
    for (const PlannedResult& result : node.outputs) {
      makes += (makes.empty() ? "" : "<br>") + tensor_text(result.tensor) +
               " " + to_string(result.tensor.layout);
    }
    write(
        "<tr><td><code>{}</code><td>{}<td>{}<td>{}<td>{}<td class=\"n\">{}"
        "<td>{}\n",
        escaped(node.name), escaped(node.op), to_string(node.phase), takes,
        makes, time_text(node.compute_nanoseconds), escaped(node.source));
  }

  const Plan& plan_;
  std::string out_;
};

}  // namespace

std::string plan_to_html(const Plan& plan) { return Page(plan).run(); }

}  // namespace shardprop
