#include "ops/schema/overload_kind.h"

#include "ops/space/foreach.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shardprop {
namespace {

bool is_same(const ArgumentSchema& a, const ArgumentSchema& b) {
  return a.name == b.name && a.type == b.type && a.is_list == b.is_list;
}

// Finds "view.dtype" for "view_copy.dtype". Its copy has the same arguments.
std::shared_ptr<const FunctionSchema> view_of(const FunctionSchema& copy,
                                              const OpLibrary& library) {
  constexpr std::string_view kSuffix = "_copy";
  std::string_view base = copy.base_name();
  if (copy.is_mutating() || !base.ends_with(kSuffix)) return nullptr;
  base.remove_suffix(kSuffix.size());
  auto view = library.find(std::string(copy.ns()) + '.' + std::string(base) +
                           '.' + std::string(copy.overload()));
  if (view == nullptr || !view->is_view()) return nullptr;
  const auto& arguments = view->arguments();
  return std::equal(arguments.begin(), arguments.end(),
                    copy.arguments().begin(), copy.arguments().end(), is_same)
             ? view
             : nullptr;
}

}  // namespace

std::string_view to_string(OverloadKind kind) {
  switch (kind) {
    case OverloadKind::kPlain:
      return "plain";
    case OverloadKind::kInPlace:
      return "in_place";
    case OverloadKind::kOut:
      return "out";
    case OverloadKind::kForeach:
      return "foreach";
    case OverloadKind::kViewCopy:
      return "view_copy";
  }
  return "";
}

OverloadOrigin origin_of(const FunctionSchema& function,
                         const OpLibrary& library) {
  if (auto foreach = foreach_form(function, library)) {
    return {OverloadKind::kForeach, std::move(foreach->each)};
  }
  if (const auto form = library.form(function)) {
    return {function.is_out() ? OverloadKind::kOut : OverloadKind::kInPlace,
            form->functional};
  }
  if (auto view = view_of(function, library)) {
    return {OverloadKind::kViewCopy, std::move(view)};
  }
  return {};
}

}  // namespace shardprop
