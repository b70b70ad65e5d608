#include <shardprop/plan/copy_reason.h>

#include <array>
#include <utility>

namespace shardprop {
namespace {

constexpr std::array<std::pair<CopyUser::Kind, std::string_view>, 6>
    kCopyUsers = {{{CopyUser::Kind::kNode, "node"},
                   {CopyUser::Kind::kGradient, "gradient"},
                   {CopyUser::Kind::kUpdate, "update"},
                   {CopyUser::Kind::kResult, "result"},
                   {CopyUser::Kind::kOptimizer, "optimizer"},
                   {CopyUser::Kind::kNextStep, "next_step"}}};

constexpr std::array<std::pair<CopyCause, std::string_view>, 10> kCopyCauses = {
    {{CopyCause::kCost, "cost"},
     {CopyCause::kShared, "shared"},
     {CopyCause::kSource, "source"},
     {CopyCause::kPin, "pin"},
     {CopyCause::kRecipe, "recipe"},
     {CopyCause::kOnlyLayout, "only_layout"},
     {CopyCause::kView, "view"},
     {CopyCause::kOptimizer, "optimizer"},
     {CopyCause::kUnused, "unused"},
     {CopyCause::kReported, "reported"}}};

}  // namespace

std::string_view to_string(CopyUser::Kind kind) {
  for (const auto& [known, text] : kCopyUsers) {
    if (known == kind) return text;
  }
  return {};
}

std::optional<CopyUser::Kind> parse_copy_user(std::string_view text) {
  for (const auto& [kind, known] : kCopyUsers) {
    if (known == text) return kind;
  }
  return std::nullopt;
}

std::string_view to_string(CopyCause cause) {
  for (const auto& [known, text] : kCopyCauses) {
    if (known == cause) return text;
  }
  return {};
}

std::optional<CopyCause> parse_copy_cause(std::string_view text) {
  for (const auto& [cause, known] : kCopyCauses) {
    if (known == text) return cause;
  }
  return std::nullopt;
}

}  // namespace shardprop
