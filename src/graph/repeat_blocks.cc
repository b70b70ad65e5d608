#include <shardprop/graph/repeat_blocks.h>

#include "base/index.h"
#include "base/try.h"
#include "graph/analysis/blocks.h"
#include "graph/block_relations.h"
#include "graph/layer_numbers.h"
#include "graph/stable_order.h"

#include <shardprop/graph/graph_builder.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

std::string name_in_graph(const std::string& name, std::int64_t copy) {
  return copy > 0 ? name + "_copy_" + std::to_string(copy) : name;
}

// Each copy of a block is checkpointed by itself.
CheckpointMark mark_of(const Node& node, std::int64_t copy) {
  CheckpointMark mark = node.checkpoint;
  if (!mark.region.empty()) mark.region = name_in_graph(mark.region, copy);
  return mark;
}

// DeepGraph builds the graph with the copies.
class DeepGraph {
 public:
  DeepGraph(const Graph& graph, const OpLibrary& library,
            const BlockRelations& relations)
      : graph_(graph), relations_(relations), builder_(graph.name(), library) {
    std::int64_t most = 0;
    for (std::size_t r = 0; r < relations.num_rows(); ++r) {
      most = std::max(most, relations.inserted(r));
      numbers_.emplace_back(relations.names(r), relations.inserted(r));
    }
    for (const Node& node : graph.nodes()) {
      if (node.phase == Phase::kForward) last_forward_ = node.id.index();
    }
    values_.assign(index(most) + 1,
                   std::vector<ValueId>(graph.values().size()));
  }

  Result<Graph> build() && {
    builder_.set_device(graph_.device());
    for (const Symbol& symbol : graph_.symbols()) builder_.add_symbol(symbol);
    for (const Guard& guard : graph_.guards()) builder_.add_guard(guard);
    for (const ReadingNote& note : graph_.notes()) builder_.add_note(note);
    SP_CHECK(add_inputs());
    SP_CHECK(add_nodes());
    SP_CHECK(add_outputs());
    return std::move(builder_).build();
  }

 private:
  struct CopiedNode {
    NodeId node;
    std::int64_t copy = 0;
  };

  ValueId& made(const CopiedValue& of) {
    return values_[index(of.copy)][of.value.index()];
  }
  // Returns `copy` if the value is copied together with a block.
  std::int64_t copy_of(ValueId value, std::int64_t copy) const {
    return relations_.copied_row(relations_.block_of(value)) ? copy : 0;
  }

  // Rows are in the order of their numbers, so that later ones are renumbered first.
  std::string renamed(std::string_view name, std::optional<std::size_t> row,
                      std::int64_t copy) const {
    std::string out(name);
    for (std::size_t r = numbers_.size(); r-- > 0;) {
      out = r == row && copy > 0 ? numbers_[r].of_copy(out, copy)
                                 : numbers_[r].of_original(out);
    }
    return out;
  }

  // Calls `add(element, copy)` for each old element and, after the last element of a
  // block that is copied, for each copy of its elements.
  template <class Elements, class RowOf, class Add>
  static Result<void> for_each(const Elements& elements,
                               const BlockRelations& relations,
                               const RowOf& row_of, const Add& add) {
    std::vector<std::size_t> ends(relations.num_rows(), 0);
    for (std::size_t e = 0; e < elements.size(); ++e) {
      if (const auto row = row_of(elements[e])) ends[*row] = e + 1;
    }
    for (std::size_t e = 0; e < elements.size(); ++e) {
      SP_CHECK(add(elements[e], 0));
      const std::optional<std::size_t> row = row_of(elements[e]);
      if (!row || e + 1 != ends[*row]) continue;
      for (std::int64_t copy = 1; copy <= relations.inserted(*row); ++copy) {
        for (std::size_t h = 0; h <= e; ++h) {
          if (row_of(elements[h]) == row) SP_CHECK(add(elements[h], copy));
        }
      }
    }
    return {};
  }

