#include "collective/direct_collectives.h"

#include <shardprop/base/error.h>

#include "base/try.h"

#include <algorithm>
#include <cstddef>

namespace shardprop::collective {
namespace {

LocalTensor flat(const LocalTensor& tensor) {
  return tensor.reshaped({tensor.numel()});
}

Result<void> gather_directly(StagedOp& op) {
  const CollectiveCall& call = op.call();
  const std::size_t n = op.ranks().size();
  const std::size_t me = static_cast<std::size_t>(op.index());
  for (std::size_t t = 0; t < call.inputs.size(); ++t) {
    SP_ASSIGN(const LocalTensor mine, op.packed(call.inputs[t]));
    for (std::size_t r = 0; r < n; ++r) {
      const LocalTensor& out = call.outputs[t * n + r];
      if (r == me) {
        SP_CHECK(op.memory().copy(call.inputs[t], out));
        continue;
      }
      SP_CHECK(op.send(static_cast<std::int64_t>(r), mine));
      SP_ASSIGN(const LocalTensor landing, op.landing(out));
      SP_CHECK(op.receive(static_cast<std::int64_t>(r), landing));
    }
  }
  return {};
}

Result<void> scatter_directly(StagedOp& op) {
  const CollectiveCall& call = op.call();
  const std::size_t n = op.ranks().size();
  const std::size_t me = static_cast<std::size_t>(op.index());
  std::vector<std::vector<LocalTensor>> terms(call.outputs.size());
  for (std::size_t t = 0; t < call.outputs.size(); ++t) {
    const LocalTensor& out = call.outputs[t];
    for (std::size_t r = 0; r < n; ++r) {
      if (r == me) {
        terms[t].push_back(call.inputs[t * n + me]);
        continue;
      }
      const auto peer = static_cast<std::int64_t>(r);
      SP_ASSIGN(const LocalTensor given, op.packed(call.inputs[t * n + r]));
      SP_CHECK(op.send(peer, given));
      SP_ASSIGN(const LocalTensor term,
                op.stage_memory(out.sizes(), out.dtype()));
      SP_CHECK(op.receive(peer, term));
      terms[t].push_back(term);
    }
  }
  op.then([terms = std::move(terms)](StagedOp& self) -> Result<void> {
    for (std::size_t t = 0; t < terms.size(); ++t) {
      if (self.call().outputs[t].numel() == 0) continue;
      SP_CHECK(self.memory().reduce(self.call().op, terms[t],
                                    self.call().outputs[t]));
    }
    return {};
  });
  return {};
}

// One tensor of an all-reduce: member r reduces part r of every member's
// tensor.
struct Parts {
  LocalTensor in;   // flat
  LocalTensor out;  // flat
  std::vector<LocalTensor> terms;
  std::int64_t share = 0;

