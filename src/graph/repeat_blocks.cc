#include <shardprop/graph/repeat_blocks.h>

#include "base/index.h"
#include "base/try.h"
#include "graph/analysis/blocks.h"
#include "graph/layer_numbers.h"
#include "graph/stable_order.h"

#include <shardprop/graph/graph_builder.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

Error unlike(const std::string& what) {
  return {ErrorCode::kInvalidArgument,
          "the repeated block of the graph cannot stand for more: " + what,
          {},
          {},
          "export the model with all of its layers"};
}

// BlockInsertion inserts copies of the block `here` between it and the block `next`.
//
// Three relations lead out of a block: to the block before it, to the one after it,
// and to what all blocks share. An operand of a node in `here`, and that of its
// counterpart in `next`, say which one it is.
class BlockInsertion {
 public:
  BlockInsertion(const Graph& graph, const OpLibrary& library,
                 const Blocks& blocks, const BlockRun& run,
                 std::int64_t inserted)
      : graph_(graph),
        blocks_(blocks),
        here_(run.first + (run.count - 1) / 2),
        next_(here_ + 1),
        inserted_(inserted),
        numbers_(names_of_counterparts(), inserted),
        builder_(graph.name(), library),
        values_(index(inserted) + 1,
                std::vector<ValueId>(graph.values().size())) {}

