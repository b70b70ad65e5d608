// guarded() returns an Error if the system refuses memory or a thread.
//
//   Result<Plan> plan = guarded([&] { return work_out(graph); });
//   // plan.error().code == ErrorCode::kOutOfMemory
//
// Other exceptions propagate: an InternalError is a bug of this library and
// remains an exception.
#pragma once

#include <shardprop/base/result.h>

#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>

namespace shardprop {

// Returns the Error for an exception of the standard library about missing
// memory or a thread that cannot be started. Returns nullopt for any other
// exception.
std::optional<Error> refusal(const std::exception_ptr& thrown);

template <class F>
auto guarded(const F& work) -> decltype(work()) {
  std::exception_ptr thrown;
  try {
    return work();
  } catch (...) {
    thrown = std::current_exception();
  }
  if (auto error = refusal(thrown)) return fail(*std::move(error));
  std::rethrow_exception(thrown);
}

}  // namespace shardprop
