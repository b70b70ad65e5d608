#include "mpi/mpi_collectives.h"

#include <shardprop/base/error.h>
#include <shardprop/collective/kernel_view.h>
#include <shardprop/redistribute/collective_cost.h>

#include "base/try.h"
#include "collective/reduction.h"

#include <algorithm>
#include <limits>

namespace shardprop::mpi {
namespace {

std::size_t index_of(const MpiOp& op) {
  return static_cast<std::size_t>(op.group().index);
}

std::size_t count_of(const MpiOp& op) { return op.group().ranks.size(); }

LocalTensor flat(const LocalTensor& tensor) {
  return tensor.reshaped({tensor.numel()});
}

Result<void> reduced(ReduceOp op, std::span<const LocalTensor> terms,
                     const LocalTensor& out) {
  if (out.numel() == 0) return {};
  const kernels::Status status = collective::reduce_terms(op, terms, out);
  if (status.ok()) return {};
  return fail(ErrorCode::kEngine, status.message());
}

// Between members ------------------------------------------------------------

Result<void> gather_directly(MpiOp& op) {
  const CollectiveCall& call = op.call();
  const std::size_t n = count_of(op);
  const std::size_t me = index_of(op);
  for (std::size_t t = 0; t < call.inputs.size(); ++t) {
    SP_ASSIGN(const LocalTensor mine, op.packed(call.inputs[t]));
    for (std::size_t r = 0; r < n; ++r) {
      const LocalTensor& out = call.outputs[t * n + r];
      if (r == me) {
        SP_CHECK(copy(call.inputs[t], out));
        continue;
      }
      SP_CHECK(op.send(static_cast<std::int64_t>(r), mine));
      SP_ASSIGN(const LocalTensor landing, op.landing(out));
      SP_CHECK(op.receive(static_cast<std::int64_t>(r), landing));
    }
  }
  return {};
}

Result<void> scatter_directly(MpiOp& op) {
  const CollectiveCall& call = op.call();
  const std::size_t n = count_of(op);
  const std::size_t me = index_of(op);
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
  op.then([terms = std::move(terms)](MpiOp& self) -> Result<void> {
    for (std::size_t t = 0; t < terms.size(); ++t) {
      SP_CHECK(reduced(self.call().op, terms[t], self.call().outputs[t]));
    }
    return {};
  });
  return {};
}

// One tensor of an all-reduce: member r reduces part r of everyone's.
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

Result<void> all_reduce_directly(MpiOp& op) {
  const CollectiveCall& call = op.call();
  const std::size_t n = count_of(op);
  const std::size_t me = index_of(op);
  std::vector<Parts> all;
  for (std::size_t t = 0; t < call.inputs.size(); ++t) {
    Parts parts;
    SP_ASSIGN(const LocalTensor in, op.packed(call.inputs[t]));
    SP_ASSIGN(const LocalTensor out, op.landing(call.outputs[t]));
    parts.in = flat(in);
    parts.out = flat(out);
    parts.share = (in.numel() + op.ranks() - 1) / op.ranks();
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
  op.then([all = std::move(all), n, me](MpiOp& self) -> Result<void> {
    for (const Parts& parts : all) {
      const LocalTensor mine = parts.part(parts.out, me);
      SP_CHECK(reduced(self.call().op, parts.terms, mine));
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

Result<void> broadcast_directly(MpiOp& op) {
  const CollectiveCall& call = op.call();
  for (std::size_t t = 0; t < call.outputs.size(); ++t) {
    if (call.inputs.empty()) {
      SP_ASSIGN(const LocalTensor landing, op.landing(call.outputs[t]));
      SP_CHECK(op.receive(call.root, landing));
      continue;
    }
    SP_ASSIGN(const LocalTensor from, op.packed(call.inputs[t]));
    for (std::int64_t r = 0; r < op.ranks(); ++r) {
      if (r != call.root) SP_CHECK(op.send(r, from));
    }
    SP_CHECK(copy(call.inputs[t], call.outputs[t]));
  }
  return {};
}

// A message as one stretch of bytes.
std::int64_t bytes_of(const Message& message) {
  std::int64_t bytes = 0;
  for (const LocalTensor& piece : message.pieces) bytes += piece.bytes();
  return bytes;
}

// The place of each piece in it.
std::vector<LocalTensor> pieces_in(const LocalTensor& bytes,
                                   const Message& message) {
  std::vector<LocalTensor> out;
  std::int64_t at = 0;
  for (const LocalTensor& piece : message.pieces) {
    out.push_back(LocalTensor::wrap(bytes.data_as<std::byte>() + at,
                                    piece.sizes(), piece.dtype(),
                                    bytes.owner()));
    at += piece.bytes();
  }
  return out;
}

bool is_one_stretch(const Message& message) {
  return message.pieces.size() == 1 && message.pieces[0].is_contiguous();
}

Result<void> send_message(MpiOp& op, const Message& message) {
  if (is_one_stretch(message)) return op.send(message.peer, message.pieces[0]);
  SP_ASSIGN(const LocalTensor bytes,
            op.stage_memory({bytes_of(message)}, DType::kU8));
  const std::vector<LocalTensor> places = pieces_in(bytes, message);
  for (std::size_t i = 0; i < places.size(); ++i) {
    SP_CHECK(copy(message.pieces[i], places[i]));
  }
  return op.send(message.peer, bytes);
}

Result<void> receive_message(MpiOp& op, const Message& message) {
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

Result<void> exchange_directly(MpiOp& op) {
  const CollectiveCall& call = op.call();
  for (const Message& message : call.receives) {
    if (message.peer != op.group().index) {
      SP_CHECK(receive_message(op, message));
    }
  }
  for (const Message& message : call.sends) {
    if (message.peer != op.group().index) {
      SP_CHECK(send_message(op, message));
      continue;
    }
    const auto own =
        std::find_if(call.receives.begin(), call.receives.end(),
                     [&](const Message& m) { return m.peer == message.peer; });
    for (std::size_t i = 0; i < message.pieces.size(); ++i) {
      SP_CHECK(copy(message.pieces[i], own->pieces[i]));
    }
  }
  return {};
}

// By MPI's collectives -------------------------------------------------------

bool fits_int(std::int64_t count) {
  return count <= std::numeric_limits<int>::max();
}

// The tensors' memory if it is one stretch in their order, else a copy.
Result<LocalTensor> one_stretch(MpiOp& op, std::span<const LocalTensor> parts,
                                std::int64_t count, bool must_copy) {
  bool stretch = !must_copy;
  const std::byte* next = nullptr;
  for (const LocalTensor& part : parts) {
    if (part.numel() == 0) continue;
    const auto* at = part.data_as<const std::byte>();
    stretch =
        stretch && part.is_contiguous() && (next == nullptr || at == next);
    next = at + part.bytes();
  }
  const DType dtype = parts[0].dtype();
  if (stretch) {
    for (const LocalTensor& part : parts) {
      if (part.numel() == 0) continue;
      return LocalTensor::wrap(part.data(), {count}, dtype, part.owner());
    }
  }
  SP_ASSIGN(const LocalTensor out, op.stage_memory({count}, dtype));
  std::int64_t at = 0;
  for (const LocalTensor& part : parts) {
    if (part.numel() > 0) {
      SP_CHECK(
          copy(part, out.narrow(0, at, part.numel()).reshaped(part.sizes())));
    }
    at += part.numel();
  }
  return out;
}

std::vector<int> counts_of(std::span<const LocalTensor> parts) {
  std::vector<int> counts;
  for (const LocalTensor& part : parts) {
    counts.push_back(static_cast<int>(part.numel()));
  }
  return counts;
}

std::int64_t numel_of(std::span<const LocalTensor> parts) {
  std::int64_t count = 0;
  for (const LocalTensor& part : parts) count += part.numel();
  return count;
}

Result<void> all_reduce_natively(MpiOp& op, const NanOps& nan_ops) {
  const CollectiveCall& call = op.call();
  for (std::size_t t = 0; t < call.inputs.size(); ++t) {
    const DType dtype = call.inputs[t].dtype();
    SP_ASSIGN(const LocalTensor in, op.packed(call.inputs[t]));
    SP_ASSIGN(const LocalTensor out, op.landing(call.outputs[t]));
    const bool in_place = in.data() == out.data();
    for (std::int64_t at = 0; at < in.numel(); at += op.largest_part()) {
      const std::int64_t offset = at * item_size(dtype);
      MPI_Request request = MPI_REQUEST_NULL;
      SP_CHECK(checked(
          MPI_Iallreduce(
              in_place ? MPI_IN_PLACE : in.data_as<char>() + offset,
              out.data_as<char>() + offset,
              static_cast<int>(std::min(op.largest_part(), in.numel() - at)),
              mpi_type(dtype), mpi_op(call.op, dtype, nan_ops),
              op.group().communicator, &request),
          "MPI_Iallreduce"));
      op.add(request);
    }
  }
  return {};
}

Result<void> scatter_natively(MpiOp& op, const NanOps& nan_ops) {
  const CollectiveCall& call = op.call();
  const std::size_t n = count_of(op);
  for (std::size_t t = 0; t < call.outputs.size(); ++t) {
    const std::span<const LocalTensor> terms(&call.inputs[t * n], n);
    const LocalTensor& out = call.outputs[t];
    const bool in_place = out.same_view(terms[index_of(op)]);
    SP_ASSIGN(const LocalTensor in,
              one_stretch(op, terms, numel_of(terms), in_place));
    SP_ASSIGN(const LocalTensor landing, op.landing(out));
    std::vector<int> counts = counts_of(terms);
    MPI_Request request = MPI_REQUEST_NULL;
    SP_CHECK(checked(MPI_Ireduce_scatter(in.data(), landing.data(),
                                         counts.data(), mpi_type(out.dtype()),
                                         mpi_op(call.op, out.dtype(), nan_ops),
                                         op.group().communicator, &request),
                     "MPI_Ireduce_scatter"));
    op.add(request);
    // MPI may read the counts until the end.
    op.then([kept = std::move(counts)](MpiOp&) { return Result<void>(); });
  }
  return {};
}

Result<void> broadcast_natively(MpiOp& op) {
  const CollectiveCall& call = op.call();
  for (std::size_t t = 0; t < call.outputs.size(); ++t) {
    const bool root = !call.inputs.empty();
    SP_ASSIGN(const LocalTensor data,
              root ? op.packed(call.inputs[t]) : op.landing(call.outputs[t]));
    for (std::int64_t at = 0; at < data.bytes(); at += op.largest_part()) {
      MPI_Request request = MPI_REQUEST_NULL;
      SP_CHECK(checked(MPI_Ibcast(data.data_as<char>() + at,
                                  static_cast<int>(std::min(op.largest_part(),
                                                            data.bytes() - at)),
                                  MPI_BYTE, static_cast<int>(call.root),
                                  op.group().communicator, &request),
                       "MPI_Ibcast"));
      op.add(request);
    }
    if (root) SP_CHECK(copy(call.inputs[t], call.outputs[t]));
  }
  return {};
}

bool all_native(const CollectiveCall& call) {
  return std::all_of(
      call.inputs.begin(), call.inputs.end(), [&](const LocalTensor& input) {
        return reduces_natively(Engine::kMpi, call.op, input.dtype());
      });
}

}  // namespace

Result<void> post_directly(MpiOp& op) {
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
  throw InternalError("a slice is no collective");
}

Result<void> post_natively(MpiOp& op, const NanOps& nan_ops) {
  const CollectiveCall& call = op.call();
  const std::size_t n = count_of(op);
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
      if (all_native(call)) return all_reduce_natively(op, nan_ops);
      break;
    case CollectiveKind::kReduceScatter: {
      bool native = all_native(call);
      for (std::size_t t = 0; t < call.outputs.size(); ++t) {
        native = native && fits_int(numel_of({&call.inputs[t * n], n}));
      }
      if (native) return scatter_natively(op, nan_ops);
      break;
    }
    case CollectiveKind::kBroadcast:
      return broadcast_natively(op);
    default:
      break;
  }
  return post_directly(op);
}

}  // namespace shardprop::mpi
