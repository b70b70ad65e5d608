#include <shardprop/request/graph_reading.h>

#include "base/parse_int.h"
#include "base/try.h"
#include "request/rule_parts.h"

#include <shardprop/graph/repeat_blocks.h>
#include <shardprop/io/load_graph.h>
#include <shardprop/ops/rule_text.h>
#include <shardprop/request/operator_file.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace shardprop {
namespace {

// Names of the reading's options in a plan.
constexpr std::string_view kRule = "rule";
constexpr std::string_view kBound = "bound";
constexpr std::string_view kSize = "size";
constexpr std::string_view kOtherSize = "other_size";
constexpr std::string_view kBlocks = "blocks";
constexpr std::string_view kProgram = "program";

Error given_twice(const std::string& option, const std::string& name,
                  const std::string& place) {
  return {ErrorCode::kInvalidArgument,
          option + " is given twice for `" + name + "`",
          place,
          {},
          "give it once"};
}

bool is_named(std::string_view op, std::string_view rule) {
  return op == rule || (op.starts_with(rule) && op.size() > rule.size() &&
                        op[rule.size()] == '.');
}

// Returns the sizes of --bound or --size by name.
Result<std::map<std::string, std::int64_t>> sizes_of(
    const std::vector<GivenText>& given, const std::string& option) {
  std::map<std::string, std::int64_t> sizes;
  for (const auto& [text, place, is_from_file] : given) {
    const std::size_t equals = text.find('=');
    const auto value =
        equals == std::string::npos
            ? std::nullopt
            : parse_int(std::string_view(text).substr(equals + 1));
    if (!value || *value < 0 || equals == 0) {
      return fail(Error{ErrorCode::kInvalidArgument,
                        (option == "--bound" ? "a bound" : "a size") +
                            std::string(" is written NAME=N, N a size"),
                        place,
                        {},
                        option == "--bound" ? "as in --bound u0=128"
                                            : "as in --size batch=64,s1=128"});
    }
    const std::string name = text.substr(0, equals);
    if (!sizes.emplace(name, *value).second) {
      return fail(given_twice(option, name, place));
    }
  }
  return sizes;
}

// Unit: blocks of a row. A model of more layers is a mistake.
constexpr std::int64_t kMostBlocks = 10'000;

// Returns the graph with as many blocks as the reading states.
Result<Graph> with_blocks(Graph graph, const GivenText& blocks,
                          const OpLibrary& library) {
  if (blocks.text.empty()) return graph;
  std::vector<std::int64_t> counts;
  for (std::string_view rest = blocks.text;;) {
    const std::size_t comma = rest.find(',');
    const auto count = parse_int(rest.substr(0, comma));
    if (!count || *count < 1 || *count > kMostBlocks) {
      return fail(
          {ErrorCode::kInvalidArgument,
           "blocks are written N, or N,N if there are two rows of them",
           blocks.place,
           {"found `" + std::string(rest.substr(0, comma)) +
            "`, expected a number from 1 to " + std::to_string(kMostBlocks)},
           "as in --blocks 80"});
    }
    counts.push_back(*count);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  Result<Graph> repeated = repeat_blocks(graph, library, counts);
  if (repeated) return repeated;
  return fail(std::move(repeated).error().at(blocks.place));
}

// Returns the error with the user's place if it is about a bound or size.
Error at_given_size(Error error, const GraphReading& reading) {
  for (const auto& [text, place, is_from_file] : reading.bounds) {
    if (error.location.ends_with("bound " + text)) error.location = place;
  }
  for (const auto& [text, place, is_from_file] : reading.sizes) {
    if (error.location.ends_with("size " + text)) error.location = place;
  }
  for (const auto& [file, place] : reading.other_sizes) {
    if (error.location.ends_with("other size " + file.path)) {
      error.location = place;
    }
  }
  return error;
}

// Calls `read(library, options)` for the graph.
template <class Read>
Result<LoadedGraph> loaded(GraphReading reading, const Read& read) {
  SP_ASSIGN(reading.rules, with_files(std::move(reading.rules)));
  SP_ASSIGN(auto library, library_with(reading.rules));
  LoadOptions options;
  options.max_input_bytes = reading.max_input_bytes;
  options.program = reading.program.text;
  options.deadline = reading.deadline;
  SP_ASSIGN(options.bounds, sizes_of(reading.bounds, "--bound"));
  SP_ASSIGN(options.sizes, sizes_of(reading.sizes, "--size"));
  for (const GivenExport& other : reading.other_sizes) {
    options.other_exports.push_back(other.file);
  }
  Result<Graph> graph = read(*library, options);
  if (!graph) return fail(at_given_size(std::move(graph).error(), reading));
  SP_CHECK(check_rules(reading.rules, *graph));
  drop_unused(reading.rules, *graph);
  graph = with_blocks(*std::move(graph), reading.blocks, *library);
  if (!graph) return fail(std::move(graph).error());
  return LoadedGraph{std::move(library),
                     std::make_shared<const Graph>(*std::move(graph)),
                     std::move(reading)};
}

using Overloads = std::vector<std::shared_ptr<const FunctionSchema>>;

// Returns the overloads that a rule is for: the declared one, or those of the library.
Result<Overloads> overloads_of(const OpLibrary& library, const std::string& op,
                               std::string_view declaration) {
  if (declaration.empty()) return overloads_of_row(library, op);
  SP_ASSIGN(FunctionSchema schema, FunctionSchema::parse(declaration));
  return Overloads{std::make_shared<const FunctionSchema>(std::move(schema))};
}

// Checks the names of a rule against the calls of an operator that is declared
// nowhere.
Result<void> check_calls(const GivenText& rule, const Graph& graph) {
  const std::string op = operator_of(rule.text);
  // library_with() reports a rule without `=`.
  const bool has_row = equals_of(rule.text) != std::string_view::npos;
  if (!has_row || !declaration_of(rule.text).empty()) return {};
  Overloads calls;
  for (const Node& node : graph.nodes()) {
    if (!is_named(node.op_name(), op)) continue;
    if (!node.op.function->has_tag("undeclared")) return {};
    calls.push_back(node.op.function);
  }
  if (calls.empty()) return {};
  auto checked = check_rule(row_of(rule.text), calls, *OpLibrary::standard());
  if (checked) return {};
  return fail(moved(std::move(checked).error(), equals_of(rule.text) + 1)
                  .at(rule.place));
}

Error made_with_another(std::string_view option, const std::string& text,
                        const GivenText& given) {
  return {ErrorCode::kInvalidArgument,
          "the plan was made with --" + std::string(option) + " " + text,
          given.place,
          {},
          "leave it out, or plan anew without --plan"};
}

// Adds a rule or size of a saved plan to the given list.
Result<void> add_saved(std::vector<GivenText>& given, std::string_view option,
                       const std::string& text, const std::string& place) {
  const std::string name = operator_of(text);
  const auto same = std::find_if(
      given.begin(), given.end(),
      [&](const GivenText& other) { return operator_of(other.text) == name; });
  if (same == given.end()) {
    given.push_back({text, place});
    return {};
  }
  const auto same_part = [&](std::string_view (*part)(std::string_view)) {
    return without_blanks(part(same->text)) == without_blanks(part(text));
  };
  if (same_part(row_of) && same_part(declaration_of)) return {};
  return fail(made_with_another(option, text, *same));
}

}  // namespace

bool add_option(GraphReading& reading, std::string_view name,
                const GivenText& given) {
  if (name == kRule) {
    reading.rules.push_back(given);
  } else if (name == kBound) {
    reading.bounds.push_back(given);
  } else if (name == kSize) {
    // All sizes are added, or none if memory is short.
    std::vector<GivenText> sizes = reading.sizes;
    for (std::string_view rest = given.text;;) {
      const std::size_t comma = rest.find(',');
      sizes.push_back({std::string(rest.substr(0, comma)), given.place});
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    reading.sizes = std::move(sizes);
  } else if (name == kOtherSize) {
    reading.other_sizes.push_back({{given.text, nullptr}, given.place});
  } else if (name == kBlocks) {
    reading.blocks = given;
  } else if (name == kProgram) {
    reading.program = given;
  } else {
    return false;
  }
  return true;
}

void replace_rules(GraphReading& reading, std::vector<GivenText> rules) {
  std::erase_if(reading.rules, [&](const GivenText& old) {
    return std::any_of(rules.begin(), rules.end(), [&](const GivenText& rule) {
      return operator_of(rule.text) == operator_of(old.text);
    });
  });
  for (GivenText& rule : rules) reading.rules.push_back(std::move(rule));
}

Result<std::shared_ptr<const OpLibrary>> library_with(
    const std::vector<GivenText>& rules) {
  LibraryBuilder builder(*OpLibrary::standard());
  const OpLibrary& library = builder.library();
  std::set<std::string> ruled;
  for (const auto& [text, place, is_from_file] : rules) {
    const std::string op = operator_of(text);
    const bool has_row = equals_of(text) != std::string_view::npos;
    if (!has_row && text.find("::") != std::string::npos) {
      // A parenthesis of the declaration may be open.
      auto schema = FunctionSchema::parse(declaration_of(text));
      if (!schema) return fail(std::move(schema).error().at(place));
    }
    if (!has_row || op.find('.') == std::string::npos) {
      return fail(Error{
          ErrorCode::kInvalidArgument,
          "a rule is written OP=ROW, DECLARATION=ROW or @FILE",
          place,
          {has_row ? "found `" + op + "`, expected a name such as mylib.swiglu"
                   : "found no `=` after `" + op + "`"},
          "as in --rule 'mylib.swiglu=pointwise()'"});
    }
    if (!ruled.insert(op).second) {
      return fail(given_twice("--rule", op, place));
    }
    const std::size_t row = equals_of(text) + 1;
    auto definition = parse_rule(row_of(text));
    if (!definition) {
      return fail(moved(std::move(definition).error(), row).at(place));
    }
    OpLibrary::Addition addition;
    addition.declaration = declaration_of(text);
    auto overloads = overloads_of(library, op, addition.declaration);
    if (!overloads) return fail(std::move(overloads).error().at(place));
    if (auto checked = check_rule(row_of(text), *overloads, library);
        !checked) {
      return fail(moved(std::move(checked).error(), row).at(place));
    }
    if (addition.declaration.empty()) addition.name = op;
    addition.definition = *std::move(definition);
    addition.note = "by --rule";
    auto added = builder.add(std::move(addition));
    if (!added) return fail(std::move(added).error().at(place));
  }
  return std::move(builder).build();
}

void drop_unused(std::vector<GivenText>& rules, const Graph& graph) {
  std::erase_if(rules, [&](const GivenText& rule) {
    const std::string op = operator_of(rule.text);
    return rule.is_from_file &&
           std::none_of(
               graph.nodes().begin(), graph.nodes().end(),
               [&](const Node& node) { return is_named(node.op_name(), op); });
  });
}

Result<void> check_rules(const std::vector<GivenText>& rules,
                         const Graph& graph) {
  for (const GivenText& rule : rules) {
    const auto& [text, place, is_from_file] = rule;
    SP_CHECK(check_calls(rule, graph));
    const std::string op = operator_of(text);
    const auto& nodes = graph.nodes();
    const auto found = std::find_if(
        nodes.begin(), nodes.end(),
        [&](const Node& node) { return is_named(node.op_name(), op); });
    if (found != nodes.end() && !declaration_of(text).empty() &&
        found->op.function->has_tag("undeclared")) {
      return fail(
          Error{ErrorCode::kInvalidArgument,
                "the graph was read without the declaration of `" + op + "`",
                place,
                {},
                "give the rule when the graph is read: "
                "load_graph(source, rules=...)"});
    }
    if (found == nodes.end() && !is_from_file) {
      return fail(Error{ErrorCode::kInvalidArgument,
                        "`" + op + "` is not an operator of the graph",
                        place,
                        {},
                        "shardprop ops --supported lists its operators"});
    }
  }
  return {};
}

Result<LoadedGraph> load_graph(const std::string& path, GraphReading reading) {
  return loaded(std::move(reading),
                [&](const OpLibrary& library, const LoadOptions& options) {
                  return load_graph(path, library, options);
                });
}

Result<LoadedGraph> read_graph(std::string_view bytes, const std::string& name,
                               GraphReading reading) {
  return loaded(std::move(reading),
                [&](const OpLibrary& library, const LoadOptions& options) {
                  return read_graph(bytes, name, library, options);
                });
}

Result<void> add_reading_of(const Plan& saved, const std::string& place,
                            GraphReading& reading) {
  const bool has_exports = !reading.other_sizes.empty();
  for (const auto& [name, text] : saved.options) {
    const std::string member = place + " $.options." + name;
    if (name == kRule) SP_CHECK(add_saved(reading.rules, name, text, member));
    if (name == kBound) SP_CHECK(add_saved(reading.bounds, name, text, member));
    if (name == kSize) SP_CHECK(add_saved(reading.sizes, name, text, member));
    if (name == kOtherSize && !has_exports) {
      reading.other_sizes.push_back({{text, nullptr}, member});
    }
    if (name == kBlocks) {
      if (reading.blocks.text.empty()) reading.blocks = {text, member};
      if (reading.blocks.text != text) {
        return fail(made_with_another(name, text, reading.blocks));
      }
    }
    if (name != kProgram) continue;
    if (reading.program.text.empty()) reading.program = {text, member};
    if (reading.program.text != text) {
      return fail(made_with_another(name, text, reading.program));
    }
  }
  return {};
}

void record(const GraphReading& reading, Plan& plan) {
  for (const GivenText& bound : reading.bounds) {
    plan.options.emplace_back(kBound, bound.text);
  }
  for (const GivenText& size : reading.sizes) {
    plan.options.emplace_back(kSize, size.text);
  }
  for (const GivenExport& other : reading.other_sizes) {
    if (other.file.bytes != nullptr) continue;
    plan.options.emplace_back(kOtherSize, other.file.path);
  }
  for (const GivenText& rule : reading.rules) {
    plan.options.emplace_back(kRule, rule.text);
  }
  if (!reading.blocks.text.empty()) {
    plan.options.emplace_back(kBlocks, reading.blocks.text);
  }
  if (!reading.program.text.empty()) {
    plan.options.emplace_back(kProgram, reading.program.text);
  }
}

}  // namespace shardprop
