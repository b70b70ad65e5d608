// OpRegistry: declarations of operators by name. Starts with every aten and
// prims overload of the PyTorch release named in torch_release(), from the
// generated table src/ops/aten_schemas.txt; users add their own.
//
//   const OpRegistry registry;
//   registry.find("aten.mm.default")->arguments().size();   // 2
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/function_schema.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

class OpRegistry {
 public:
  OpRegistry();
  ~OpRegistry();
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  // The declaration of "aten.mm.default" ("torch.ops.aten.mm.default" and
  // "aten::mm" too); null when there is none. Parsed on first use; safe to
  // call from several threads.
  std::shared_ptr<const FunctionSchema> find(std::string_view name) const;

  // Error: kSchemaSyntax; kOpRegistered when the name is taken.
  Result<std::shared_ptr<const FunctionSchema>> add(
      std::string_view declaration, std::string_view tags = {});

  // Every name there is, sorted.
  std::vector<std::string> names() const;
  // Names nearest to an unknown one, as a help line.
  std::string suggest(std::string_view unknown) const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

// "2.13.0".
std::string_view torch_release();

}  // namespace shardprop