  Result<Graph> run() && {
    SP_CHECK(check_readers());
    const std::size_t more = index(inserted_);
    builder_.expect(
        graph_.nodes().size() + more * blocks_.blocks()[here_].nodes.size(),
        graph_.values().size() * (more + 1));
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
  // An element of the new graph: an old value or node, and the number of its copy; 0
  // is the original.
  struct CopiedValue {
    ValueId value;
    std::int64_t copy = 0;
  };
  struct CopiedNode {
    NodeId node;
    std::int64_t copy = 0;
  };

  std::vector<std::pair<std::string, std::string>> names_of_counterparts()
      const {
    std::vector<std::pair<std::string, std::string>> out;
    const Block& here = blocks_.blocks()[here_];
    const Block& next = blocks_.blocks()[next_];
    for (std::size_t i = 0; i < here.inputs.size(); ++i) {
      out.emplace_back(graph_.value(here.inputs[i]).display_name(),
                       graph_.value(next.inputs[i]).display_name());
    }
    for (std::size_t n = 0; n < here.nodes.size(); ++n) {
      out.emplace_back(graph_.node(here.nodes[n]).module_path,
                       graph_.node(next.nodes[n]).module_path);
    }
    return out;
  }

  // ---- where a value belongs

  std::optional<std::size_t> block_of(ValueId value) const {
    const Value& of = graph_.value(value);
    return of.is_input() ? blocks_.block_of_input(value)
                         : blocks_.block_of(of.producer);
  }
  bool is_in(ValueId value, std::size_t block) const {
    return block_of(value) == block;
  }

  // Returns the counterpart in `here` of a value of `next`.
  ValueId here_of(ValueId of_next) const {
    const Value& value = graph_.value(of_next);
    if (!value.is_input()) {
      return graph_.node(blocks_.counterpart(value.producer, here_))
          .outputs[value.output_index];
    }
    const std::vector<ValueId>& all = blocks_.blocks()[next_].inputs;
    const auto at = std::find(all.begin(), all.end(), of_next) - all.begin();
    return blocks_.blocks()[here_].inputs[index(at)];
  }

  // An operator outside of the row that reads each block, such as a list of all hidden
  // states, would have to read the new ones, too.
  Result<void> check_readers() const {
    for (const Node& node : graph_.nodes()) {
      const std::size_t own = blocks_.block_of(node.id);
      if (own == here_ || own == next_) continue;
      const auto reads = [&](std::size_t block) {
        return std::any_of(node.inputs.begin(), node.inputs.end(),
                           [&](ValueId input) { return is_in(input, block); });
      };
      const bool is_outside =
          blocks_.blocks()[own].run != blocks_.blocks()[here_].run;
      if (is_outside && reads(here_) && reads(next_)) {
        return fail(unlike("`" + node.name + "` outside reads each block"));
      }
    }
    return {};
  }

  // Returns what an operand of a node in the new graph is. `copy` is that of the node.
  Result<CopiedValue> operand(const Node& node, std::int64_t copy,
                              std::size_t operand) const {
    const std::size_t own = blocks_.block_of(node.id);
    const ValueId value = node.inputs[operand];
    if (own == next_ && is_in(value, here_)) {
      return CopiedValue{value, inserted_};
    }
    if (own != here_) return CopiedValue{value};
    if (copy == 0) {
      return is_in(value, next_) ? CopiedValue{here_of(value), 1}
                                 : CopiedValue{value};
    }
    const Node& counterpart = graph_.node(blocks_.counterpart(node.id, next_));
    const ValueId of_next = counterpart.inputs[operand];
    if (is_in(value, here_)) return CopiedValue{value, copy};
    if (is_in(of_next, here_)) return CopiedValue{of_next, copy - 1};
    if (is_in(value, next_)) {
      return copy == inserted_ ? CopiedValue{value}
                               : CopiedValue{here_of(value), copy + 1};
    }
    if (value == of_next) return CopiedValue{value};
    return fail(unlike("operand " + std::to_string(operand) + " of `" +
                       node.name + "` does not come from a neighbour"));
  }

  ValueId& made(const CopiedValue& of) {
    return values_[index(of.copy)][of.value.index()];
  }

  // ---- the new graph

  // Calls `add(element, copy)` for each old element and, after the last one that is
  // in `here`, for each copy of those.
  template <class Elements, class IsHere, class Add>
  Result<void> for_each(const Elements& elements, const IsHere& is_here,
                        const Add& add) const {
    std::size_t end = 0;  // after the last element in `here`
    for (std::size_t e = 0; e < elements.size(); ++e) {
      if (is_here(elements[e])) end = e + 1;
    }
    for (std::size_t e = 0; e < elements.size(); ++e) {
      SP_CHECK(add(elements[e], 0));
      if (e + 1 != end) continue;
      for (std::int64_t copy = 1; copy <= inserted_; ++copy) {
        for (std::size_t h = 0; h < end; ++h) {
          if (is_here(elements[h])) SP_CHECK(add(elements[h], copy));
        }
      }
    }
    return {};
  }

  std::string renamed(std::string_view name, std::int64_t copy) const {
    return copy > 0 ? numbers_.of_copy(name, copy) : numbers_.of_original(name);
  }
  static std::string name_in_graph(const std::string& name, std::int64_t copy) {
    return copy > 0 ? name + "_copy_" + std::to_string(copy) : name;
  }

  Result<void> add_inputs() {
    return for_each(
        graph_.inputs(),
        [&](const GraphInput& input) { return is_in(input.value, here_); },
        [&](const GraphInput& input, std::int64_t copy) -> Result<void> {
          const Value& value = graph_.value(input.value);
          NewInput added{.kind = input.kind,
                         .name = name_in_graph(value.name, copy),
                         .meta = value.meta,
                         .persistent = input.persistent,
                         .symbolic = value.symbolic};
          if (!value.qualified_name.empty()) {
            added.qualified_name = renamed(value.qualified_name, copy);
            if (copy > 0 && added.qualified_name == value.qualified_name) {
              added.qualified_name = name_in_graph(value.qualified_name, copy);
            }
          }
          for (const std::string& alias : value.aliases) {
            added.aliases.push_back(renamed(alias, copy));
          }
          const ValueId base = graph_.buffer(value.buffer).base();
          if (base != value.id && graph_.value(base).is_input()) {
            added.shares_storage_with =
                made({base, is_in(base, here_) ? copy : 0});
          }
          SP_ASSIGN(made({input.value, copy}),
                    builder_.add_input(std::move(added)));
          return {};
        });
  }

  Result<void> add_node(const CopiedNode& of) {
    const Node& node = graph_.node(of.node);
    NewNode added{.name = name_in_graph(node.name, of.copy),
                  .op = node.op,
                  .symbolic = node.symbolic,
                  .module_path = renamed(node.module_path, of.copy),
                  .module_class = node.module_class,
                  .source = node.source,
                  .decomposed_from = node.decomposed_from,
                  .as_written = true};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      SP_ASSIGN(const CopiedValue from, operand(node, of.copy, i));
      added.inputs.push_back(made(from));
    }
    for (const ValueId output : node.outputs) {
      const Value& value = graph_.value(output);
      added.output_names.push_back(name_in_graph(value.name, of.copy));
      added.output_symbolic.push_back(value.symbolic);
    }
    if (node.forward_node.valid()) {
      const bool is_copied = blocks_.block_of(node.forward_node) == here_;
      added.forward_node = name_in_graph(graph_.node(node.forward_node).name,
                                         is_copied ? of.copy : 0);
    }
    SP_ASSIGN(const std::vector<ValueId> results,
              builder_.add_node(std::move(added)));
    for (std::size_t o = 0; o < results.size(); ++o) {
      made({node.outputs[o], of.copy}) = results[o];
    }
    return {};
  }

