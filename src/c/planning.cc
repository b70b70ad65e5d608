// Graphs, options, and plans.

#include "c/boundary.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/report/plan_json.h>
#include <shardprop/report/plan_text.h>
#include <shardprop/request/plan_request.h>

#include <memory>
#include <string>
#include <utility>

#include "base/index.h"

using namespace shardprop;     // NOLINT(google-build-using-namespace)
using namespace shardprop::c;  // NOLINT(google-build-using-namespace)

namespace {

// The options that the user gave, and for the others the defaults of the command
// line on this topology.
Result<PlanOptions> options_of(const shardprop_options* options,
                               const Topology& topology) {
  if (options == nullptr) return plan_options({}, topology);
  SP_ASSIGN(const OptionsObject* of, get(options));
  SP_ASSIGN(PlanOptions chosen, plan_options(of->given, topology));
  chosen.progress = of->options.progress;
  chosen.stop = of->options.stop;
  chosen.start_from = of->options.start_from;
  return chosen;
}

// The value of an option of the reading, a list with blanks between; empty if it
// is another option.
std::optional<std::string> reading_text(const GraphReading& reading,
                                        std::string_view option) {
  if (option == "program") return reading.program.text;
  if (option == "blocks") return reading.blocks.text;
  if (option == "other_size") {
    std::string out;
    for (const GivenExport& other : reading.other_sizes) {
      out += (out.empty() ? "" : " ") + other.file.path;
    }
    return out;
  }
  const std::vector<GivenText>* list = option == "rule"    ? &reading.rules
                                       : option == "bound" ? &reading.bounds
                                       : option == "size"  ? &reading.sizes
                                                           : nullptr;
  if (list == nullptr) return std::nullopt;
  std::string out;
  for (const GivenText& one : *list) out += (out.empty() ? "" : " ") + one.text;
  return out;
}

// Sets the plan at `place(options)`. NULL removes it.
template <class Place>
shardprop_error* set_plan(shardprop_options* options,
                          const shardprop_plan* plan, const Place& place) {
  return barrier([&]() -> Result<void> {
    SP_ASSIGN(OptionsObject * of, get(options));
    std::shared_ptr<const Plan> given;
    if (plan != nullptr) {
      SP_ASSIGN(const Plan* found, get(plan));
      given = std::make_shared<const Plan>(*found);
    }
    place(*of) = std::move(given);
    return {};
  });
}

}  // namespace

shardprop_error* shardprop_load(const char* file,
                                const shardprop_library* library,
                                shardprop_graph** graph) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(graph, "graph"));
    SP_ASSIGN(const char* path, text_of(file, "file"));
    SP_ASSIGN(const auto* operators, get(library));
    SP_ASSIGN(Graph made, load_graph(path, **operators));
    return give(
        graph,
        {*operators, std::make_shared<const Graph>(std::move(made)), {}});
  });
}
shardprop_error* shardprop_load_with(const char* file,
                                     const shardprop_options* options,
                                     shardprop_graph** graph) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(graph, "graph"));
    SP_ASSIGN(const char* path, text_of(file, "file"));
    SP_ASSIGN(const OptionsObject* of, get(options));
    SP_ASSIGN(LoadedGraph made, load_graph(path, of->reading));
    return give(graph, std::move(made));
  });
}
const char* shardprop_graph_name(const shardprop_graph* graph) {
  const auto* found = peek(graph);
  return found == nullptr ? "" : found->graph->name().c_str();
}
int64_t shardprop_graph_node_count(const shardprop_graph* graph) {
  const auto* found = peek(graph);
  return found == nullptr ? 0
                          : static_cast<int64_t>(found->graph->nodes().size());
}
void shardprop_graph_free(shardprop_graph* graph) { release(graph); }

shardprop_error* shardprop_options_create(shardprop_options** options) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(options, "options"));
    return give(options, {});
  });
}
shardprop_error* shardprop_options_set(shardprop_options* options,
                                       const char* name, const char* value) {
  return barrier([&]() -> Result<void> {
    SP_ASSIGN(OptionsObject * of, get(options));
    SP_ASSIGN(const char* option, text_of(name, "name"));
    SP_ASSIGN(const char* text, text_of(value, "value"));
    const GivenText given = {text, std::string(option) + " " + text};
    if (add_option(of->reading, option, given)) return {};
    PlanOptions next = of->options;
    SP_CHECK(set_option(next, option, text));
    of->given.push_back({option, text, {}});
    of->options = std::move(next);
    return {};
  });
}
shardprop_error* shardprop_options_get(const shardprop_options* options,
                                       const char* name, char** value) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(value, "value"));
    SP_ASSIGN(const OptionsObject* of, get(options));
    SP_ASSIGN(const char* option, text_of(name, "name"));
    if (const auto text = reading_text(of->reading, option)) {
      return give_text(value, *text);
    }
    SP_ASSIGN(const std::string text, get_option(of->options, option));
    return give_text(value, text);
  });
}

