// Every function of the C API uses these functions. They convert handles and
// values in both directions, and no exception leaves them.
//
//   shardprop_error* shardprop_mesh_parse(const char* text,
//                                         shardprop_mesh** mesh) {
//     return barrier([&]() -> Result<void> {
//       SP_CHECK(clear(mesh, "mesh"));
//       SP_ASSIGN(const char* given, text_of(text, "text"));
//       SP_ASSIGN(DeviceMesh made, DeviceMesh::parse(given));
//       return give(mesh, std::move(made));
//     });
//   }
#pragma once

#include "base/try.h"
#include "c/handles.h"

#include <shardprop.h>
#include <shardprop/base/result.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace shardprop::c {

// Null where memory is short is not an error: there is one kept for that.
shardprop_error* error_of(const Error& error) noexcept;
// The one that an exception stands for.
shardprop_error* error_of(const std::exception_ptr& thrown) noexcept;

template <class Work>
shardprop_error* barrier(const Work& work) noexcept {
  try {
    if (Result<void> done = work(); !done) return error_of(done.error());
    return nullptr;
  } catch (...) {
    return error_of(std::current_exception());
  }
}

tl::unexpected<Error> bad_handle(std::string_view what);

// The object behind a handle. Error: kInvalidArgument.
template <class Handle>
Result<typename HandleOf<Handle>::Object*> get(const Handle* handle) {
  using Traits = HandleOf<Handle>;
  void* found = HandleTable::instance().find(Traits::kType, handle);
  if (found == nullptr) return bad_handle(Traits::kName);
  return static_cast<typename Traits::Object*>(found);
}

// The same for functions that return no error.
template <class Handle>
typename HandleOf<Handle>::Object* peek(const Handle* handle) noexcept {
  using Traits = HandleOf<Handle>;
  return static_cast<typename Traits::Object*>(
      HandleTable::instance().find(Traits::kType, handle));
}

// An output, before it is known whether there is one.
template <class T>
Result<void> clear(T** out, std::string_view name) {
  if (out == nullptr) {
    return fail(ErrorCode::kInvalidArgument,
                "`" + std::string(name) + "` is null",
                "pass the address of a variable");
  }
  *out = nullptr;
  return {};
}

template <class Handle>
Result<void> give(Handle** out, typename HandleOf<Handle>::Object object) {
  using Traits = HandleOf<Handle>;
  *out = static_cast<Handle*>(HandleTable::instance().add(
      Traits::kType,
      std::make_shared<typename Traits::Object>(std::move(object))));
  return {};
}

template <class Handle>
void release(Handle* handle) noexcept {
  // The object is freed here, outside of the table's lock.
  const std::shared_ptr<void> object =
      HandleTable::instance().remove(HandleOf<Handle>::kType, handle);
}

// Error: kInvalidArgument if `text` is null.
Result<const char*> text_of(const char* text, std::string_view name);
// Returns `i` if it is below `count`. Error: kInvalidArgument.
Result<std::size_t> index_of(std::int64_t i, std::size_t count,
                             std::string_view what);
// A list of `count` elements. Error: kInvalidArgument.
Result<std::size_t> count_of(const void* list, std::int64_t count,
                             std::string_view name);
// A copy for the caller to free.
Result<void> give_text(char** out, const std::string& text);

}  // namespace shardprop::c
