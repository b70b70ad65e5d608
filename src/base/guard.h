// guarded(): what the machine refuses, memory or a thread, as an Error.
//
//   Result<Plan> plan = guarded([&] { return work_out(graph); });
//   // plan.error().code == ErrorCode::kOutOfMemory
//
// Other exceptions pass: an InternalError is a bug of ours and stays one.
#pragma once

#include <shardprop/base/result.h>

#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>

namespace shardprop {

// The Error that an exception of the standard library stands for: memory that
// is not to be had, a thread that cannot be started. None for any other.
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