shardprop_error* shardprop_options_set_progress(
    shardprop_options* options,
    void (*progress)(const shardprop_progress*, void* user), void* user) {
  return barrier([&]() -> Result<void> {
    SP_ASSIGN(OptionsObject * of, get(options));
    if (progress == nullptr) {
      of->options.progress = nullptr;
      return {};
    }
    of->options.progress = [progress, user](const PlanProgress& now) {
      static constexpr const char* kPhases[] = {"setup", "search", "report"};
      const shardprop_progress said = {kPhases[index(now.phase)], now.seconds,
                                       now.objective.value_or(-1),
                                       now.lower_bound.value_or(-1)};
      progress(&said, user);
    };
    return {};
  });
}
shardprop_error* shardprop_options_set_stop(shardprop_options* options,
                                            const shardprop_stop* stop) {
  return barrier([&]() -> Result<void> {
    SP_ASSIGN(OptionsObject * of, get(options));
    if (stop == nullptr) {
      of->options.stop = {};
      return {};
    }
    SP_ASSIGN(const std::stop_source* source, get(stop));
    of->options.stop = source->get_token();
    return {};
  });
}
shardprop_error* shardprop_options_set_start_from(shardprop_options* options,
                                                  const shardprop_plan* plan) {
  return set_plan(options, plan, [](OptionsObject& of) -> auto& {
    return of.options.start_from;
  });
}
shardprop_error* shardprop_options_set_like(shardprop_options* options,
                                            const shardprop_plan* plan) {
  return set_plan(options, plan,
                  [](OptionsObject& of) -> auto& { return of.like; });
}
void shardprop_options_free(shardprop_options* options) { release(options); }

shardprop_error* shardprop_stop_create(shardprop_stop** stop) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(stop, "stop"));
    return give(stop, std::stop_source());
  });
}
shardprop_error* shardprop_stop_request(const shardprop_stop* stop) {
  return barrier([&]() -> Result<void> {
    SP_ASSIGN(std::stop_source * source, get(stop));
    source->request_stop();
    return {};
  });
}
void shardprop_stop_free(shardprop_stop* stop) { release(stop); }

shardprop_error* shardprop_plan_make(const shardprop_graph* graph,
                                     const shardprop_mesh* mesh,
                                     const shardprop_topology* topology,
                                     const shardprop_library* library,
                                     const shardprop_options* options,
                                     shardprop_plan** plan) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(plan, "plan"));
    SP_ASSIGN(const auto* of, get(graph));
    SP_ASSIGN(const DeviceMesh* on, get(mesh));
    SP_ASSIGN(const Topology* machine, get(topology));
    PlanRequest request{.graph = of->graph,
                        .library = of->library,
                        .mesh = *on,
                        .topology = *machine,
                        .reading = of->reading};
    if (library != nullptr) {
      SP_ASSIGN(const auto* operators, get(library));
      request.library = *operators;
    }
    SP_ASSIGN(request.options, options_of(options, *machine));
    if (options != nullptr) {
      SP_ASSIGN(const OptionsObject* given, get(options));
      request.like = given->like;
    }
    SP_ASSIGN(Plan made, shardprop::plan(request));
    return give(plan, std::move(made));
  });
}
const char* shardprop_plan_status(const shardprop_plan* plan) {
  const Plan* found = peek(plan);
  return found == nullptr ? "" : to_string(found->status).data();  // a literal
}
shardprop_error* shardprop_plan_explain(const shardprop_plan* plan,
                                        char** text) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(text, "text"));
    SP_ASSIGN(const Plan* found, get(plan));
    return give_text(text, plan_to_text(*found));
  });
}
shardprop_error* shardprop_plan_to_json(const shardprop_plan* plan,
                                        char** json) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(json, "json"));
    SP_ASSIGN(const Plan* found, get(plan));
    return give_text(json, plan_to_json(*found));
  });
}
shardprop_error* shardprop_plan_from_json(const char* json,
                                          shardprop_plan** plan) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(plan, "plan"));
    SP_ASSIGN(const char* text, text_of(json, "json"));
    SP_ASSIGN(Plan read, parse_plan_json(text));
    return give(plan, std::move(read));
  });
}
void shardprop_plan_free(shardprop_plan* plan) { release(plan); }
