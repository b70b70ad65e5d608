// A foreach overload applies a plain overload to every element of lists. It has
// no operator definition; everything follows from that of the plain overload.
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
  // `arguments` holds, for each argument of the foreach overload, the index of
  // the argument of `each`.
  std::vector<std::size_t> arguments;
  // `numbers` is the argument of the foreach overload that has the numbers of all
  // elements in one tensor. Their values are known only at run time, so the call
  // of an element omits its number.
  std::optional<std::size_t> numbers;
};

// Returns nullopt if `function` is not a foreach overload, or no plain overload
// fits it.
std::optional<ForeachForm> foreach_form(const FunctionSchema& function,
                                        const OpLibrary& library);

// `ElementCall` is the call of the plain overload on one element of the lists.
struct ElementCall {
  OpSchema op;                        // of `each`, with its results
  std::vector<std::size_t> operands;  // indices among operands of the lists
};

// Returns one call per element of the lists. Errors: kShapeMismatch, if the
// lists are empty or differ in length; those of make_op_schema() and of
// OpLibrary::infer_results().
Result<std::vector<ElementCall>> element_calls(const ForeachForm& form,
                                               const OpSchema& op,
                                               const OpLibrary& library);

// Returns one result of each element's call. Errors: those of
// OpLibrary::infer_results().
Result<std::vector<std::optional<TensorMeta>>> foreach_results(
    const ForeachForm& form, const OpSchema& op, const OpLibrary& library);

// Returns the index spaces of the elements' calls combined into one. Elements
// whose calls have the same index space share its factors, so they are sharded
// in the same way. Errors: those of OpLibrary::index_space().
Result<IndexSpace> foreach_space(const ForeachForm& form, const OpSchema& op,
                                 const OpLibrary& library);

}  // namespace shardprop
