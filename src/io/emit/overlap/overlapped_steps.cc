// Emits the overlapped steps of a program: which calls run when a transfer
// starts, and which run when the program waits.
#include "io/emit/rank_emitter.h"

namespace shardprop::emit {

void RankEmitter::stand_at(std::size_t at) {
  const ProgramStep& step = program_.steps[at];
  if (const auto found = queues_.later_starts.find(at);
      found != queues_.later_starts.end()) {
    for (const std::size_t queue : found->second) graph_.continue_queue(queue);
  }
  if (step.is_overlapped) {
    graph_.stand_at_overlapped(step.node, *step.copy,
                               queues_.of_copy.at(*step.copy));
  } else {
    graph_.stand_at(step.node, step.copy);
  }
}

void RankEmitter::finish(const ProgramWait& wait) {
  for (const ProgramValueId id : wait.values) {
    const auto found = queues_.of_value.find(id);
    if (found != queues_.of_value.end()) graph_.finish_queue(found->second);
  }
}

}  // namespace shardprop::emit
