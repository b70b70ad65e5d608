#include <shardprop/graph/node.h>

namespace shardprop {

std::string_view to_string(ValueRole role) {
  switch (role) {
    case ValueRole::kParameter:
      return "parameter";
    case ValueRole::kBuffer:
      return "buffer";
    case ValueRole::kConstant:
      return "constant";
    case ValueRole::kUserInput:
      return "user_input";
    case ValueRole::kUserOutput:
      return "user_output";
    case ValueRole::kLoss:
      return "loss";
    case ValueRole::kGradient:
      return "gradient";
    case ValueRole::kUpdate:
      return "update";
  }
  throw InternalError("a role outside its enum");
}

std::string_view to_string(Phase phase) {
  return phase == Phase::kForward ? "forward" : "backward";
}

std::string to_string(const SourceLocation& source) {
  if (source.empty()) return {};
  return source.file + ':' + std::to_string(source.line);
}

}  // namespace shardprop
