#include <shardprop/execute/redistribute_program.h>

#include "base/guard.h"
#include "base/try.h"
#include "execute/compile.h"
#include "execute/program_body.h"
#include "redistribute/same_tensor.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <string>
#include <utility>

namespace shardprop {
namespace {

using execute::MoveStep;
using execute::RankView;

std::string where_of(std::size_t step, std::size_t steps,
                     const TensorMeta& meta, const Layout& src,
                     const Layout& dst) {
  return "step " + std::to_string(step + 1) + " of " + std::to_string(steps) +
         ", " + to_string(meta) + " " + to_string(src) + " -> " +
         to_string(dst);
}

// Appends the steps of a plan on one mesh, if the rank is on that mesh.
Result<void> append_steps(const RedistributePlan& plan, const TensorSpec& src,
                          const Layout& target,
                          const std::optional<Coordinate>& at,
                          std::size_t steps, std::vector<MoveStep>& out) {
  const Layout* before = &src.layout();
  for (const RedistributeStep& step : plan.steps) {
    if (step.src != *before) {
      return fail(ErrorCode::kPlanStep,
                  "step " + std::to_string(out.size() + 1) + " starts at `" +
                      to_string(step.src) + "`, not at `" + to_string(*before) +
                      "`",
                  "run plans as the planner made them");
    }
    before = &step.dst;
    std::string where =
        where_of(out.size(), steps, src.meta(), step.src, step.dst);
    if (at) {
      SP_ASSIGN(MoveStep made,
                execute::compile(step, RankView{src.mesh(), src.meta(), *at},
                                 std::move(where)));
      out.push_back(std::move(made));
    } else {
      MoveStep others;
      others.kind = step.kind;
      others.takes_part = false;
      others.where = std::move(where);
      out.push_back(std::move(others));
    }
  }
  if (*before != target) {
    return fail(ErrorCode::kPlanStep,
                "a plan to `" + to_string(*before) + "` does not lead to `" +
                    to_string(target) + "`",
                "make a plan for this pair");
  }
  return {};
}

auto outside(std::int64_t rank, const std::string& meshes) {
  return fail(ErrorCode::kMeshCoordinate,
              "rank " + std::to_string(rank) + " is not on " + meshes,
              "make programs for the ranks that take part");
}

std::optional<Dims> shape_on(const TensorSpec& spec, std::int64_t rank) {
  const auto at = spec.mesh().coordinate_of(rank);
  if (!at) return std::nullopt;
  return local_shape(spec.layout(), spec.mesh(), spec.meta().shape(), *at);
}

using BodyResult = Result<std::shared_ptr<const RedistributeProgram::Body>>;

BodyResult body_of(const RedistributePlan& plan, const TensorSpec& src,
                   const TensorSpec& dst, std::int64_t rank) {
  SP_CHECK(redistribute::check_same_tensor(src, dst));
  if (src.mesh() != dst.mesh()) {
    return fail(ErrorCode::kRedistributeMeshes,
                "source and target are on different meshes",
                "plan it with plan_between_meshes()");
  }
  const auto at = src.mesh().coordinate_of(rank);
  if (!at) return outside(rank, "mesh " + to_string(src.mesh()));
  auto body = std::make_shared<RedistributeProgram::Body>();
  body->rank = rank;
  body->dtype = src.meta().dtype();
  body->source_shape = shape_on(src, rank);
  body->result_shape = shape_on(dst, rank);
  SP_CHECK(append_steps(plan, src, dst.layout(), at, plan.steps.size(),
                        body->steps));
  return body;
}

BodyResult body_of(const CrossMeshPlan& plan, const TensorSpec& src,
                   const TensorSpec& dst, std::int64_t rank) {
  SP_CHECK(redistribute::check_same_tensor(src, dst));
  auto body = std::make_shared<RedistributeProgram::Body>();
  body->rank = rank;
  body->dtype = src.meta().dtype();
  body->source_shape = shape_on(src, rank);
  body->result_shape = shape_on(dst, rank);
  if (!body->source_shape && !body->result_shape) {
    return outside(rank, "meshes " + to_string(src.mesh()) + " and " +
                             to_string(dst.mesh()));
  }
  const std::size_t steps = plan.before.steps.size() + 1;
  SP_CHECK(append_steps(plan.before, src, plan.sent_layout,
                        src.mesh().coordinate_of(rank), steps, body->steps));
  SP_ASSIGN(MoveStep sends,
            execute::compile_sends(plan, src, dst, rank,
                                   where_of(steps - 1, steps, src.meta(),
                                            plan.sent_layout, dst.layout())));
  body->steps.push_back(std::move(sends));
  return body;
}

}  // namespace

RedistributeProgram::RedistributeProgram(std::shared_ptr<const Body> body)
    : body_(std::move(body)) {}

Result<RedistributeProgram> RedistributeProgram::create(
    const RedistributePlan& plan, const TensorSpec& src, const TensorSpec& dst,
    std::int64_t rank) {
  return guarded([&]() -> Result<RedistributeProgram> {
    SP_ASSIGN(auto body, body_of(plan, src, dst, rank));
    return RedistributeProgram(std::move(body));
  });
}

Result<RedistributeProgram> RedistributeProgram::create(
    const CrossMeshPlan& plan, const TensorSpec& src, const TensorSpec& dst,
    std::int64_t rank) {
  return guarded([&]() -> Result<RedistributeProgram> {
    SP_ASSIGN(auto body, body_of(plan, src, dst, rank));
    return RedistributeProgram(std::move(body));
  });
}

std::int64_t RedistributeProgram::rank() const { return body_->rank; }
DType RedistributeProgram::dtype() const { return body_->dtype; }
bool RedistributeProgram::has_source() const {
  return body_->source_shape.has_value();
}
bool RedistributeProgram::has_result() const {
  return body_->result_shape.has_value();
}
const Dims& RedistributeProgram::source_shape() const {
  return *body_->source_shape;
}
const Dims& RedistributeProgram::result_shape() const {
  return *body_->result_shape;
}
std::size_t RedistributeProgram::step_count() const {
  return body_->steps.size();
}
std::size_t RedistributeProgram::widest_call() const {
  std::size_t widest = 0;
  for (const MoveStep& step : body_->steps) {
    widest = std::max({widest, step.sends.size(), step.receives.size(),
                       step.parts.size(), step.chunks.size()});
  }
  return widest;
}

}  // namespace shardprop
