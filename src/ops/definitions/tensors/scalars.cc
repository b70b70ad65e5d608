// This file defines operators that return a number instead of a tensor. Ranks
// with parts of a tensor would each return another number.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"

namespace shardprop {
namespace {

void one_element(const OpCall& call) {
  require(call.first().numel() == 1,
          "the tensor does not have exactly one element");
}

void of_one_dtype(const OpCall& call) {
  require(call.tensor("self").dtype() == call.tensor("other").dtype(),
          "the tensors differ in dtype");
}

void comparable(const OpCall& call) {
  (void)broadcast(call.tensor("self").shape(), call.tensor("other").shape());
  for (const char* tolerance : {"rtol", "atol"}) {
    require(call.op().float_arg(tolerance).value_or(0) >= 0,
            "a negative tolerance");
  }
  of_one_dtype(call);
}

// Operands of one size that are sharded in the same way have one size on every
// rank.
bool differ_in_size(const OpCall& call) {
  return call.tensor("self").shape() != call.tensor("other").shape();
}

}  // namespace

void words_of_scalars(RuleWords& words) {
  words.form(number("item()", one_element));
  words.form(number("equal()", of_one_dtype));
  words.form(number("close()", comparable));
  words.form(number("same_size()", {}, differ_in_size));
}

void define_scalars(Family f) {
  constexpr std::string_view kNumber =
      "replicated: a number comes back, and ranks would have one each";
  f.add("_local_scalar_dense", form("item()"), kNumber);
  f.add("equal", form("equal()"), kNumber);
  f.add("allclose", form("close()"), kNumber);
  f.add("is_same_size", form("same_size()"));
}

}  // namespace shardprop
