// Declares, by header, the names that the samples in public headers use.
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/base/option.h>
#include <shardprop/base/result.h>
#include <shardprop/base/strong_id.h>
#include <shardprop/collective/async_tensor.h>
#include <shardprop/collective/functional.h>
#include <shardprop/collective/memory_ops.h>
#include <shardprop/collective/thread_world.h>
#include <shardprop/execute/dlpack.h>
#include <shardprop/execute/executor.h>
#include <shardprop/execute/redistribute_program.h>
#include <shardprop/graph/graph_builder.h>
#include <shardprop/io/emit_program.h>
#include <shardprop/io/load_graph.h>
#include <shardprop/io/load_rank_programs.h>
#include <shardprop/kernels/tensor.h>
#include <shardprop/lower/lower.h>
#include <shardprop/lower/program_prices.h>
#include <shardprop/mesh/kernel_fit.h>
#include <shardprop/mesh/product_cost.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/mpi/mpi_world.h>
#include <shardprop/nccl/cuda_ranks.h>
#include <shardprop/nccl/nccl_world.h>
#include <shardprop/ops/rule_text.h>
#include <shardprop/placement/tensor_spec.h>
#include <shardprop/plan/judge_plan.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/plan/weigh_strategies.h>
#include <shardprop/program/program_time.h>
#include <shardprop/program/rank_program.h>
#include <shardprop/propagate/caching_propagator.h>
#include <shardprop/redistribute/caching_planner.h>
#include <shardprop/redistribute/collective_cost.h>
#include <shardprop/redistribute/fit.h>
#include <shardprop/reference/tensor.h>
#include <shardprop/report/plan_diff.h>
#include <shardprop/request/like_plan.h>
#include <shardprop/request/plan_request.h>
#include <shardprop/request/saved_plan.h>
#include <shardprop/solver/possible_choices.h>
#include <shardprop/solver/solve.h>
#include <shardprop/strategy/layout_table.h>
#include <shardprop/verify/verify.h>
#include <shardprop/verify/verify_rank_programs.h>

#include <array>
#include <memory>
#include <stop_token>
#include <vector>

namespace shardprop::samples {

extern const Graph graph;
extern const DeviceMesh mesh;
extern const Topology topology;
extern const std::shared_ptr<const OpLibrary> library;
extern const Plan plan;
extern Communicator& communicator;
extern const Group group;
extern const CollectiveCall call;
extern const LocalTensor x;
extern PlanOptions options;
void report(const Error& error);

namespace base_strong_id_h {
extern const std::vector<int> nodes;
}
namespace collective_functional_h {
extern Communicator& comm;
}
namespace collective_memory_ops_h {
extern const LocalTensor wide;
extern const LocalTensor out;
}  // namespace collective_memory_ops_h
namespace collective_thread_world_h {
Result<void> train(Communicator& communicator);
}
namespace execute_dlpack_h {
extern dlpack::ManagedTensorVersioned* managed;
extern const RedistributeProgram program;
}  // namespace execute_dlpack_h
namespace execute_redistribute_program_h {
extern const TensorSpec src;
extern const TensorSpec dst;
extern const std::int64_t rank;
extern const LocalTensor held;
}  // namespace execute_redistribute_program_h
namespace io_emit_program_h {
extern const SpmdProgram program;
}
namespace nccl_nccl_world_h {
extern const int local_rank;
}
namespace plan_judge_plan_h {
extern const Plan saved;
}
namespace plan_run_control_h {
extern const Plan yesterday;
extern std::stop_source source;
}  // namespace plan_run_control_h
namespace program_rank_program_h {
extern const SpmdProgram program;
extern const Coordinate at;
}  // namespace program_rank_program_h
namespace propagate_caching_propagator_h {
extern const ShardingPropagator propagator;
extern const OpSchema op;
extern const std::vector<Layout> layouts;
}  // namespace propagate_caching_propagator_h
namespace propagate_sharding_propagator_h {
extern const OpSchema mm;
extern const std::vector<Layout> layouts;
}  // namespace propagate_sharding_propagator_h
namespace redistribute_caching_planner_h {
extern const Topology h100;
extern const Layout src;
extern const Layout dst;
extern const TensorMeta meta;
}  // namespace redistribute_caching_planner_h
namespace redistribute_fit_h {
extern Topology topology;
}
namespace report_plan_diff_h {
extern const Plan fsdp;
extern const Plan best;
}  // namespace report_plan_diff_h
namespace request_like_plan_h {
extern const Graph decode;
}
namespace strategy_layout_table_h {
extern const Layout a;
extern const Layout b;
}  // namespace strategy_layout_table_h

}  // namespace shardprop::samples

namespace shardprop::kernels::kernels_tensor_h {
extern const void* const memory;
}

namespace shardprop::solver::solver_solve_h {
extern const Problem problem;
}
