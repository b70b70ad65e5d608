#include "plan/problem/pin_match.h"

#include "base/glob.h"

#include <algorithm>
#include <string>

namespace shardprop {
namespace {

// Returns whether all terms of one kind match, by `matches(glob)`.
template <class Matches>
bool all_terms(const Pin& pin, PinTerm::Kind kind, const Matches& matches) {
  return std::all_of(pin.terms.begin(), pin.terms.end(),
                     [&](const PinTerm& term) {
                       return term.kind != kind || matches(term.glob);
                     });
}

bool has_terms_on_nodes(const Pin& pin) {
  return std::any_of(pin.terms.begin(), pin.terms.end(),
                     [](const PinTerm& term) {
                       return term.kind == PinTerm::Kind::kOp ||
                              term.kind == PinTerm::Kind::kPhase;
                     });
}

bool has_name(const Value& value, std::string_view glob) {
  return matches_glob(glob, value.name) ||
         (!value.qualified_name.empty() &&
          matches_glob(glob, value.qualified_name)) ||
         std::any_of(value.aliases.begin(), value.aliases.end(),
                     [&](const std::string& alias) {
                       return matches_glob(glob, alias);
                     });
}

// Returns "layers.0.wq" for "layers.0.wq.weight".
std::string_view module_of(const Value& input) {
  const std::string_view name = input.qualified_name;
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view()
                                       : name.substr(0, dot);
}

// Matches the names "aten.mm.default", "aten.mm" and "mm".
bool has_op(const Node& node, std::string_view glob) {
  const std::string_view name = node.op_name();
  const std::size_t overload = name.rfind('.');
  return matches_glob(glob, name) ||
         matches_glob(glob, name.substr(0, overload)) ||
         matches_glob(glob, node.op.function->base_name());
}

bool matches_node(const Pin& pin, const Node& node) {
  return all_terms(
             pin, PinTerm::Kind::kOp,
             [&](const std::string& glob) { return has_op(node, glob); }) &&
         all_terms(pin, PinTerm::Kind::kPhase, [&](const std::string& glob) {
           return to_string(node.phase) == glob;
         });
}

}  // namespace

bool matches_input(const Pin& pin, const Value& input) {
  return !has_terms_on_nodes(pin) &&
         all_terms(
             pin, PinTerm::Kind::kName,
             [&](const std::string& glob) { return has_name(input, glob); }) &&
         all_terms(pin, PinTerm::Kind::kModule, [&](const std::string& glob) {
           return matches_glob(glob, module_of(input));
         });
}

bool matches_use(const Pin& pin, const Value& input, const Node& node) {
  return all_terms(
             pin, PinTerm::Kind::kName,
             [&](const std::string& glob) { return has_name(input, glob); }) &&
         all_terms(pin, PinTerm::Kind::kModule,
                   [&](const std::string& glob) {
                     return matches_glob(glob, node.module_path) ||
                            matches_glob(glob, module_of(input));
                   }) &&
         matches_node(pin, node);
}

bool matches_result(const Pin& pin, const Node& node, const Value& result) {
  const bool first = result.output_index == 0;
  return pin.place == Pin::Place::kBoth &&
         all_terms(pin, PinTerm::Kind::kName,
                   [&](const std::string& glob) {
                     return has_name(result, glob) ||
                            (first && matches_glob(glob, node.name));
                   }) &&
         all_terms(pin, PinTerm::Kind::kModule,
                   [&](const std::string& glob) {
                     return matches_glob(glob, node.module_path);
                   }) &&
         matches_node(pin, node);
}

std::vector<std::string_view> names_to_pin(const Graph& graph,
                                           PinTerm::Kind kind) {
  std::vector<std::string_view> names;
  for (const Node& node : graph.nodes()) {
    if (kind == PinTerm::Kind::kOp) {
      const std::string_view name = node.op_name();
      names.insert(names.end(), {name, name.substr(0, name.rfind('.')),
                                 node.op.function->base_name()});
    } else if (kind == PinTerm::Kind::kModule) {
      names.push_back(node.module_path);
    } else if (kind == PinTerm::Kind::kPhase) {
      names.push_back(to_string(node.phase));
    }
  }
  for (const Value& value : graph.values()) {
    if (kind == PinTerm::Kind::kModule && value.is_input()) {
      names.push_back(module_of(value));
    }
  }
  if (kind != PinTerm::Kind::kName) return names;
  for (const Value& value : graph.values()) {
    names.push_back(value.name);
    if (!value.qualified_name.empty()) names.push_back(value.qualified_name);
    names.insert(names.end(), value.aliases.begin(), value.aliases.end());
  }
  for (const Node& node : graph.nodes()) {
    if (!node.outputs.empty()) names.push_back(node.name);
  }
  return names;
}

}  // namespace shardprop
