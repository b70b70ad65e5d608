#include "base/guard.h"

namespace shardprop {

std::optional<Error> refusal(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory,
                 "no memory is left",
                 {},
                 {},
                 "free memory, raise its limit, or ask for less"};
  } catch (const std::length_error&) {
    // A container was asked for more elements than any memory holds.
    return Error{ErrorCode::kOutOfMemory,
                 "more memory is needed than can be addressed",
                 {},
                 {},
                 "ask for less"};
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) {
      return std::nullopt;
    }
    return Error{ErrorCode::kThreadStart,
                 "a thread cannot be started",
                 {},
                 {error.what()},
                 "use fewer threads, or raise the limit on them"};
  } catch (...) {
    return std::nullopt;
  }
}

}  // namespace shardprop
