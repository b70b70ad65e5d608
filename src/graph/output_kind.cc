#include <shardprop/graph/output_kind.h>

namespace shardprop {

std::string_view to_string(OutputKind kind) {
  switch (kind) {
    case OutputKind::kUser:
      return "user";
    case OutputKind::kLoss:
      return "loss";
    case OutputKind::kGradient:
      return "gradient";
    case OutputKind::kUpdate:
      return "update";
  }
  return "user";
}

std::optional<OutputKind> parse_output_kind(std::string_view text) {
  for (const OutputKind kind : {OutputKind::kUser, OutputKind::kLoss,
                                OutputKind::kGradient, OutputKind::kUpdate}) {
    if (to_string(kind) == text) return kind;
  }
  return std::nullopt;
}

}  // namespace shardprop
