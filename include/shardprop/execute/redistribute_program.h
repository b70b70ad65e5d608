// `RedistributeProgram` is the part of one rank in a redistribution.
//
// A plan lists the collectives. The program of a rank lists which elements the
// rank sends to which peer, so that running it needs only views and
// collectives. Make it once per (plan, rank) and run it as often as needed. It
// is immutable, and copies share one body. Several threads may run it at once,
// each on its own communicator.
//
//   f32[4,6] on tp=2:  S(0) -> S(1), one all_to_all
//   rank 0 sends rows 0..1 of columns 0..2 to itself and of 3..5 to rank 1,
//   and receives columns 0..2: rows 0..1 from itself and 2..3 from rank 1
//
//   auto plan = plan_redistribution(src, dst, topology).value();
//   auto program = RedistributeProgram::create(plan, src, dst, rank).value();
//   LocalTensor out = run(program, communicator, held).value();   // executor.h
//
// Plan for the engine that runs the program (Topology::engine): the engine
// decides which reductions need staging, and staging needs memory.
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
  // Makes the program of `rank`, which is the rank in both the mesh and the
  // communicator. Errors: kMeshCoordinate (a rank outside the mesh), kPlanStep
  // (a plan that does not lead from src to dst, or whose steps do not connect),
  // kReduction.
  static Result<RedistributeProgram> create(const RedistributePlan& plan,
                                            const TensorSpec& src,
                                            const TensorSpec& dst,
                                            std::int64_t rank);
  // Makes a program between meshes, for a rank of either mesh. Errors: as
  // above.
  static Result<RedistributeProgram> create(const CrossMeshPlan& plan,
                                            const TensorSpec& src,
                                            const TensorSpec& dst,
                                            std::int64_t rank);

  std::int64_t rank() const;
  DType dtype() const;
  // These return whether this rank has a shard of the source and of the result;
  // on one mesh both are true.
  bool has_source() const;
  bool has_result() const;
  // These return the sizes of the rank's source and result. Preconditions:
  // has_source(), has_result().
  const Dims& source_shape() const;
  const Dims& result_shape() const;
  // Returns the number of steps, including those in which only other ranks take
  // part.
  std::size_t step_count() const;
  // Returns the number of tensors in its largest call. A rank that gathers from
  // every rank of a group has a view for each.
  std::size_t widest_call() const;

  struct Body;
  const Body& body() const { return *body_; }

 private:
  explicit RedistributeProgram(std::shared_ptr<const Body> body);
  std::shared_ptr<const Body> body_;
};

}  // namespace shardprop
