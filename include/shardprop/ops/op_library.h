// OpLibrary: the operators that are known: their declarations, their rows, and
// how their overloads derive from each other. Immutable, shared by pointer;
// adding operators makes a new library.
//
//   const auto library = OpLibrary::standard();
//   library->find("aten.mm.default")->arguments().size();   // 2
//   auto mine = library->with({.declaration = "mylib::swiglu(Tensor x, "
//                              "Tensor gate) -> Tensor",
//                              .definition = pointwise().promoted()});
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/function_schema.h>
#include <shardprop/ops/index_space.h>
#include <shardprop/ops/op_definition.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/ops/overload_form.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// A row: "aten.add" for every functional overload, "aten.sum.dim_IntList" for
// one of them.
struct OpRow {
  std::string name;
  OpDefinition definition;
  std::string family;
  std::string note;  // for the catalogue
};

class OpLibrary {
 public:
  // An operator of the user's own, or one of ours replaced.
  struct Addition {
    std::string declaration;  // empty: declared already
    std::string tags;
    std::string name;  // of the row; empty: that of the declaration
    std::optional<OpDefinition> definition;
    std::string family = "user";
    std::string note;
  };

  // Every aten and prims overload of the PyTorch release torch_release(), with
  // the rows of src/ops/definitions.
  static std::shared_ptr<const OpLibrary> standard();

  ~OpLibrary();
  OpLibrary(const OpLibrary&) = delete;
  OpLibrary& operator=(const OpLibrary&) = delete;

  // This library and one operator more.
  // Errors: kSchemaSyntax; kOpRegistered where the declaration's name is taken;
  // kUnknownOperator where a row names nothing that is declared.
  Result<std::shared_ptr<const OpLibrary>> with(Addition addition) const;

  // The declaration of "aten.mm.default" ("torch.ops.aten.mm.default" and
  // "aten::mm" too); null when there is none. Parsed on first use; safe to
  // call from several threads.
  std::shared_ptr<const FunctionSchema> find(std::string_view name) const;
  // Every declared name, sorted.
  std::vector<std::string> names() const;
  // The functional overloads of "aten.sum", `default` first.
  std::vector<std::string> overloads(std::string_view packet) const;
  // Names nearest to an unknown one, as a help line.
  std::string suggest(std::string_view unknown) const;

  // The row that serves an overload: its own, its operator's, that of the
  // functional overload it derives from, or the one of its `pointwise` tag.
  // Null when there is none.
  const OpRow* row(const FunctionSchema& function) const;
  // Every row, by name.
  std::vector<const OpRow*> rows() const;

  // The functional overload that an in-place or out= one derives from.
  std::shared_ptr<const OverloadForm> form(
      const FunctionSchema& function) const;

  // What a call returns: one entry per tensor that the operator declares, list
  // elements each; nullopt where its arguments say that it is not produced.
  // Errors: kNoShapeInference, kShapeMismatch.
  Result<std::vector<std::optional<TensorMeta>>> infer_results(
      const OpSchema& op) const;
  // The same without the absent ones.
  Result<std::vector<TensorMeta>> infer_outputs(const OpSchema& op) const;
  // Whether infer_results() knows the operator.
  bool infers(const FunctionSchema& function) const;

  // Whether the outputs stated for a call are those that it returns; strides,
  // and dtypes that differ between devices, are taken as stated.
  // Error: kShapeMismatch.
  Result<void> check_outputs(const OpSchema& op) const;

  // The index space of a call, whose arguments and stated outputs are checked
  // first. Errors: kNoStrategy, kShapeMismatch.
  Result<IndexSpace> index_space(const OpSchema& op) const;

 private:
  struct Body;
  explicit OpLibrary(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

// Sets op.outputs and op.output_slots.
void set_results(OpSchema& op, std::vector<std::optional<TensorMeta>> results);

// "2.13.0".
std::string_view torch_release();

// The dtype of an operation on two dtypes: promote(bf16, f16) is f32.
DType promote_types(DType a, DType b);

}  // namespace shardprop
