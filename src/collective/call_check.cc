#include "collective/call_check.h"

#include <shardprop/base/error.h>

#include "base/index.h"
#include "base/try.h"
#include "collective/byte_range.h"
#include "collective/reduction.h"

#include <algorithm>
#include <string>
#include <vector>

namespace shardprop::collective {
namespace {

bool meet(const LocalTensor& a, const LocalTensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes();
}

bool meet(const Message& a, const Message& b) {
  return std::equal(
      a.pieces.begin(), a.pieces.end(), b.pieces.begin(), b.pieces.end(),
      [](const LocalTensor& x, const LocalTensor& y) { return meet(x, y); });
}

tl::unexpected<Error> misfit(const CollectiveCall& call, std::string what) {
  return fail(Error{ErrorCode::kCollectiveCall,
                    std::string(to_string(call.kind)) + ": " + std::move(what),
                    call.where});
}

bool is_exchange(CollectiveKind kind) {
  return kind == CollectiveKind::kAllToAll ||
         kind == CollectiveKind::kPermute || kind == CollectiveKind::kSendRecv;
}

bool does_reduce(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce ||
         kind == CollectiveKind::kReduceScatter;
}

Result<void> check_counts(const CollectiveCall& call, std::int64_t ranks,
                          std::int64_t index) {
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t ins = call.inputs.size();
  const std::size_t outs = call.outputs.size();
  bool fits = !is_exchange(call.kind) || (ins == 0 && outs == 0);
  switch (call.kind) {
    case CollectiveKind::kAllGather:
      fits = outs == ins * n;
      break;
    case CollectiveKind::kReduceScatter:
      fits = ins == outs * n;
      break;
    case CollectiveKind::kAllReduce:
      fits = ins == outs;
      break;
    case CollectiveKind::kBroadcast:
      if (call.root < 0 || call.root >= ranks) {
        return misfit(call, "no member has the index " +
                                std::to_string(call.root) + " of the root");
      }
      fits = ins == (call.root == index ? outs : 0);
      break;
    case CollectiveKind::kSlice:
      return misfit(call, "nothing is exchanged");
    default:
      break;
  }
  if (!fits) {
    return misfit(call, std::to_string(ins) + " inputs and " +
                            std::to_string(outs) + " outputs for " +
                            std::to_string(ranks) + " ranks");
  }
  if (!is_exchange(call.kind) &&
      !(call.sends.empty() && call.receives.empty())) {
    return misfit(call, "has no messages");
  }
  return {};
}

Result<void> check_messages(CollectiveCall& call, std::int64_t ranks,
                            std::int64_t index) {
  for (std::vector<Message>* messages : {&call.sends, &call.receives}) {
    const auto by_peer = [](const Message& a, const Message& b) {
      return a.peer < b.peer;
    };
    if (!std::is_sorted(messages->begin(), messages->end(), by_peer)) {
      std::sort(messages->begin(), messages->end(), by_peer);
    }
    std::int64_t before = -1;
    for (const Message& message : *messages) {
      if (message.peer < 0 || message.peer >= ranks) {
        return misfit(
            call, "no member has the index " + std::to_string(message.peer));
      }
      if (message.peer == before) {
        return misfit(call, "two messages for the member of index " +
                                std::to_string(message.peer));
      }
      before = message.peer;
    }
  }
  const Message* to_self = find_message(call.sends, index);
  const Message* from_self = find_message(call.receives, index);
  if ((to_self == nullptr) != (from_self == nullptr) ||
      (to_self != nullptr && !meet(*to_self, *from_self))) {
    return misfit(call, "what the rank sends itself is not what it receives");
  }
  return {};
}

// Returns the input of this rank that corresponds to an output, and with which
// it may share its memory exactly.
const LocalTensor* own_input(const CollectiveCall& call, std::size_t output,
                             std::size_t n, std::size_t index) {
  switch (call.kind) {
    case CollectiveKind::kAllGather:
      return output % n == index ? &call.inputs[output / n] : nullptr;
    case CollectiveKind::kReduceScatter:
      return &call.inputs[output * n + index];
    default:
      return output < call.inputs.size() ? &call.inputs[output] : nullptr;
  }
}

// Returns which of the T tensors an input or output belongs to.
std::size_t tensor_of_input(const CollectiveCall& call, std::size_t input,
                            std::size_t n) {
  return call.kind == CollectiveKind::kReduceScatter ? input / n : input;
}
std::size_t tensor_of_output(const CollectiveCall& call, std::size_t output,
                             std::size_t n) {
  return call.kind == CollectiveKind::kAllGather ? output / n : output;
}

// `ReadRanges` is the set of tensors that a call reads, sorted by start
// address, so that a search for an overlap is fast.
class ReadRanges {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  void add(const LocalTensor& tensor, std::size_t of) {
    const ByteRange range = byte_range(tensor);
    if (range.first != range.end) ranges_.push_back({range, &tensor, of});
  }
  void finish() {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Entry& a, const Entry& b) {
                return a.range.first < b.range.first;
              });
    std::uintptr_t reach = 0;
    for (const Entry& entry : ranges_) {
      reach = std::max(reach, entry.range.end);
      reach_.push_back(reach);
    }
  }
  // Returns a tensor read that overlaps `written`, or null. Tensors with number
  // `except` are ignored.
  const LocalTensor* conflict(const LocalTensor& written,
                              std::size_t except) const {
    const ByteRange range = byte_range(written);
    if (range.first == range.end) return nullptr;
    auto at = std::lower_bound(ranges_.begin(), ranges_.end(), range.end,
                               [](const Entry& entry, std::uintptr_t end) {
                                 return entry.range.first < end;
                               });
    while (at != ranges_.begin()) {
      --at;
      const auto i = index(at - ranges_.begin());
      if (reach_[i] <= range.first) break;
      if (at->range.end <= range.first) continue;
      if (except != kNone && at->of == except) continue;
      return at->tensor;
    }
    return nullptr;
  }

