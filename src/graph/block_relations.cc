#include "graph/block_relations.h"

#include "base/index.h"

#include <algorithm>

namespace shardprop {
namespace {

Error unlike(const std::string& what) {
  return {ErrorCode::kInvalidArgument,
          "the repeated block of the graph cannot stand for more: " + what,
          {},
          {},
          "export one layer more, or all of them"};
}

}  // namespace

BlockRelations::BlockRelations(const Graph& graph, const Blocks& blocks,
                               std::span<const std::int64_t> counts)
    : graph_(graph), blocks_(blocks) {
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const BlockRun& run = blocks.runs()[r];
    const std::size_t here = run.first + (run.count - 1) / 2;
    rows_.push_back(
        {here, here + 1, counts[r] - static_cast<std::int64_t>(run.count)});
  }
}

const BlockRelations::Row* BlockRelations::row_of(std::size_t block) const {
  const auto run = blocks_.blocks()[block].run;
  return run ? &rows_[*run] : nullptr;
}

std::optional<std::size_t> BlockRelations::copied_row(
    std::optional<std::size_t> block) const {
  if (!block) return std::nullopt;
  const Row* row = row_of(*block);
  if (row == nullptr || row->here != *block) return std::nullopt;
  return index(row - rows_.data());
}

std::optional<std::size_t> BlockRelations::block_of(ValueId value) const {
  const Value& of = graph_.value(value);
  return of.is_input() ? blocks_.block_of_input(value)
                       : blocks_.block_of(of.producer);
}

std::optional<std::size_t> BlockRelations::block_of(
    const GraphOutput& output) const {
  return block_of(output.target.valid() ? output.target : output.value);
}

ValueId BlockRelations::counterpart(ValueId id, std::size_t from,
                                    std::size_t to) const {
  const Value& value = graph_.value(id);
  if (!value.is_input()) {
    return graph_.node(blocks_.counterpart(value.producer, to))
        .outputs[value.output_index];
  }
  const std::vector<ValueId>& all = blocks_.blocks()[from].inputs;
  const auto at = std::find(all.begin(), all.end(), id) - all.begin();
  return blocks_.blocks()[to].inputs[index(at)];
}

Result<void> BlockRelations::check_readers() const {
  for (const Node& node : graph_.nodes()) {
    const auto own = blocks_.blocks()[blocks_.block_of(node.id)].run;
    const auto reads = [&](std::size_t block) {
      return std::any_of(
          node.inputs.begin(), node.inputs.end(),
          [&](ValueId input) { return block_of(input) == block; });
    };
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (rows_[r].inserted > 0 && own != r && reads(rows_[r].here) &&
          reads(rows_[r].next)) {
        return fail(unlike("`" + node.name + "` outside reads each block"));
      }
    }
  }
  return {};
}

std::optional<CopiedValue> BlockRelations::read(const Row& row, std::size_t own,
                                                ValueId value, ValueId of_next,
                                                std::int64_t copy) const {
  const std::optional<std::size_t> from = block_of(value);
  if (own == row.next && from == row.here) {
    return CopiedValue{value, row.inserted};
  }
  if (own != row.here) return CopiedValue{value};
  if (from == row.next) {
    return copy == row.inserted
               ? CopiedValue{value}
               : CopiedValue{counterpart(value, row.next, row.here), copy + 1};
  }
  if (copy == 0) return CopiedValue{value};
  if (from == row.here) return CopiedValue{value, copy};
  if (block_of(of_next) == row.here) return CopiedValue{of_next, copy - 1};
  if (value == of_next) return CopiedValue{value};
  return std::nullopt;
}

Result<CopiedValue> BlockRelations::operand(const Node& node, std::int64_t copy,
                                            std::size_t operand) const {
  const std::size_t own = blocks_.block_of(node.id);
  const ValueId value = node.inputs[operand];
  const Row* row = row_of(own);
  if (row == nullptr) return CopiedValue{value};
  ValueId of_next = value;
  if (copy > 0) {
    of_next =
        graph_.node(blocks_.counterpart(node.id, row->next)).inputs[operand];
  }
  if (const auto found = read(*row, own, value, of_next, copy)) return *found;
  return fail(unlike("operand " + std::to_string(operand) + " of `" +
                     node.name + "` does not come from a neighbour"));
}

Result<CopiedValue> BlockRelations::result(const GraphOutput& output,
                                           std::int64_t copy) const {
  const std::optional<std::size_t> own = block_of(output);
  const Row* row = own ? row_of(*own) : nullptr;
  if (row == nullptr) return CopiedValue{output.value};
  std::optional<ValueId> of_next = output.value;
  if (copy > 0 && output.target.valid()) {
    const ValueId target = counterpart(output.target, row->here, row->next);
    of_next = output.kind == OutputKind::kGradient ? graph_.gradient_of(target)
                                                   : graph_.update_of(target);
  }
  if (of_next) {
    const auto found = read(*row, *own, output.value, *of_next, copy);
    if (found) return *found;
  }
  return fail(unlike("the gradient or update of `" +
                     graph_.value(output.target).display_name() +
                     "` does not come from a neighbour"));
}

std::vector<std::pair<std::string, std::string>> BlockRelations::names(
    std::size_t row) const {
  const Block& here = blocks_.blocks()[rows_[row].here];
  const Block& next = blocks_.blocks()[rows_[row].next];
  std::vector<std::pair<std::string, std::string>> out;
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

}  // namespace shardprop