  Result<void> add_input(const GraphInput& input,
                         std::optional<std::size_t> row, std::int64_t copy) {
    const Value& value = graph_.value(input.value);
    NewInput added{.kind = input.kind,
                   .name = name_in_graph(value.name, copy),
                   .meta = value.meta,
                   .persistent = input.persistent,
                   .symbolic = value.symbolic};
    if (!value.qualified_name.empty()) {
      added.qualified_name = renamed(value.qualified_name, row, copy);
      if (copy > 0 && added.qualified_name == value.qualified_name) {
        added.qualified_name = name_in_graph(value.qualified_name, copy);
      }
    }
    for (const std::string& alias : value.aliases) {
      added.aliases.push_back(renamed(alias, row, copy));
    }
    const ValueId base = graph_.buffer(value.buffer).base();
    if (base != value.id && graph_.value(base).is_input()) {
      added.shares_storage_with = made({base, copy_of(base, copy)});
    }
    SP_ASSIGN(made({input.value, copy}), builder_.add_input(std::move(added)));
    return {};
  }

  Result<void> add_inputs() {
    const auto row_of = [&](const GraphInput& input) {
      return relations_.copied_row(relations_.block_of(input.value));
    };
    return for_each(graph_.inputs(), relations_, row_of,
                    [&](const GraphInput& input, std::int64_t copy) {
                      return add_input(input, row_of(input), copy);
                    });
  }

  Result<void> add_outputs() {
    return for_each(
        graph_.outputs(), relations_,
        [&](const GraphOutput& output) {
          return relations_.copied_row(relations_.block_of(output));
        },
        [&](const GraphOutput& output, std::int64_t copy) -> Result<void> {
          SP_ASSIGN(const CopiedValue from, relations_.result(output, copy));
          NewOutput added{.value = made(from), .kind = output.kind};
          if (output.target.valid()) {
            added.target = made({output.target, copy_of(output.target, copy)});
          }
          builder_.add_output(added);
          return {};
        });
  }