 private:
  struct Entry {
    ByteRange range;
    const LocalTensor* tensor;
    std::size_t of;
  };
  std::vector<Entry> ranges_;
  std::vector<std::uintptr_t> reach_;  // largest end up to each entry
};

// Returns, for each of the T tensors, whether it is reduced or gathered in
// place.
std::vector<bool> in_place(const CollectiveCall& call, std::size_t n,
                           std::size_t index) {
  std::vector<bool> out(call.outputs.size());
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const LocalTensor* input = own_input(call, o, n, index);
    if (input != nullptr && call.outputs[o].same_view(*input)) {
      out[tensor_of_output(call, o, n)] = true;
    }
  }
  return out;
}

Result<void> check_overlap(const CollectiveCall& call, std::size_t n,
                           std::size_t index) {
  ReadRanges read;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    read.add(call.inputs[i], tensor_of_input(call, i, n));
  }
  for (const Message& message : call.sends) {
    for (const LocalTensor& piece : message.pieces) {
      read.add(piece, ReadRanges::kNone);
    }
  }
  read.finish();
  const auto check = [&](const LocalTensor& output,
                         std::size_t except) -> Result<void> {
    const LocalTensor* conflict = read.conflict(output, except);
    if (conflict == nullptr) return {};
    return fail(Error{ErrorCode::kCollectiveOverlap,
                      std::string(to_string(call.kind)) + ": output " +
                          to_string(output) + " overlaps input " +
                          to_string(*conflict),
                      call.where});
  };
  // The slices of an in-place tensor are exempt: columns interleave in memory
  // without sharing an element, and the caller is responsible for them.
  const std::vector<bool> exempt = in_place(call, n, index);
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const std::size_t t = tensor_of_output(call, o, n);
    SP_CHECK(check(call.outputs[o], exempt[t] ? t : ReadRanges::kNone));
  }
  for (const Message& message : call.receives) {
    for (const LocalTensor& piece : message.pieces) {
      SP_CHECK(check(piece, ReadRanges::kNone));
    }
  }
  return {};
}

std::string called(const Group::Ranks& ranks, std::size_t index,
                   const CollectiveCall& call) {
  return "rank " + std::to_string(ranks[index]) + " calls " + to_string(call);
}

class Matcher {
 public:
  Matcher(const Group::Ranks& ranks, std::span<const CollectiveCall> calls)
      : ranks_(ranks), calls_(calls), n_(calls.size()) {}

  Result<void> run() const {
    const CollectiveCall& first = calls_[0];
    for (std::size_t r = 1; r < n_; ++r) {
      const CollectiveCall& call = calls_[r];
      if (call.kind != first.kind ||
          (does_reduce(first.kind) && call.op != first.op) ||
          (first.kind == CollectiveKind::kBroadcast &&
           (call.root != first.root ||
            call.outputs.size() != first.outputs.size()))) {
        return differ(0, r);
      }
    }
    for (std::size_t reader = 0; reader < n_; ++reader) {
      for (std::size_t source = 0; source < n_; ++source) {
        if (!pair_fits(reader, source)) return differ(source, reader);
      }
    }
    return {};
  }

