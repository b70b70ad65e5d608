// Converts the codes of MPI calls to results.
#pragma once

#include <shardprop/base/result.h>

// Excludes the obsolete C++ bindings that some MPIs include in their C header.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <string>
#include <string_view>

namespace shardprop::mpi {

// Error: kEngine, with MPI's text for the code.
inline Result<void> checked(int code, std::string_view call) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return fail(ErrorCode::kEngine,
              std::string(call) + ": " +
                  std::string(text, static_cast<std::size_t>(length)));
}

}  // namespace shardprop::mpi
