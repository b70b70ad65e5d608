#include "plan/saved/read/saved_choices.h"

#include "base/try.h"

#include <shardprop/placement/tensor_spec.h>

#include <set>
#include <utility>

namespace shardprop {
namespace {

class Gatherer {
 public:
  Gatherer(const Plan& saved, const Graph& graph)
      : saved_(saved), graph_(graph) {
    for (const Value& value : graph.values()) {
      out_.value_named.emplace(value.display_name(), value.id);
    }
  }

  Result<SavedChoices> run() {
    SP_CHECK(check_graph(saved_, graph_));
    SP_CHECK(check_names());
    SP_CHECK(gather_choices());
    return std::move(out_);
  }

 private:
  Result<void> check_names() const {
    if (saved_.nodes.size() != graph_.nodes().size()) {
      return fail(broken_plan("its nodes are not as many as those of the graph",
                              "$.nodes"));
    }
    for (std::size_t n = 0; n < saved_.nodes.size(); ++n) {
      const PlannedNode& said = saved_.nodes[n];
      const Node& node = graph_.nodes()[n];
      if (said.name != node.name || said.op != node.op_name() ||
          said.inputs.size() != node.inputs.size() ||
          (said.outputs.size() != node.outputs.size())) {
        return fail(broken_plan(
            "the graph has the node `" + node.name + "` in this place",
            place_in("nodes", n)));
      }
      for (std::size_t u = 0; u < said.inputs.size(); ++u) {
        if (said.inputs[u].from !=
            graph_.value(node.inputs[u]).display_name()) {
          return fail(broken_plan(
              "`" + node.name + "` reads another value in the graph",
              place_in("nodes", n, ".inputs")));
        }
      }
    }
    if (saved_.values.size() != graph_.inputs().size()) {
      return fail(broken_plan(
          "its values are not as many as the inputs of the graph", "$.values"));
    }
    return {};
  }

  Result<Layout> checked(const Layout& layout, const TensorMeta& meta,
                         std::string where) const {
    if (auto fits = check_layout(layout, saved_.mesh, meta); !fits) {
      return fail(broken_plan(fits.error().message, std::move(where)));
    }
    return canonical(layout, saved_.mesh, meta.shape());
  }

  Result<void> gather_choices() {
    for (std::size_t n = 0; n < saved_.nodes.size(); ++n) {
      SP_CHECK(gather_node(n));
    }
    for (std::size_t i = 0; i < saved_.values.size(); ++i) {
      SP_CHECK(gather_input(i));
    }
    std::set<std::size_t> of_updates = update_copies();
    out_.given.copies.resize(graph_.values().size());
    for (std::size_t c = 0; c < saved_.copies.size(); ++c) {
      const PlannedCopy& copy = saved_.copies[c];
      const auto of = out_.value_named.find(copy.from);
      // Copies of the optimizer's step, and views of other copies, are not
      // moved.
      if (of_updates.contains(c)) continue;
      SP_CHECK(gather_view(c));
      if (is_view_of_copy(copy)) continue;
      if (of == out_.value_named.end()) {
        return fail(broken_plan("the graph has no value `" + copy.from + "`",
                                place_in("copies", c, ".from")));
      }
      const TensorMeta& meta = graph_.value(of->second).meta;
      // The source of a copy of a copy may have a layout that nothing reads the
      // value in, because it was moved as another view. So its layout is added
      // as well.
      SP_ASSIGN(Layout src,
                checked(copy.src, meta, place_in("copies", c, ".src")));
      SP_ASSIGN(Layout dst,
                checked(copy.dst, meta, place_in("copies", c, ".dst")));
      std::vector<Layout>& layouts = out_.given.copies[of->second.index()];
      if (copy.source) layouts.push_back(std::move(src));
      layouts.push_back(std::move(dst));
      out_.moved.push_back(c);
    }
    return gather_outputs();
  }

  // Values with unknown names are refused elsewhere.
  Result<void> gather_view(std::size_t c) {
    const PlannedCopy& copy = saved_.copies[c];
    const bool is_of_copy = copy.source && *copy.source < saved_.copies.size();
    const auto of = out_.value_named.find(
        is_of_copy ? saved_.copies[*copy.source].from : copy.of);
    const auto as = out_.value_named.find(copy.from);
    const auto end = out_.value_named.end();
    if (of == end || as == end || of->second == as->second) return {};
    SP_ASSIGN(Layout layout, checked(copy.src, graph_.value(as->second).meta,
                                     place_in("copies", c, ".src")));
    out_.given.views.push_back({of->second, as->second, std::move(layout)});
    return {};
  }

