// OpLine is a line of `shardprop propagate --batch`: one operator as JSON.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/placement/tensor_spec.h>
#include <shardprop/strategy/factor_sharding.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop::cli {

struct OpLine {
  DeviceMesh mesh;
  std::shared_ptr<const OpSchema> op;  // outputs filled in
  std::vector<Layout> layouts;  // one per operand; empty when none was given
  std::vector<FactorSharding> shardings;  // listed besides mesh order
};

// {"op", "mesh", "args", "kwargs"}; "outputs" may state the results' shapes and
// dtypes. They must equal the inferred ones, if the library can infer them.
// "factor_shardings" is a list of shardings: [["S(0)@1", "S(0)@0"]].
// `name` becomes the operator's name as soon as it is read. Errors: kBatchLine
// and the errors of the content, at the path of the fault: $.args[0].shape.
Result<OpLine> parse_op_line(std::string_view line, const OpLibrary& library,
                             std::optional<std::string>& name);

}  // namespace shardprop::cli
