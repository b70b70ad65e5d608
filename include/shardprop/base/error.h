// Errors as values: what a user's file, mesh, spec or plan can cause.
//
// Contract: the library never prints, logs, aborts or exits. Every function
// that bad input can fail returns Result<T> (shardprop/base/result.h) with one
// Error. A broken invariant of ours throws InternalError instead.
//
// Printed form, as the command line shows it (rustc's manner):
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
  std::vector<std::string> notes;  // what the reader needs to see
  std::string help;                // what to do about it; may be empty

  // The same error, found at `where`: fills an empty location, and puts
  // `where` in front of one that is already more precise.
  Error at(const std::string& where) &&;
  Error with_note(std::string note) &&;
  Error with_help(std::string text) &&;

  friend bool operator==(const Error&, const Error&) = default;
};

// The printed form above, without colour, ending in a newline.
std::string to_string(const Error& error);

// A bug of ours: an invariant that no input may break was broken.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace shardprop
