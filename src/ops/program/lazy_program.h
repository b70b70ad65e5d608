// `LazyProgram` is the text of a program, which is parsed when it is first used.
// A process uses few of the programs of the library, so that parsing all of them
// would cost more than the import of a small graph.
//
//   const LazyProgram program("return exp(self)");
//   program.parsed()->results.size();   // 1
#pragma once

#include <shardprop/base/result.h>

#include "ops/program/program_text.h"

#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace shardprop {

class LazyProgram {
 public:
  explicit LazyProgram(std::string text) : text_(std::move(text)) {}

  // Several threads may call this at once. Error: kProgramSyntax.
  const Result<ProgramText>& parsed() const {
    std::call_once(once_, [this] { parsed_ = parse_program(text_); });
    return *parsed_;
  }

 private:
  std::string text_;
  mutable std::once_flag once_;
  mutable std::optional<Result<ProgramText>> parsed_;
};

}  // namespace shardprop
