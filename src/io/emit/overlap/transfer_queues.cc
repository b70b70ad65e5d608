#include "io/emit/overlap/transfer_queues.h"

#include "program/step_values.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <variant>

namespace shardprop::emit {
namespace {

// `Flight` is the transfers of one queue.
struct Flight {
  std::size_t issued_at = 0;  // index of a step, as `waited_at`
  std::size_t waited_at = 0;
  std::vector<std::int64_t> nanoseconds;  // by transfer
};

void join_queues(const ProgramStep& step, TransferQueues& queues) {
  const auto [own, fresh] = queues.of_copy.try_emplace(*step.copy, *step.copy);
  if (fresh) {
    for_each_taken(step, [&](ProgramValueId id) {
      const auto found = queues.of_value.find(id);
      if (found != queues.of_value.end()) own->second = found->second;
    });
  }
  for_each_made(step, [&](ProgramValueId id) {
    queues.of_value.emplace(id, own->second);
  });
}

// Returns the flights by queue, and sets all of `queues` but the later starts.
std::map<std::size_t, Flight> flights(const SpmdProgram& program,
                                      TransferQueues& queues) {
  std::map<std::size_t, Flight> out;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    if (const auto* wait = std::get_if<ProgramWait>(&step.action)) {
      for (const ProgramValueId id : wait->values) {
        const auto found = queues.of_value.find(id);
        if (found == queues.of_value.end()) continue;
        std::size_t& waited_at = out[found->second].waited_at;
        if (waited_at == 0) waited_at = s;
      }
    }
    if (!step.is_overlapped) continue;
    join_queues(step, queues);
    const auto* moved = std::get_if<ProgramCollective>(&step.action);
    if (moved == nullptr || moved->step.kind == CollectiveKind::kSlice) {
      continue;
    }
    Flight& flight = out[queues.of_copy.at(*step.copy)];
    if (flight.nanoseconds.empty()) flight.issued_at = s;
    flight.nanoseconds.push_back(moved->step.nanoseconds);
  }
  return out;
}

// Returns the indices of the steps that compute between issue and wait.
std::vector<std::size_t> computing(const SpmdProgram& program,
                                   const Flight& flight) {
  std::vector<std::size_t> out;
  for (std::size_t s = flight.issued_at; s < flight.waited_at; ++s) {
    const ProgramStep& step = program.steps[s];
    if (std::holds_alternative<ProgramOp>(step.action) && !step.is_overlapped) {
      out.push_back(s);
    }
  }
  return out;
}

}  // namespace

TransferQueues transfer_queues(const SpmdProgram& program) {
  TransferQueues out;
  for (const auto& [queue, flight] : flights(program, out)) {
    if (flight.nanoseconds.size() < 2) continue;
    const std::vector<std::size_t> steps = computing(program, flight);
    const std::int64_t total = std::max<std::int64_t>(
        1, std::accumulate(flight.nanoseconds.begin(), flight.nanoseconds.end(),
                           std::int64_t{0}));
    std::int64_t done = 0;
    for (std::size_t t = 0; t + 1 < flight.nanoseconds.size(); ++t) {
      done += flight.nanoseconds[t];
      const double share =
          static_cast<double>(done) / static_cast<double>(total);
      const auto at =
          static_cast<std::size_t>(share * static_cast<double>(steps.size()));
      // If no step is left, the transfer starts when the program waits.
      if (at < steps.size()) out.later_starts[steps[at]].push_back(queue);
    }
  }
  return out;
}

}  // namespace shardprop::emit
