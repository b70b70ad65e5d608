#include "ops/schema/operand_name.h"

#include <cstdint>
#include <vector>

namespace shardprop {

std::string operand_name(const OpSchema& op, std::size_t operand) {
  const auto is = [&](const TensorArg& tensor) {
    return tensor.operand == static_cast<std::int32_t>(operand);
  };
  for (std::size_t a = 0; a < op.args.size(); ++a) {
    const std::string& name = op.function->arguments()[a].name;
    if (const auto* one = std::get_if<TensorArg>(&op.args[a])) {
      if (is(*one)) return name;
    }
    if (const auto* list = std::get_if<std::vector<TensorArg>>(&op.args[a])) {
      for (std::size_t k = 0; k < list->size(); ++k) {
        if (is((*list)[k])) return name + "[" + std::to_string(k) + "]";
      }
    }
  }
  return {};
}

}  // namespace shardprop
