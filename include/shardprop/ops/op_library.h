// `OpLibrary` is the set of known operators: their declarations, their
// definitions, and how overloads derive from each other. It is immutable and
// shared by pointer; adding an operator makes a new library.
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

// `OpRow` is a named definition: "aten.add" for every functional overload, or
// "aten.sum.dim_IntList" for one of them.
struct OpRow {
  std::string name;
  OpDefinition definition;
  std::string family;
  std::string note;  // for the catalogue
};

class OpLibrary {
 public:
  // `Addition` is a custom operator, or a replacement of a built-in one.
  struct Addition {
    std::string declaration;  // empty if already declared
    std::string tags;
    std::string name;  // name of the row; empty: the declaration's
    std::optional<OpDefinition> definition;
    std::string family = "user";
    std::string note;
  };

  // Returns the library with every aten and prims overload of the PyTorch
  // release torch_release(), and the definitions of src/ops/definitions.
  static std::shared_ptr<const OpLibrary> standard();

  ~OpLibrary();
  OpLibrary(const OpLibrary&) = delete;
  OpLibrary& operator=(const OpLibrary&) = delete;

  // Returns a new library with one more operator. Errors: kSchemaSyntax;
  // kOpRegistered if the declaration's name is taken; kUnknownOperator if a row
  // names an undeclared operator; kProgramSyntax; kProgram if a program calls its
  // own operator.
  Result<std::shared_ptr<const OpLibrary>> with(Addition addition) const;

  // Returns the declaration of "aten.mm.default" (also
  // "torch.ops.aten.mm.default" and "aten::mm"); null if the name is unknown.
  // It is parsed on first use. Several threads may call this at once.
  std::shared_ptr<const FunctionSchema> find(std::string_view name) const;
  // Returns every declared name, sorted.
  std::vector<std::string> names() const;
  // Returns the functional overloads of "aten.sum", `default` first.
  std::vector<std::string> overloads(std::string_view packet) const;
  // Returns a help line with the names nearest to an unknown one.
  std::string suggest(std::string_view unknown) const;

  // Returns the row that applies to an overload, or null. The first of these
  // exists: its own, its operator's, that of the functional overload from which
  // it derives, or that of its `pointwise` tag.
  const OpRow* row(const FunctionSchema& function) const;
  // Returns the row with exactly this name, or null.
  const OpRow* row_named(std::string_view name) const;
  // Returns every row, sorted by name.
  std::vector<const OpRow*> rows() const;

  // Returns the functional overload from which an in-place or out= overload
  // derives.
  std::shared_ptr<const OverloadForm> form(
      const FunctionSchema& function) const;

  // Returns the results of a call: one entry per declared tensor, where each
  // list element counts. An entry is nullopt if the arguments say that the
  // result is not produced. Errors: kNoShapeInference, kShapeMismatch.
  Result<std::vector<std::optional<TensorMeta>>> infer_results(
      const OpSchema& op) const;
  // Returns the results of infer_results() without the absent ones.
  Result<std::vector<TensorMeta>> infer_outputs(const OpSchema& op) const;
  // Returns whether infer_results() supports the operator.
  bool infers(const FunctionSchema& function) const;

  // Checks that the stated outputs of a call are its results. Strides, and
  // dtypes that differ between devices, are accepted as stated. Error:
  // kShapeMismatch.
  Result<void> check_outputs(const OpSchema& op) const;

  // Returns the index space of a call, after checking its arguments and stated
  // outputs. Errors: kNoStrategy, kShapeMismatch.
  Result<IndexSpace> index_space(const OpSchema& op) const;

 private:
  friend class LibraryBuilder;
  struct Body;
  explicit OpLibrary(std::unique_ptr<Body> body);
  Result<void> add(Addition addition);
  std::unique_ptr<Body> body_;
};

// `LibraryBuilder` makes a library with many more operators: with() copies the
// library for each.
//
//   LibraryBuilder builder(*OpLibrary::standard());
//   const bool is_added =
//       builder.add({.declaration = "mylib::one(Tensor x) -> Tensor"}).has_value();
//   std::shared_ptr<const OpLibrary> mine = std::move(builder).build();
class LibraryBuilder {
 public:
  // Copies the library.
  explicit LibraryBuilder(const OpLibrary& library);

  // Adds an operator. Errors: those of OpLibrary::with(); the object must not be used
  // after an error.
  Result<void> add(OpLibrary::Addition addition);
  // Returns the library as it is so far. It changes with the next call.
  const OpLibrary& library() const { return *library_; }
  std::shared_ptr<const OpLibrary> build() && { return std::move(library_); }

 private:
  std::shared_ptr<OpLibrary> library_;
};

// Sets op.outputs and op.output_slots.
void set_results(OpSchema& op, std::vector<std::optional<TensorMeta>> results);

// Returns the PyTorch release of the declarations, such as "2.13.0".
std::string_view torch_release();

// Returns the dtype of an operation on two dtypes: promote_types(kBF16, kF16)
// is kF32.
DType promote_types(DType a, DType b);

}  // namespace shardprop