  Result<void> add_node(const CopiedNode& of) {
    const Node& node = graph_.node(of.node);
    const auto row = relations_.copied_row(relations_.block_of(node.id));
    NewNode added{.name = name_in_graph(node.name, of.copy),
                  .op = node.op,
                  .symbolic = node.symbolic,
                  .module_path = renamed(node.module_path, row, of.copy),
                  .module_class = node.module_class,
                  .source = node.source,
                  .decomposed_from = node.decomposed_from,
                  .checkpoint = mark_of(node, of.copy),
                  .as_written = true};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      SP_ASSIGN(const CopiedValue from, relations_.operand(node, of.copy, i));
      added.inputs.push_back(made(from));
    }
    for (const ValueId output : node.outputs) {
      const Value& value = graph_.value(output);
      added.output_names.push_back(name_in_graph(value.name, of.copy));
      added.output_symbolic.push_back(value.symbolic);
    }
    if (node.forward_node.valid()) {
      const auto forward =
          relations_.copied_row(relations_.block_of(node.forward_node));
      added.forward_node =
          name_in_graph(graph_.node(node.forward_node).name,
                        forward && forward == row ? of.copy : 0);
    }
    SP_ASSIGN(const std::vector<ValueId> results,
              builder_.add_node(std::move(added)));
    for (std::size_t o = 0; o < results.size(); ++o) {
      made({node.outputs[o], of.copy}) = results[o];
    }
    return {};
  }

  // Nodes up to the last forward node are early. Some of the backward phase are among
  // them, such as a view of a forward value.
  bool is_early(NodeId node) const { return node.index() <= last_forward_; }

  // Returns the last slot of the early nodes of a block, or the first one of its late
  // nodes: its copies run after it or before it.
  std::size_t slot_of_copies(const Block& block, bool early) const {
    std::optional<std::size_t> slot;
    for (const NodeId node : block.nodes) {
      if (is_early(node) != early) continue;
      const std::size_t n = node.index();
      if (!slot || early == (n > *slot)) slot = n;
    }
    return slot.value_or(0);
  }

  // Adds the nodes in the old order as far as operands allow. Copies run in order
  // after the early nodes of the block, and in reverse order before its late nodes.
  Result<void> add_nodes() {
    // The slot of the phase, the place among the copies there, the old slot.
    using Key = std::tuple<std::size_t, std::int64_t, std::size_t>;
    std::vector<CopiedNode> nodes;
    std::vector<Key> keys;
    std::vector<std::vector<std::size_t>> made_by(values_.size());
    for (auto& of_copy : made_by) of_copy.resize(graph_.nodes().size());
    const auto add = [&](NodeId node, std::int64_t copy, const Key& key) {
      made_by[index(copy)][node.index()] = nodes.size();
      nodes.push_back({node, copy});
      keys.push_back(key);
    };
    for (const Node& node : graph_.nodes()) {
      add(node.id, 0, {node.id.index(), 0, 0});
    }
    for (std::size_t r = 0; r < relations_.num_rows(); ++r) {
      const Block& block = relations_.here(r);
      const std::size_t early = slot_of_copies(block, true);
      const std::size_t late = slot_of_copies(block, false);
      for (const NodeId node : block.nodes) {
        for (std::int64_t copy = 1; copy <= relations_.inserted(r); ++copy) {
          add(node, copy,
              is_early(node) ? Key{early, copy, node.index()}
                             : Key{late, -copy, node.index()});
        }
      }
    }
    std::vector<std::vector<std::size_t>> needs(nodes.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const Node& node = graph_.node(nodes[n].node);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        SP_ASSIGN(const CopiedValue from,
                  relations_.operand(node, nodes[n].copy, i));
        const NodeId producer = graph_.value(from.value).producer;
        if (!producer.valid()) continue;
        needs[n].push_back(made_by[index(from.copy)][producer.index()]);
      }
    }
    const std::vector<std::size_t> order = stable_order(keys, needs);
    if (order.size() < nodes.size()) {
      return fail(ErrorCode::kInvalidArgument,
                  "the blocks of the graph depend on each other both ways",
                  "export the model with all of its layers");
    }
    for (const std::size_t n : order) SP_CHECK(add_node(nodes[n]));
    return {};
  }

  const Graph& graph_;
  const BlockRelations& relations_;
  GraphBuilder builder_;
  std::size_t last_forward_ = 0;       // slot
  std::vector<LayerNumbers> numbers_;  // by row
  // By copy and by old value: the new value.
  std::vector<std::vector<ValueId>> values_;
};

Result<void> check_counts(const Blocks& blocks,
                          std::span<const std::int64_t> counts) {
  const std::span<const BlockRun> runs = blocks.runs();
  if (runs.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "the graph has no two equal blocks in a row",
                "export at least two layers of each kind");
  }
  if (counts.size() != runs.size()) {
    std::string rows;
    for (const BlockRun& run : runs) {
      rows += (rows.empty() ? "" : ", ") + std::to_string(run.count);
    }
    return fail({ErrorCode::kInvalidArgument,
                 "the graph has " + std::to_string(runs.size()) +
                     (runs.size() == 1 ? " row" : " rows") + " of equal blocks",
                 {},
                 {"found " + std::to_string(counts.size()) +
                  " numbers; the rows have " + rows + " blocks"},
                 "give the number of blocks of each row, as in 24,24"});
  }
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (counts[r] >= static_cast<std::int64_t>(runs[r].count)) continue;
    return fail({ErrorCode::kInvalidArgument,
                 "a row of blocks cannot become shorter",
                 {},
                 {"found " + std::to_string(counts[r]) +
                  ", expected at least " + std::to_string(runs[r].count)},
                 "export fewer layers"});
  }
  return {};
}

}  // namespace

Result<Graph> repeat_blocks(const Graph& graph, const OpLibrary& library,
                            std::span<const std::int64_t> counts) {
  const Blocks blocks(graph);
  SP_CHECK(check_counts(blocks, counts));
  const BlockRelations relations(graph, blocks, counts);
  SP_CHECK(relations.check_readers());
  return DeepGraph(graph, library, relations).build();
}

}  // namespace shardprop
