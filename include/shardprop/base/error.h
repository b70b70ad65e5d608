// `Error` is the value that a function returns if a user's file, mesh, spec or
// plan is invalid.
//
// Contract: the library never prints, logs, aborts or exits. Every function
// that can fail on bad input returns `Result<T>` (shardprop/base/result.h) with
// one `Error`. The library throws `InternalError` if one of its own invariants
// is broken.
//
// The command line prints an error in the manner of rustc:
//
//   error[SP0301]: tensor dim 3 is out of range for a tensor of rank 2
//     --> --pin 'w=S(3)'
//      |  w: bf16[16,8]
//      = help: name a dim between 0 and 1
#pragma once

#include <shardprop/base/error_code.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace shardprop {

struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message;   // one sentence, no full stop
  std::string location;  // file, JSON path, flag or node; may be empty
  std::vector<std::string> notes;  // facts that help to find the cause
  std::string help;                // advice on how to fix it; may be empty

  // Adds `where` to the location: fills an empty location, and otherwise puts
  // `where: ` before it.
  Error at(const std::string& where) &&;
  Error with_note(std::string note) &&;
  Error with_help(std::string text) &&;

  friend bool operator==(const Error&, const Error&) = default;
};

// Returns the printed form above, without colour, ending in a newline.
std::string to_string(const Error& error);

// `InternalError` reports a bug of this library: an invariant that no input may
// break is broken.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace shardprop
