#include <shardprop/graph/reading_note.h>

#include "base/quantities.h"

#include <array>
#include <cstddef>

namespace shardprop {
namespace {

std::string quoted_name(std::string_view name) {
  constexpr std::size_t kMostShown = 80;
  return '`' + std::string(name.substr(0, kMostShown)) + '`';
}

class ReadingNoteText {
 public:
  std::string operator()(const AssumedSizesNote& note) const {
    const std::string& first = note.sizes.front();
    const std::size_t others = note.sizes.size() - 1;
    return quoted_name(first) +
           (others == 0 ? " depends on data and is taken to be "
                        : " and " + counted(others, "more size") +
                              " depend on data and are each taken to be ") +
           std::to_string(note.value) + "; --bound " + first +
           "=N says otherwise";
  }

  std::string operator()(const FixedSizeNote& note) const {
    return quoted_name(note.size) + " (" + note.origin +
           ") may vary in the program; the plan fixes it at " +
           std::to_string(note.value) + ", its size in the example inputs";
  }

  std::string operator()(const CheckpointsNote& note) const {
    return "the model checkpoints " + counted(note.regions, "region") + " of " +
           counted(note.operators, "operator") +
           ", which run again with --recompute model, and with auto if that "
           "is cheapest in the memory limit";
  }

  std::string operator()(const LeftOutOperatorNote& note) const {
    return quoted_name(note.op) + " has effects and no results; it is left out";
  }

  std::string operator()(const UndeclaredOperatorNote& note) const {
    return quoted_name(note.op) + " is not declared; taken for " +
           assumed(note);
  }

  std::string operator()(const ExtraDimsNote& note) const {
    return quoted_name(note.node) +
           ": results that nothing reads have a dim of size 1 too many, as "
           "PyTorch before 2.13 writes them";
  }

  std::string operator()(const AsWrittenNote& note) const {
    std::string text = quoted_name(note.node) + ": ";
    for (const std::string& finding : note.findings) text += finding + "; ";
    text += "taken as it is written";
    if (note.is_replicated) text += ", to run replicated";
    return text;
  }

  std::string operator()(const WriteThroughViewNote& note) const {
    return "a write through the view " + quoted_name(note.node) + " (" +
           quoted_name(note.op) +
           ") is carried back to what it views by "
           "`shardprop.write_through_view`, which runs replicated";
  }

 private:
  static std::string assumed(const UndeclaredOperatorNote& note) {
    switch (note.writes) {
      case UndeclaredOperatorNote::Writes::kNothing:
        return "functional: " + note.declaration;
      case UndeclaredOperatorNote::Writes::kFirstTensor:
        return "a write of its first tensor: " + note.declaration +
               "; a rule with its declaration states what it writes";
      case UndeclaredOperatorNote::Writes::kNamed:
        break;
    }
    std::string names;
    for (const std::string& name : note.written) {
      names += (names.empty() ? "" : ", ") + quoted_name(name);
    }
    return "a write of " + names + ": " + note.declaration;
  }
};

}  // namespace

std::string_view code_of(const ReadingNote& note) {
  // In the order of the variant's types.
  static constexpr std::array<std::string_view,
                              std::variant_size_v<ReadingNote>>
      kReadingCodes = {"assumed_sizes",       "fixed_size",
                       "checkpoints",         "left_out_operator",
                       "undeclared_operator", "extra_dims",
                       "as_written",          "write_through_view"};
  return kReadingCodes[note.index()];
}

std::string to_string(const ReadingNote& note) {
  return std::visit(ReadingNoteText(), note);
}

}  // namespace shardprop