  // Returns the last slot of the forward nodes of `here`, or the first one of its
  // backward nodes: the copies of the phase run after it or before it.
  std::size_t slot_of_copies(Phase phase) const {
    std::optional<std::size_t> slot;
    for (const NodeId node : blocks_.blocks()[here_].nodes) {
      if (graph_.node(node).phase != phase) continue;
      const std::size_t n = node.index();
      if (!slot || (phase == Phase::kForward) == (n > *slot)) slot = n;
    }
    return slot.value_or(0);
  }

  // Adds the nodes in the old order as far as operands allow. Copies run in order
  // after the forward nodes of `here`, and in reverse order before its backward nodes.
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
    const std::size_t forward = slot_of_copies(Phase::kForward);
    const std::size_t backward = slot_of_copies(Phase::kBackward);
    for (const NodeId node : blocks_.blocks()[here_].nodes) {
      const bool is_forward = graph_.node(node).phase == Phase::kForward;
      for (std::int64_t copy = 1; copy <= inserted_; ++copy) {
        add(node, copy,
            {is_forward ? forward : backward, is_forward ? copy : -copy,
             node.index()});
      }
    }
    std::vector<std::vector<std::size_t>> needs(nodes.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const Node& node = graph_.node(nodes[n].node);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        SP_ASSIGN(const CopiedValue from, operand(node, nodes[n].copy, i));
        const NodeId producer = graph_.value(from.value).producer;
        if (!producer.valid()) continue;
        needs[n].push_back(made_by[index(from.copy)][producer.index()]);
      }
    }
    const std::vector<std::size_t> order = stable_order(keys, needs);
    for (const std::size_t n : order) SP_CHECK(add_node(nodes[n]));
    if (order.size() < nodes.size()) {
      return fail(unlike("its blocks depend on each other both ways"));
    }
    return {};
  }

  Result<void> add_outputs() {
    const auto is_here = [&](const GraphOutput& output) {
      return is_in(output.value, here_) ||
             (output.target.valid() && is_in(output.target, here_));
    };
    return for_each(
        graph_.outputs(), is_here,
        [&](const GraphOutput& output, std::int64_t copy) -> Result<void> {
          const std::int64_t of_value = is_in(output.value, here_) ? copy : 0;
          NewOutput added{.value = made({output.value, of_value}),
                          .kind = output.kind};
          if (output.target.valid()) {
            added.target =
                made({output.target, is_in(output.target, here_) ? copy : 0});
          }
          if (copy > 0 && of_value == 0) {
            return fail(
                unlike("an operator outside makes the gradient or update "
                       "of a block"));
          }
          builder_.add_output(added);
          return {};
        });
  }

  const Graph& graph_;
  const Blocks& blocks_;
  std::size_t here_;
  std::size_t next_;
  std::int64_t inserted_;
  LayerNumbers numbers_;
  GraphBuilder builder_;
  // By copy and by old value: the new value.
  std::vector<std::vector<ValueId>> values_;
};

std::string rows_text(const Blocks& blocks) {
  std::string text;
  for (const BlockRun& run : blocks.runs()) {
    text += (text.empty() ? "" : ", ") + std::to_string(run.count);
  }
  return text;
}

Result<void> check_counts(const Blocks& blocks,
                          std::span<const std::int64_t> counts) {
  const std::span<const BlockRun> runs = blocks.runs();
  if (runs.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "the graph has no two equal blocks in a row",
                "export at least two layers of each kind");
  }
  if (counts.size() != runs.size()) {
    return fail({ErrorCode::kInvalidArgument,
                 "the graph has " + std::to_string(runs.size()) +
                     " rows of equal blocks",
                 {},
                 {"found " + std::to_string(counts.size()) +
                  " numbers; the rows have " + rows_text(blocks) + " blocks"},
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
  std::optional<Graph> made;
  SP_CHECK(check_counts(Blocks(graph), counts));
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const Graph& before = made ? *made : graph;
    const Blocks blocks(before);
    if (blocks.runs().size() != counts.size()) {
      return fail(unlike("its rows of blocks become one"));
    }
    const BlockRun& run = blocks.runs()[r];
    const std::int64_t more = counts[r] - static_cast<std::int64_t>(run.count);
    SP_ASSIGN(Graph longer,
              BlockInsertion(before, library, blocks, run, more).run());
    made.emplace(std::move(longer));
  }
  return *std::move(made);
}

}  // namespace shardprop
