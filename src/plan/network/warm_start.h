// `WarmStart` is the knowledge of a search about its lower bound. The next search
// of the same process starts from it. It has names instead of indices, since the
// next problem may have other pins, sizes or layers.
//
//   search of lm_head.weight=R,R  ->  messages between the cached layouts of
//   lm_head.weight and mm_224, by pairs of layouts
//   search without the pin        ->  starts from the messages of the pairs that
//                                     both problems have
//
// It holds no bound. Any messages give a valid bound (solver::Messages), and any
// divisions cover all plans (division_tree.h). So nothing depends on how well the
// two problems agree except the time of the next search.
#pragma once

#include "plan/network/division_tree.h"
#include "plan/network/named_messages.h"

#include <memory>

namespace shardprop {

// A part is null if the search did not come to it.
struct WarmStart {
  // The messages of the best bound of all plans.
  std::shared_ptr<const NamedMessages> messages;
  // The branches of the search on overlap.
  std::shared_ptr<const DivisionTree> branches;
  // The messages of the bound of plans whose equal layers choose alone.
  std::shared_ptr<const NamedMessages> free_layers;
};

}  // namespace shardprop
