#include <shardprop/program/footprint.h>

#include "base/saturating.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/index.h"

namespace shardprop {
namespace {

class LiveBytes {
 public:
  explicit LiveBytes(const SpmdProgram& program)
      : program_(program),
        counted_(program.values.size(), false),
        change_(program.nodes.size() + 1),
        buffers_(program.nodes.size()) {}

  std::vector<std::int64_t> run() {
    note_counted();
    note_spans();
    for (const Span& span : spans_) {
      if (!span.held) continue;
      change_[span.from] += span.bytes;
      change_[span.until + 1] -= span.bytes;
    }
    note_buffers();
    note_flat_buffers();
    std::vector<std::int64_t> out;
    WideInt live = 0;
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      live += change_[n];
      out.push_back(saturated(live + buffers_[n]));
    }
    return out;
  }

 private:
  // The interval in which a value's memory is allocated, by the id of the value
  // that owns the memory.
  struct Span {
    bool held = false;
    std::size_t from = 0;
    std::size_t until = 0;
    std::int64_t bytes = 0;
  };

  std::int64_t bytes_of(ProgramValueId id) const {
    const ProgramValue& value = program_.value(id);
    return max_local_bytes(value.layout, program_.mesh, value.meta);
  }

  void note_counted() {
    const auto count = [&](ProgramValueId id) {
      if (id.valid()) counted_[id.index()] = true;
    };
    for (const ProgramInput& input : program_.inputs) {
      const bool is_tensor = input.kind != InputKind::kSeed &&
                             input.kind != InputKind::kLearningRate &&
                             input.kind != InputKind::kOptimizerStep;
      if (is_tensor) count(input.value);
    }
    for (const ProgramNode& node : program_.nodes) {
      for (const ProgramValueId id : node.outputs) count(id);
    }
    for (const ProgramCopy& copy : program_.copies) count(copy.value);
  }

  void hold(ProgramValueId id, std::size_t node) {
    if (!counted_[id.index()]) return;
    const ProgramValueId memory = program_.value(id).buffer;
    Span& span = spans_[memory.index()];
    if (!span.held) span = {true, node, node, bytes_of(memory)};
    span.until = std::max(span.until, node);
  }

  void note_spans() {
    spans_.resize(program_.values.size());
    const std::size_t end = program_.nodes.size() - 1;
    for (const ProgramInput& input : program_.inputs) {
      hold(input.value, 0);
      hold(input.value, end);
    }
    for (const ProgramStep& step : program_.steps) {
      if (const auto* op = std::get_if<ProgramOp>(&step.action)) {
        for (const ProgramValueId id : op->outputs) {
          if (id.valid()) hold(id, step.node);
        }
      } else if (const auto* moved =
                     std::get_if<ProgramCollective>(&step.action)) {
        hold(moved->output, step.node);
      } else if (const auto* freed = std::get_if<ProgramFree>(&step.action)) {
        for (const ProgramValueId id : freed->values) hold(id, step.node);
      }
    }
    for (const ProgramOutput& output : program_.outputs) {
      hold(output.value, end);
    }
  }

  // Copies for one node are produced one after another, and so are those in
  // flight. A copy needs its buffers from its first node to its last one, which
  // is that of the wait if it is overlapped.
  void note_buffers() {
    struct Move {
      std::size_t from = 0;
      std::size_t until = 0;
      std::int64_t peak = 0;
      ProgramValueId source;
      bool is_overlapped = false;
    };
    std::map<std::size_t, Move> moves;                // by copy
    std::map<ProgramValueId, std::size_t> in_flight;  // copy by output
    for (const ProgramStep& step : program_.steps) {
      if (const auto* wait = std::get_if<ProgramWait>(&step.action)) {
        for (const ProgramValueId id : wait->values) {
          const auto found = in_flight.find(id);
          if (found == in_flight.end()) continue;
          std::size_t& until = moves.at(found->second).until;
          until = std::max(until, step.node);
        }
      }
      const auto* moved = std::get_if<ProgramCollective>(&step.action);
      if (moved == nullptr || !step.copy || is_flat(*moved)) continue;
      Move& move = moves
                       .try_emplace(*step.copy,
                                    Move{step.node, step.node, 0, moved->input})
                       .first->second;
      move.until = std::max(move.until, step.node);
      move.peak = std::max(move.peak, moved->step.peak_bytes);
      if (!step.is_overlapped) continue;
      move.is_overlapped = true;
      in_flight.emplace(moved->output, *step.copy);
    }
    std::vector<std::int64_t> overlapped(buffers_.size());
    for (const auto& [copy, move] : moves) {
      const std::int64_t held =
          bytes_of(move.source) + bytes_of(program_.copies[copy].value);
      auto& buffers = move.is_overlapped ? overlapped : buffers_;
      for (std::size_t n = move.from; n <= move.until; ++n) {
        buffers[n] = std::max(buffers[n], move.peak - held);
      }
    }
    for (std::size_t n = 0; n < buffers_.size(); ++n) {
      buffers_[n] = sat_add(buffers_[n], overlapped[n]);
    }
  }

  bool is_flat(const ProgramCollective& moved) const {
    return program_.value(moved.input).is_local();
  }

  // A collective of local tensors for copies moves a flat buffer. It takes its
  // peak bytes from the node before which it starts to that in which its result
  // is freed.
  void note_flat_buffers() {
    struct Buffer {
      std::size_t from = 0;
      std::size_t until = 0;
      std::int64_t bytes = 0;
    };
    std::map<std::size_t, Buffer> buffers;            // by copy
    std::map<ProgramValueId, std::size_t> buffer_of;  // copy by output
    for (const ProgramStep& step : program_.steps) {
      if (const auto* freed = std::get_if<ProgramFree>(&step.action)) {
        for (const ProgramValueId id : freed->values) {
          const auto found = buffer_of.find(id);
          if (found == buffer_of.end()) continue;
          std::size_t& until = buffers.at(found->second).until;
          until = std::max(until, step.node);
        }
      }
      const auto* moved = std::get_if<ProgramCollective>(&step.action);
      if (moved == nullptr || !step.copy || !is_flat(*moved)) continue;
      Buffer& buffer =
          buffers.try_emplace(*step.copy, Buffer{step.node, step.node, 0})
              .first->second;
      buffer.bytes = std::max(buffer.bytes, moved->step.peak_bytes);
      buffer_of.emplace(moved->output, *step.copy);
    }
    for (const auto& [copy, buffer] : buffers) {
      for (std::size_t n = buffer.from; n <= buffer.until; ++n) {
        buffers_[n] = sat_add(buffers_[n], buffer.bytes);
      }
    }
  }

  const SpmdProgram& program_;
  std::vector<bool> counted_;
  std::vector<Span> spans_;
  std::vector<WideInt> change_;
  std::vector<std::int64_t> buffers_;
};

}  // namespace

ProgramTraffic traffic(const SpmdProgram& program) {
  ProgramTraffic out;
  for (const ProgramStep& step : program.steps) {
    const auto* moved = std::get_if<ProgramCollective>(&step.action);
    if (moved == nullptr) continue;
    ++out.collectives[index(moved->step.kind)];
    out.bytes_per_rank =
        sat_add(out.bytes_per_rank, moved->step.bytes_per_rank);
  }
  return out;
}

std::vector<std::int64_t> live_bytes(const SpmdProgram& program) {
  return LiveBytes(program).run();
}

}  // namespace shardprop
