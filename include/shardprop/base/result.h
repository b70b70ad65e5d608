// `Result<T>` holds either a value or the `Error` that prevented the value.
//
//   Result<DeviceMesh> mesh = DeviceMesh::parse("dp=2,tp=0");
//   if (!mesh) report(mesh.error());   // error[SP0102]: ...
#pragma once

#include <shardprop/base/error.h>

#include <tl/expected.hpp>

namespace shardprop {

template <class T>
using Result = tl::expected<T, Error>;

// Makes the error of a `Result`: `return fail(ErrorCode::kMeshSize, "...");`
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}
inline tl::unexpected<Error> fail(ErrorCode code, std::string message,
                                  std::string help = {}) {
  return tl::unexpected<Error>(
      Error{code, std::move(message), {}, {}, std::move(help)});
}

}  // namespace shardprop
