#include <shardprop/program/rank_program.h>

#include <shardprop/placement/local_region.h>

#include <type_traits>
#include <utility>

namespace shardprop {
namespace {

class Evaluation {
 public:
  Evaluation(const SpmdProgram& program, const Coordinate& at)
      : program_(program), at_(at) {}

  RankOp run(const ProgramOp& op) {
    out_.name = op.op;
    for (const auto& [name, value] : op.args) {
      out_.args.push_back(
          {name, std::visit([&](const auto& held) { return argument(held); },
                            value)});
    }
    return std::move(out_);
  }

 private:
  TensorArg tensor(ProgramValueId id) {
    if (!id.valid()) return {};
    out_.tensors.push_back(id);
    return {static_cast<std::int32_t>(out_.tensors.size() - 1)};
  }

  static Argument argument(const Argument& same) { return same; }
  Argument argument(ProgramValueId id) {
    if (!id.valid()) return NoneArg{};
    return tensor(id);
  }
  Argument argument(const std::vector<ProgramValueId>& ids) {
    std::vector<TensorArg> list;
    for (const ProgramValueId id : ids) list.push_back(tensor(id));
    return list;
  }
  Argument argument(const RankInt& value) const {
    return value.at(program_.mesh, at_);
  }
  Argument argument(const std::vector<RankInt>& values) const {
    std::vector<std::int64_t> list;
    for (const RankInt& value : values) {
      list.push_back(value.at(program_.mesh, at_));
    }
    return list;
  }

  const SpmdProgram& program_;
  const Coordinate& at_;
  RankOp out_;
};

}  // namespace

RankOp rank_op(const SpmdProgram& program, const ProgramOp& op,
               const Coordinate& at) {
  return Evaluation(program, at).run(op);
}

Dims local_shape(const SpmdProgram& program, ProgramValueId id,
                 const Coordinate& at) {
  const ProgramValue& value = program.value(id);
  return local_shape(value.layout, program.mesh, value.meta.shape(), at);
}

RedistributePlan plan_of(const ProgramCollective& collective) {
  const RedistributeStep& step = collective.step;
  return {{step}, step.nanoseconds, step.bytes_per_rank, step.peak_bytes};
}

}  // namespace shardprop