  LocalTensor part(const LocalTensor& whole, std::size_t r) const {
    const std::int64_t begin =
        std::min(whole.numel(), share * static_cast<std::int64_t>(r));
    return whole.narrow(0, begin, std::min(share, whole.numel() - begin));
  }
};

Result<void> all_reduce_directly(StagedOp& op) {
  const CollectiveCall& call = op.call();
  const std::size_t n = op.ranks().size();
  const std::size_t me = static_cast<std::size_t>(op.index());
  std::vector<Parts> all;
  for (std::size_t t = 0; t < call.inputs.size(); ++t) {
    Parts parts;
    SP_ASSIGN(const LocalTensor in, op.packed(call.inputs[t]));
    SP_ASSIGN(const LocalTensor out, op.landing(call.outputs[t]));
    parts.in = flat(in);
    parts.out = flat(out);
    parts.share = (in.numel() + op.size() - 1) / op.size();
    const LocalTensor mine = parts.part(parts.in, me);
    for (std::size_t r = 0; r < n; ++r) {
      if (r == me) {
        parts.terms.push_back(mine);
        continue;
      }
      const auto peer = static_cast<std::int64_t>(r);
      SP_CHECK(op.send(peer, parts.part(parts.in, r)));
      SP_ASSIGN(const LocalTensor term,
                op.stage_memory(mine.sizes(), mine.dtype()));
      SP_CHECK(op.receive(peer, term));
      parts.terms.push_back(term);
    }
    all.push_back(std::move(parts));
  }
  op.then([all = std::move(all), n, me](StagedOp& self) -> Result<void> {
    for (const Parts& parts : all) {
      const LocalTensor mine = parts.part(parts.out, me);
      if (mine.numel() > 0) {
        SP_CHECK(self.memory().reduce(self.call().op, parts.terms, mine));
      }
      for (std::size_t r = 0; r < n; ++r) {
        if (r == me) continue;
        const auto peer = static_cast<std::int64_t>(r);
        SP_CHECK(self.send(peer, mine));
        SP_CHECK(self.receive(peer, parts.part(parts.out, r)));
      }
    }
    return {};
  });
  return {};
}

Result<void> broadcast_directly(StagedOp& op) {
  const CollectiveCall& call = op.call();
  for (std::size_t t = 0; t < call.outputs.size(); ++t) {
    if (call.inputs.empty()) {
      SP_ASSIGN(const LocalTensor landing, op.landing(call.outputs[t]));
      SP_CHECK(op.receive(call.root, landing));
      continue;
    }
    SP_ASSIGN(const LocalTensor from, op.packed(call.inputs[t]));
    for (std::int64_t r = 0; r < op.size(); ++r) {
      if (r != call.root) SP_CHECK(op.send(r, from));
    }
    SP_CHECK(op.memory().copy(call.inputs[t], call.outputs[t]));
  }
  return {};
}

// Returns the bytes of a message whose pieces are concatenated.
std::int64_t bytes_of(const Message& message) {
  std::int64_t bytes = 0;
  for (const LocalTensor& piece : message.pieces) bytes += piece.bytes();
  return bytes;
}

// Returns the slice of `bytes` for each piece of the message.
std::vector<LocalTensor> pieces_in(const LocalTensor& bytes,
                                   const Message& message) {
  std::vector<LocalTensor> out;
  std::int64_t at = 0;
  for (const LocalTensor& piece : message.pieces) {
    out.push_back(LocalTensor::wrap(bytes.data_as<std::byte>() + at,
                                    piece.sizes(), piece.dtype(), bytes.owner(),
                                    bytes.device()));
    at += piece.bytes();
  }
  return out;
}

bool is_one_stretch(const Message& message) {
  return message.pieces.size() == 1 && message.pieces[0].is_contiguous();
}

Result<void> send_message(StagedOp& op, const Message& message) {
  if (is_one_stretch(message)) return op.send(message.peer, message.pieces[0]);
  SP_ASSIGN(const LocalTensor bytes,
            op.stage_memory({bytes_of(message)}, DType::kU8));
  const std::vector<LocalTensor> places = pieces_in(bytes, message);
  for (std::size_t i = 0; i < places.size(); ++i) {
    SP_CHECK(op.memory().copy(message.pieces[i], places[i]));
  }
  return op.send(message.peer, bytes);
}

Result<void> receive_message(StagedOp& op, const Message& message) {
  if (is_one_stretch(message)) {
    return op.receive(message.peer, message.pieces[0]);
  }
  SP_ASSIGN(const LocalTensor bytes,
            op.stage_memory({bytes_of(message)}, DType::kU8));
  SP_CHECK(op.receive(message.peer, bytes));
  const std::vector<LocalTensor> places = pieces_in(bytes, message);
  for (std::size_t i = 0; i < places.size(); ++i) {
    op.unpack(places[i], message.pieces[i]);
  }
  return {};
}

Result<void> exchange_directly(StagedOp& op) {
  const CollectiveCall& call = op.call();
  for (const Message& message : call.receives) {
    if (message.peer != op.index()) {
      SP_CHECK(receive_message(op, message));
    }
  }
  for (const Message& message : call.sends) {
    if (message.peer != op.index()) {
      SP_CHECK(send_message(op, message));
      continue;
    }
    const auto own =
        std::find_if(call.receives.begin(), call.receives.end(),
                     [&](const Message& m) { return m.peer == message.peer; });
    for (std::size_t i = 0; i < message.pieces.size(); ++i) {
      SP_CHECK(op.memory().copy(message.pieces[i], own->pieces[i]));
    }
  }
  return {};
}

}  // namespace

Result<void> post_directly(StagedOp& op) {
  switch (op.call().kind) {
    case CollectiveKind::kAllGather:
      return gather_directly(op);
    case CollectiveKind::kReduceScatter:
      return scatter_directly(op);
    case CollectiveKind::kAllReduce:
      return all_reduce_directly(op);
    case CollectiveKind::kBroadcast:
      return broadcast_directly(op);
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kPermute:
    case CollectiveKind::kSendRecv:
      return exchange_directly(op);
    case CollectiveKind::kSlice:
      break;
  }
  throw InternalError("a slice is not a collective");
}

}  // namespace shardprop::collective
