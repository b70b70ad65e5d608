// RedistributeProgram: what one rank does to carry out a redistribution.
//
// A plan says which collectives run; the program of a rank says which of its
// elements go to whom in each, so that running it is nothing but views and
// collectives. Make it once for a (plan, rank) and run it as often as the
// redistribution is needed: it is immutable, copies share one body, and it may
// be run by several threads at once, each on a communicator of its own.
//
//   f32[4,6] on tp=2:  S(0) -> S(1), one all_to_all
//   rank 0 sends rows 0..1 of columns 0..2 to itself and of 3..5 to rank 1,
//   and receives columns 0..2: rows 0..1 from itself and 2..3 from rank 1
//
//   auto plan = plan_redistribution(src, dst, topology).value();
//   auto program = RedistributeProgram::create(plan, src, dst, rank).value();
//   LocalTensor out = run(program, communicator, held).value();   // executor.h
//
// Plan for the engine that runs it (Topology::engine): it decides which
// reductions need staging, and thereby memory.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/placement/tensor_spec.h>
#include <shardprop/redistribute/cross_mesh.h>
#include <shardprop/redistribute/redistribute_plan.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace shardprop {

class RedistributeProgram {
 public:
  // `rank` is the rank of mesh and communicator alike. Errors: kMeshCoordinate
  // (a rank outside the mesh), kPlanStep (a plan that does not lead from src to
  // dst, or whose steps do not hang together), kReduction.
  static Result<RedistributeProgram> create(const RedistributePlan& plan,
                                            const TensorSpec& src,
                                            const TensorSpec& dst,
                                            std::int64_t rank);
  // Between meshes: for every rank of either mesh. Errors: as above.
  static Result<RedistributeProgram> create(const CrossMeshPlan& plan,
                                            const TensorSpec& src,
                                            const TensorSpec& dst,
                                            std::int64_t rank);

  std::int64_t rank() const;
  DType dtype() const;
  // Whether this rank brings a shard and gets one; always so on one mesh.
  bool has_source() const;
  bool has_result() const;
  // Sizes of what it brings and gets; preconditions: has_source(),
  // has_result().
  const Dims& source_shape() const;
  const Dims& result_shape() const;
  // Steps in all, those that only other ranks take part in included.
  std::size_t step_count() const;
  // Tensors that the widest of its calls lists: who gathers from every rank of
  // a group holds a view for each.
  std::size_t widest_call() const;

  struct Body;
  const Body& body() const { return *body_; }

 private:
  explicit RedistributeProgram(std::shared_ptr<const Body> body);
  std::shared_ptr<const Body> body_;
};

}  // namespace shardprop