  Result<void> gather_node(std::size_t n) {
    const PlannedNode& said = saved_.nodes[n];
    const Node& node = graph_.nodes()[n];
    std::vector<Layout>& layouts = out_.given.nodes.emplace_back();
    for (std::size_t u = 0; u < said.inputs.size(); ++u) {
      SP_ASSIGN(Layout layout, checked(said.inputs[u].layout,
                                       graph_.value(node.inputs[u]).meta,
                                       place_in("nodes", n, ".inputs")));
      layouts.push_back(std::move(layout));
    }
    for (std::size_t o = 0; o < said.outputs.size(); ++o) {
      const TensorMeta& meta = graph_.value(node.outputs[o]).meta;
      SP_CHECK(check_tensor(said.outputs[o].tensor, meta,
                            place_in("nodes", n, ".outputs")));
      SP_ASSIGN(Layout layout, checked(said.outputs[o].tensor.layout, meta,
                                       place_in("nodes", n, ".outputs")));
      layouts.push_back(std::move(layout));
    }
    return {};
  }

  static Result<void> check_tensor(const PlannedTensor& said,
                                   const TensorMeta& meta, std::string where) {
    if (said.shape == meta.shape() && said.dtype == meta.dtype()) return {};
    return fail(broken_plan("the graph has a " + to_string(meta) + " there",
                            std::move(where)));
  }

  Result<void> gather_input(std::size_t i) {
    const PlannedValue& said = saved_.values[i];
    const Value& value = graph_.value(graph_.inputs()[i].value);
    const std::string where = "$.values." + said.name;
    if (said.name != value.display_name()) {
      return fail(broken_plan(
          "the graph has `" + value.display_name() + "` there", where));
    }
    SP_CHECK(check_tensor(said.tensor, value.meta, where));
    std::vector<Layout>& layouts = out_.given.inputs.emplace_back();
    SP_ASSIGN(Layout own, checked(said.tensor.layout, value.meta, where));
    layouts.push_back(std::move(own));
    if (said.state_layout) {
      SP_ASSIGN(Layout state, checked(*said.state_layout, value.meta, where));
      layouts.push_back(std::move(state));
    }
    for (const Layout& layout : layouts) {
      if (layout.has_partial()) {
        return fail(broken_plan("an input cannot be a partial", where));
      }
    }
    return {};
  }

  // Returns the copies before and after the optimizer's steps.
  std::set<std::size_t> update_copies() const {
    std::set<std::size_t> out;
    for (const PlannedUpdate& update : saved_.updates) {
      if (update.value.copy) out.insert(*update.value.copy);
    }
    for (std::size_t i = graph_.outputs().size(); i < saved_.outputs.size();
         ++i) {
      if (saved_.outputs[i].value.copy) {
        out.insert(*saved_.outputs[i].value.copy);
      }
    }
    return out;
  }

  Result<void> gather_outputs() {
    if (saved_.outputs.size() <
        graph_.outputs().size() + saved_.updates.size()) {
      return fail(broken_plan(
          "its outputs are not as many as those of the graph", "$.outputs"));
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const PlannedOutput& said = saved_.outputs[i];
      const Value& value = graph_.value(graph_.outputs()[i].value);
      if (said.value.from != value.display_name() ||
          said.kind != graph_.outputs()[i].kind) {
        return fail(broken_plan("the program returns another value",
                                place_in("outputs", i)));
      }
      SP_ASSIGN(Layout layout,
                checked(said.value.layout, value.meta, place_in("outputs", i)));
      if (layout.has_partial()) {
        return fail(broken_plan("the program cannot return a partial",
                                place_in("outputs", i)));
      }
      out_.given.outputs.push_back(std::move(layout));
    }
    return {};
  }

  const Plan& saved_;
  const Graph& graph_;
  SavedChoices out_;
};

}  // namespace

Error broken_plan(std::string why, std::string where) {
  return Error{ErrorCode::kPlanFile,
               "the plan is inconsistent: " + std::move(why),
               std::move(where),
               {},
               "plan anew without --plan; the file was changed, or made by "
               "another version"};
}

std::string place_in(const char* list, std::size_t index, const char* rest) {
  return "$." + std::string(list) + "[" + std::to_string(index) + "]" + rest;
}

bool is_view_of_copy(const PlannedCopy& copy) {
  return copy.source && copy.steps.empty() && copy.src == copy.dst;
}

Result<void> check_graph(const Plan& saved, const Graph& graph) {
  if (saved.graph_hash == hash_text(graph.hash())) return {};
  return fail(ErrorCode::kPlanOtherGraph, "the plan was made for another graph",
              "give the graph it was made for");
}

Result<SavedChoices> choices_of(const Plan& saved, const Graph& graph) {
  return Gatherer(saved, graph).run();
}

}  // namespace shardprop
