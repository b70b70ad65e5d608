#include "execute/collective_run.h"

#include "base/try.h"

#include <shardprop/collective/group.h>
#include <shardprop/execute/executor.h>
#include <shardprop/execute/program_run.h>
#include <shardprop/execute/redistribute_program.h>
#include <shardprop/program/rank_program.h>

#include <span>
#include <utility>

namespace shardprop::execute {
namespace {

Result<LocalTensor> redistributed(const SpmdProgram& program,
                                  const ProgramCollective& collective,
                                  const LocalTensor& source,
                                  Communicator& communicator, bool widen) {
  const auto spec = [&](ProgramValueId id,
                        const Layout& layout) -> Result<TensorSpec> {
    const TensorMeta& meta = program.value(id).meta;
    SP_ASSIGN(
        TensorMeta run,
        TensorMeta::contiguous(meta.shape(), run_dtype(meta.dtype(), widen)));
    return TensorSpec::create(program.mesh, layout, std::move(run));
  };
  SP_ASSIGN(const TensorSpec src, spec(collective.input, collective.step.src));
  SP_ASSIGN(const TensorSpec dst, spec(collective.output, collective.step.dst));
  SP_ASSIGN(const RedistributeProgram moves,
            RedistributeProgram::create(plan_of(collective), src, dst,
                                        communicator.rank()));
  return run(moves, communicator, source);
}

// Runs a collective inside a local program.
Result<LocalTensor> combined(const SpmdProgram& program,
                             const ProgramCollective& collective,
                             const LocalTensor& source,
                             Communicator& communicator) {
  const CollectiveStep& step = collective.step;
  SP_ASSIGN(const Group group,
            Group::mesh_dims(program.mesh, std::span(step.mesh_dims.data(),
                                                     step.mesh_dims.size())));
  SP_ASSIGN(LocalTensor term,
            LocalTensor::empty(source.sizes(), source.dtype()));
  SP_CHECK(host_memory_ops().copy(source, term));
  Dims shape = source.sizes();
  const bool gathers = step.kind == CollectiveKind::kAllGather;
  const bool scatters = step.kind == CollectiveKind::kReduceScatter;
  if (gathers) shape[0] *= group.size();
  if (scatters) shape[0] /= group.size();
  SP_ASSIGN(LocalTensor out,
            LocalTensor::empty(std::move(shape), source.dtype()));
  CollectiveCall call;
  call.kind = step.kind;
  call.inputs = {term};
  call.outputs = {out};
  if (gathers) {
    call.outputs.clear();
    const std::int64_t rows = source.size(0);
    for (std::int64_t r = 0; r < group.size(); ++r) {
      call.outputs.push_back(out.narrow(0, r * rows, rows));
    }
  } else {
    call.op = step.reduce_op.value_or(ReduceOp::kSum);
  }
  if (scatters) {
    call.inputs.clear();
    const std::int64_t rows = out.size(0);
    for (std::int64_t r = 0; r < group.size(); ++r) {
      call.inputs.push_back(term.narrow(0, r * rows, rows));
    }
  }
  call.where = program.value(collective.output).name;
  SP_CHECK(communicator.run(group, std::move(call)));
  return out;
}

}  // namespace

Result<LocalTensor> run_collective(const SpmdProgram& program,
                                   const ProgramCollective& collective,
                                   const LocalTensor& source,
                                   Communicator& communicator, bool widen) {
  ProgramCollective as_run = collective;
  as_run.step.dtype = run_dtype(collective.step.dtype, widen);
  const bool is_inside = collective.step.src.mesh_ndim() == 0;
  return is_inside
             ? combined(program, as_run, source, communicator)
             : redistributed(program, as_run, source, communicator, widen);
}

}  // namespace shardprop::execute
