// `ReadingNote` is an assumption that was made while a graph was read or built,
// and that a user may not expect. Each kind of note is a type with its figures,
// and has a stable code:
//
//   FixedSizeNote{.size = "s77", .origin = "dim 0 of x", .value = 16}
//   has the code "fixed_size" and the text
//   `s77` (dim 0 of x) may vary in the program; the plan fixes it at 16, its
//   size in the example inputs
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shardprop {

// Sizes that depend on data have the same assumed value.
struct AssumedSizesNote {
  std::vector<std::string> sizes;  // not empty
  std::int64_t value = 0;
  friend bool operator==(const AssumedSizesNote&,
                         const AssumedSizesNote&) = default;
};

// A symbolic size has the value of the example inputs.
struct FixedSizeNote {
  std::string size;
  std::string origin;  // "dim 0 of x"
  std::int64_t value = 0;
  friend bool operator==(const FixedSizeNote&, const FixedSizeNote&) = default;
};

// The model checkpoints regions, which the rule `model` of recomputation follows.
struct CheckpointsNote {
  std::int64_t regions = 0;
  std::int64_t operators = 0;
  friend bool operator==(const CheckpointsNote&,
                         const CheckpointsNote&) = default;
};

// An operator with effects and without results is not in the graph.
struct LeftOutOperatorNote {
  std::string op;
  friend bool operator==(const LeftOutOperatorNote&,
                         const LeftOutOperatorNote&) = default;
};

// An operator has no declaration. Its call determines the assumed one.
struct UndeclaredOperatorNote {
  enum class Writes : std::uint8_t {
    kNothing,
    kFirstTensor,
    kNamed,  // the arguments `written`, which are among its results
  };
  std::string op;
  std::string declaration;
  Writes writes = Writes::kNothing;
  std::vector<std::string> written;
  friend bool operator==(const UndeclaredOperatorNote&,
                         const UndeclaredOperatorNote&) = default;
};

// Results that nothing reads have a dim of size 1 too many in the file.
struct ExtraDimsNote {
  std::string node;
  friend bool operator==(const ExtraDimsNote&, const ExtraDimsNote&) = default;
};

// The results of a node are those of the file, although its rule or declaration
// gives others.
struct AsWrittenNote {
  std::string node;
  std::vector<std::string> findings;  // not empty
  bool is_replicated = false;
  friend bool operator==(const AsWrittenNote&, const AsWrittenNote&) = default;
};

// A write through a view remains an operator, which runs replicated.
struct WriteThroughViewNote {
  std::string node;
  std::string op;
  friend bool operator==(const WriteThroughViewNote&,
                         const WriteThroughViewNote&) = default;
};

using ReadingNote =
    std::variant<AssumedSizesNote, FixedSizeNote, CheckpointsNote,
                 LeftOutOperatorNote, UndeclaredOperatorNote, ExtraDimsNote,
                 AsWrittenNote, WriteThroughViewNote>;

// Returns the code of the note: "assumed_sizes", "fixed_size", "checkpoints",
// "left_out_operator", "undeclared_operator", "extra_dims", "as_written",
// "write_through_view".
std::string_view code_of(const ReadingNote& note);

// Prints the note as one line. A name longer than 80 characters is shortened.
std::string to_string(const ReadingNote& note);

}  // namespace shardprop
