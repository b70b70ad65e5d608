// Foreach overloads: what a plain overload does to one tensor, done to every
// element of lists. They have no rows; all follows from the plain overload's.
//
//   _foreach_add.List([a, b], [c, d], alpha=2)
//     add.Tensor(a, c, alpha=2), add.Tensor(b, d, alpha=2)
#pragma once

#include <shardprop/ops/op_library.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace shardprop {

struct ForeachForm {
  std::shared_ptr<const FunctionSchema> each;
  // For each argument of the foreach overload: that of `each`.
  std::vector<std::size_t> arguments;
};

// nullopt where `function` is no foreach overload, or no plain one fits it.
std::optional<ForeachForm> foreach_form(const FunctionSchema& function,
                                        const OpLibrary& library);

// What is done to one element.
struct ElementCall {
  OpSchema op;                        // of `each`, with its results
  std::vector<std::size_t> operands;  // its operands among those of the lists
};

// As many as every list has elements. Errors: kShapeMismatch, where the lists
// are empty or differ in length; those of make_op_schema() and of
// OpLibrary::infer_results().
Result<std::vector<ElementCall>> element_calls(const ForeachForm& form,
                                               const OpSchema& op,
                                               const OpLibrary& library);

// A result of each element's call. Errors: those of OpLibrary::infer_results().
Result<std::vector<std::optional<TensorMeta>>> foreach_results(
    const ForeachForm& form, const OpSchema& op, const OpLibrary& library);

// The index spaces of the elements' calls side by side. Elements whose calls
// have the same index space share its factors: they are sharded alike.
// Errors: those of OpLibrary::index_space().
Result<IndexSpace> foreach_space(const ForeachForm& form, const OpSchema& op,
                                 const OpLibrary& library);

}  // namespace shardprop