 private:
  // True if the tensors that `reader` expects from `source` match the tensors
  // that `source` sends.
  bool pair_fits(std::size_t reader, std::size_t source) const {
    const CollectiveCall& to = calls_[reader];
    const CollectiveCall& from = calls_[source];
    switch (to.kind) {
      case CollectiveKind::kAllGather:
        if (to.inputs.size() != from.inputs.size()) return false;
        for (std::size_t t = 0; t < from.inputs.size(); ++t) {
          if (!meet(to.outputs[t * n_ + source], from.inputs[t])) return false;
        }
        return true;
      case CollectiveKind::kReduceScatter:
        if (to.outputs.size() != from.outputs.size()) return false;
        for (std::size_t t = 0; t < to.outputs.size(); ++t) {
          if (!meet(to.outputs[t], from.inputs[t * n_ + reader])) return false;
        }
        return true;
      case CollectiveKind::kAllReduce:
        // Every member is compared with the first, so all members match.
        if (reader != 0) return true;
        return std::equal(to.inputs.begin(), to.inputs.end(),
                          from.inputs.begin(), from.inputs.end(),
                          [](const LocalTensor& a, const LocalTensor& b) {
                            return meet(a, b);
                          });
      case CollectiveKind::kBroadcast:
        if (source != static_cast<std::size_t>(to.root)) return true;
        return std::equal(to.outputs.begin(), to.outputs.end(),
                          from.inputs.begin(), from.inputs.end(),
                          [](const LocalTensor& a, const LocalTensor& b) {
                            return meet(a, b);
                          });
      default: {
        const Message* sent =
            find_message(from.sends, static_cast<std::int64_t>(reader));
        const Message* taken =
            find_message(to.receives, static_cast<std::int64_t>(source));
        if (sent == nullptr || taken == nullptr) return sent == taken;
        return meet(*sent, *taken);
      }
    }
  }

  tl::unexpected<Error> differ(std::size_t a, std::size_t b) const {
    return fail(Error{
        ErrorCode::kCollectiveMismatch,
        "ranks " + std::to_string(ranks_[a]) + " and " +
            std::to_string(ranks_[b]) + " call collectives that do not meet",
        {},
        {called(ranks_, a, calls_[a]), called(ranks_, b, calls_[b])},
        "all members of a group make the same calls in the same order"});
  }

  const Group::Ranks& ranks_;
  std::span<const CollectiveCall> calls_;
  std::size_t n_;
};

}  // namespace

const Message* find_message(std::span<const Message> messages,
                            std::int64_t peer) {
  const auto found = std::lower_bound(
      messages.begin(), messages.end(), peer,
      [](const Message& message, std::int64_t p) { return message.peer < p; });
  if (found == messages.end() || found->peer != peer) return nullptr;
  return &*found;
}

Result<void> check_call(CollectiveCall& call, std::int64_t ranks,
                        std::int64_t index) {
  SP_CHECK(check_counts(call, ranks, index));
  SP_CHECK(check_messages(call, ranks, index));
  const auto n = static_cast<std::size_t>(ranks);
  const auto me = static_cast<std::size_t>(index);
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const LocalTensor* input = own_input(call, o, n, me);
    if (input != nullptr && !meet(*input, call.outputs[o])) {
      return misfit(call, "input " + to_string(*input) + " and output " +
                              to_string(call.outputs[o]));
    }
  }
  if (does_reduce(call.kind)) {
    for (const LocalTensor& input : call.inputs) {
      if (!reduces(call.op, input.dtype())) {
        return fail(Error{ErrorCode::kReduction,
                          std::string(to_string(call.op)) +
                              " is not defined on " +
                              std::string(to_string(input.dtype())),
                          call.where});
      }
    }
  }
  return check_overlap(call, n, me);
}

bool all_on(const CollectiveCall& call, Device device) {
  const auto all = [device](const std::vector<LocalTensor>& tensors) {
    return std::all_of(
        tensors.begin(), tensors.end(), [device](const auto& tensor) {
          return tensor.device() == device || tensor.numel() == 0;
        });
  };
  const auto all_messages = [&all](const std::vector<Message>& messages) {
    return std::all_of(messages.begin(), messages.end(),
                       [&all](const auto& m) { return all(m.pieces); });
  };
  return all(call.inputs) && all(call.outputs) && all_messages(call.sends) &&
         all_messages(call.receives);
}

Result<void> check_match(const Group::Ranks& ranks,
                         std::span<const CollectiveCall> calls) {
  return Matcher(ranks, calls).run();
}

}  // namespace shardprop::collective
