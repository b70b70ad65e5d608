#include "mpi/mpi_collectives.h"

#include <shardprop/base/error.h>
#include <shardprop/redistribute/collective_cost.h>

#include "base/index.h"
#include "base/try.h"
#include "collective/direct_collectives.h"
#include "collective/stretch.h"

#include <algorithm>
#include <limits>
#include <memory>

// Requests outlive the functions that make them: MpiOp tests them.
// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)

namespace shardprop::mpi {
namespace {

bool fits_int(std::int64_t count) {
  return count <= std::numeric_limits<int>::max();
}

// Returns the tensors as one: in place if they are consecutive in memory, else
// as a copy.
Result<LocalTensor> one_stretch(MpiOp& op, std::span<const LocalTensor> parts,
                                std::int64_t count, bool must_copy) {
  if (!must_copy) {
    if (auto stretch = collective::one_stretch(parts)) return *stretch;
  }
  SP_ASSIGN(LocalTensor out, op.stage_memory({count}, parts[0].dtype()));
  std::int64_t at = 0;
  for (const LocalTensor& part : parts) {
    SP_CHECK(op.memory().copy(
        part, out.narrow(0, at, part.numel()).reshaped(part.sizes())));
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
  const auto n = static_cast<std::size_t>(op.size());
  for (std::size_t t = 0; t < call.outputs.size(); ++t) {
    const std::span<const LocalTensor> terms(&call.inputs[t * n], n);
    const LocalTensor& out = call.outputs[t];
    const bool in_place = out.same_view(terms[index(op.index())]);
    SP_ASSIGN(const LocalTensor in,
              one_stretch(op, terms, numel_of(terms), in_place));
    SP_ASSIGN(const LocalTensor landing, op.landing(out));
    // MPI may read the counts until the collective ends.
    const auto counts = std::make_shared<std::vector<int>>(counts_of(terms));
    op.keep(counts);
    MPI_Request request = MPI_REQUEST_NULL;
    SP_CHECK(checked(MPI_Ireduce_scatter(in.data(), landing.data(),
                                         counts->data(), mpi_type(out.dtype()),
                                         mpi_op(call.op, out.dtype(), nan_ops),
                                         op.group().communicator, &request),
                     "MPI_Ireduce_scatter"));
    op.add(request);
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
    if (root) SP_CHECK(op.memory().copy(call.inputs[t], call.outputs[t]));
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

Result<void> post_natively(MpiOp& op, const NanOps& nan_ops) {
  return op.begin([&](collective::StagedOp& staged) -> Result<void> {
    const CollectiveCall& call = op.call();
    const auto n = static_cast<std::size_t>(op.size());
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
    return collective::post_directly(staged);
  });
}

}  // namespace shardprop::mpi

// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)
