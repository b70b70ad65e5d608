#include "reference/kernels.h"

#include "ops/schema/declared_table.h"

#include <shardprop/base/error.h>

namespace shardprop::reference {
namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view why) {
  throw InternalError("the kernel of `" + std::string(name) + "` " +
                      std::string(why));
}

}  // namespace

void Kernels::add(Names overloads, const Kernel& kernel) {
  for (const std::string_view name : overloads) {
    const bool is_of_aten = name.find("::") == std::string_view::npos;
    std::string full =
        canonical((is_of_aten ? "aten::" : "") + std::string(name));
    const DeclaredLine* line = find_declared(full);
    if (line == nullptr) refuse(name, "is of no declared overload");
    if (line->declaration.find("!)") != std::string_view::npos) {
      refuse(name,
             "writes an argument: its functional overload has the kernel");
    }
    if (!kernels_.emplace(std::move(full), kernel).second) {
      refuse(name, "is there twice");
    }
  }
}

const Kernel* Kernels::find(const FunctionSchema& function) const {
  const auto found = kernels_.find(function.name());
  return found == kernels_.end() ? nullptr : &found->second;
}

}  // namespace shardprop::reference
