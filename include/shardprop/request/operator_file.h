// An operator file states operators of other libraries: the declaration of each, and
// how it may be sharded (docs/row_language.md). It is given as a rule, `@FILE`.
//
//   # Operators of torchvision.
//   torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
//     = {nf},{n}->{k:?}.typed(i64)
//
// An operator begins at the start of a line; its further lines are indented. Lines
// that begin with `#` are comments. A graph need not have all operators of a file.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/request/graph_reading.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// Returns a rule for each operator of a file, in one line: "DECLARATION=RULE". The
// place of each is "FILE:LINE". Errors, at the line and column of the file:
// kInvalidArgument, kProgramSyntax, kSchemaSyntax.
Result<std::vector<GivenText>> operator_texts(std::string_view text,
                                              const std::string& file);

// Replaces each rule `@FILE` by the rules of the file. A rule of an operator takes
// precedence over that of a file. Errors: those of operator_texts();
// kFileUnreadable, kInputTooLarge; kInvalidArgument if two files have the same
// operator.
Result<std::vector<GivenText>> with_files(std::vector<GivenText> rules);

// Returns the library with the operators of a file. Results that a rule does not
// describe are inferred as in the rows of the library: they have the dtype of the
// first operand and are contiguous. Errors: as with_files(), kOpRegistered.
Result<std::shared_ptr<const OpLibrary>> library_with_file(
    const OpLibrary& library, const std::string& path);

}  // namespace shardprop
