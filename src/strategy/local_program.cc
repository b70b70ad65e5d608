#include <shardprop/strategy/local_program.h>

namespace shardprop {

LocalRef LocalProgram::op(
    std::string name,
    std::vector<std::pair<std::string, LocalOp::Value>> args) {
  steps.emplace_back(LocalOp{std::move(name), std::move(args)});
  return {static_cast<std::int32_t>(steps.size()) - 1, 0};
}

LocalRef LocalProgram::collective(CollectiveKind kind, LocalRef value,
                                  std::optional<ReduceOp> op,
                                  DimIndices mesh_dims, DType dtype,
                                  std::int64_t bytes) {
  steps.emplace_back(
      LocalCollective{kind, value, op, std::move(mesh_dims), dtype, bytes});
  return {static_cast<std::int32_t>(steps.size()) - 1, 0};
}

}  // namespace shardprop
