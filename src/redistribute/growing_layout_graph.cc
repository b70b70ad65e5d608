#include "redistribute/growing_layout_graph.h"

namespace shardprop::redistribute {

std::optional<std::uint32_t> GrowingLayoutGraph::insert_canonical(
    const State& produced) {
  if (const auto known = produced_.find(produced)) return forms_[*known];
  const auto form =
      canonical_state(produced, active_, alphabet_, mesh_, shape_);
  std::optional<std::uint32_t> number;
  if (form) number = insert(*form);
  if (forms_.size() < kMostForms) {
    produced_.insert(produced);
    forms_.push_back(number);
  }
  return number;
}

}  // namespace shardprop::redistribute
