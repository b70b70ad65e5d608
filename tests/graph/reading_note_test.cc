#include <shardprop/graph/reading_note.h>

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

namespace shardprop {
namespace {

std::vector<ReadingNote> one_of_each() {
  return {
      AssumedSizesNote{{"u0"}, 128},
      FixedSizeNote{"s77", "dim 0 of x", 16},
      CheckpointsNote{2, 30},
      LeftOutOperatorNote{"my.log.default"},
      UndeclaredOperatorNote{.op = "my.act.default",
                             .declaration = "my::act(Tensor x) -> Tensor"},
      ExtraDimsNote{"lstm"},
      AsWrittenNote{"mm", {"its result has 2 dims", "the rule gives 3"}, true},
      WriteThroughViewNote{"unfold", "aten.unfold.default"}};
}

}  // namespace

TEST_CASE("each kind of note has a code and a text of its own") {
  const std::vector<ReadingNote> notes = one_of_each();
  REQUIRE(notes.size() == std::variant_size_v<ReadingNote>);
  std::set<std::string> codes;
  std::set<std::string> texts;
  for (const ReadingNote& note : notes) {
    codes.emplace(code_of(note));
    texts.insert(to_string(note));
    CHECK(to_string(note).find('\n') == std::string::npos);
  }
  CHECK(codes.size() == notes.size());
  CHECK(texts.size() == notes.size());
  CHECK(code_of(notes[0]) == "assumed_sizes");
  CHECK(code_of(notes[6]) == "as_written");
  CHECK(code_of(notes[7]) == "write_through_view");
}

TEST_CASE("the text of a note has all of its figures") {
  CHECK(to_string(FixedSizeNote{"s77", "dim 0 of x", 16}) ==
        "`s77` (dim 0 of x) may vary in the program; the plan fixes it at 16, "
        "its size in the example inputs");
  CHECK(to_string(AssumedSizesNote{{"u0"}, 128}) ==
        "`u0` depends on data and is taken to be 128; --bound u0=N says "
        "otherwise");
  CHECK(to_string(AssumedSizesNote{{"u0", "u1", "u2"}, 8}) ==
        "`u0` and 2 more sizes depend on data and are each taken to be 8; "
        "--bound u0=N says otherwise");
  CHECK(to_string(CheckpointsNote{1, 30}) ==
        "the model checkpoints 1 region of 30 operators, which run again with "
        "--recompute model, and with auto if that is cheapest in the memory "
        "limit");
  CHECK(to_string(AsWrittenNote{"mm", {"a", "b"}, true}) ==
        "`mm`: a; b; taken as it is written, to run replicated");
  CHECK(to_string(AsWrittenNote{"mm", {"a"}, false}) ==
        "`mm`: a; taken as it is written");
}

TEST_CASE("a note states what an undeclared operator is assumed to write") {
  using Writes = UndeclaredOperatorNote::Writes;
  UndeclaredOperatorNote note{.op = "my.act", .declaration = "D"};
  CHECK(to_string(note) == "`my.act` is not declared; taken for functional: D");
  note.writes = Writes::kFirstTensor;
  CHECK(to_string(note) ==
        "`my.act` is not declared; taken for a write of its first tensor: D; a "
        "rule with its declaration states what it writes");
  note.writes = Writes::kNamed;
  note.written = {"x", "y"};
  CHECK(to_string(note) ==
        "`my.act` is not declared; taken for a write of `x`, `y`: D");
}

TEST_CASE("a note shortens a name to 80 characters") {
  const std::string text = to_string(ExtraDimsNote{std::string(1000, 'a')});
  CHECK(text.starts_with("`" + std::string(80, 'a') + "`:"));
}

}  // namespace shardprop
