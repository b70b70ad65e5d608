#include <shardprop/graph/node.h>

namespace shardprop {

std::string_view to_string(Phase phase) {
  return phase == Phase::kForward ? "forward" : "backward";
}

std::string to_string(const SourceLocation& source) {
  if (source.empty()) return {};
  return source.file + ':' + std::to_string(source.line);
}

}  // namespace shardprop
