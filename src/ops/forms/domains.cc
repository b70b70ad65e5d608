#include "ops/forms/domains.h"

#include "base/index.h"

#include <shardprop/ops/argument.h>

#include <variant>
#include <vector>

namespace shardprop {
namespace {

const TensorMeta& tensor(const OpSchema& op, std::string_view argument) {
  return op.inputs[op.tensor_arg(argument).value_or(0)];
}

}  // namespace

std::int64_t size_along_dim(const OpSchema& op, std::size_t) {
  const TensorMeta& self = tensor(op, "self");
  std::int64_t dim = op.has_arg("dim") ? op.int_arg("dim").value_or(0) : 0;
  if (dim < 0) dim += self.rank();
  if (dim < 0 || dim >= self.rank()) return 1;
  return self.size(static_cast<int>(dim));
}

std::int64_t size_of_indexed_dim(const OpSchema& op, std::size_t operand) {
  const auto* list = std::get_if<std::vector<TensorArg>>(&op.arg("indices"));
  const TensorMeta& self = tensor(op, "self");
  for (std::size_t d = 0; list != nullptr && d < list->size(); ++d) {
    if ((*list)[d].operand == static_cast<std::int32_t>(operand)) {
      return self.size(static_cast<int>(d));
    }
  }
  return 0;
}

std::int64_t size_of_self(const OpSchema& op, std::size_t) {
  return tensor(op, "self").numel();
}

std::int64_t rows_of_weight(const OpSchema& op, std::size_t) {
  return tensor(op, "weight").size(0);
}

std::int64_t classes_of_self(const OpSchema& op, std::size_t) {
  const TensorMeta& self = tensor(op, "self");
  return self.rank() == 0 ? 1 : self.size(self.rank() == 1 ? 0 : 1);
}

}  // namespace shardprop
