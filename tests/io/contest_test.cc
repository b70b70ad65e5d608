#include <shardprop/io/contest.h>
#include <shardprop/solver/checker.h>

#include <doctest/doctest.h>
#include <zlib.h>

#include <cstdio>
#include <string>

namespace shardprop::io {
namespace {

using solver::kForbidden;
using solver::VariableId;

const std::string kExample = R"({"problem": {"name": "example",
  "edges": {"nodes": [[0, 1], [1, 0]],
            "costs": [[1, 2, 3, 4, 5, 6], [0, 1000000000000000000, 1e18, 3.0, 2e0, -1]]},
  "nodes": {"intervals": [[0, 2], [1, 3]], "costs": [[15, 55], [0, 1, 2]],
            "usages": [[10, 5], [1, 1, 1]]},
  "usage_limit": 50}})";

TEST_CASE("the format as documented: any key order, spellings") {
  const auto contest = parse_contest(kExample);
  REQUIRE(contest.has_value());
  CHECK(contest->name == "example");
  const solver::Problem& p = contest->problem;
  CHECK(p.num_variables() == 2);
  CHECK(p.num_edges() == 2);
  CHECK(p.limit() == 50);
  CHECK(p.costs(VariableId(1)).size() == 3);
  CHECK(p.usage(VariableId(0), 0).bytes[0] == 10);
  CHECK(p.usage(VariableId(1), 0).when == solver::Interval{1, 3});
  const solver::Table second = p.table(p.edge(solver::EdgeId(1)).table);
  CHECK(second.rows == 3);
  CHECK(second.costs[1] == kForbidden);
  CHECK(second.costs[2] == kForbidden);
  CHECK(second.costs[3] == 3);
  CHECK(second.costs[4] == 2);
  CHECK(second.costs[5] == -1);
  // node 0 at 0, node 1 at 2: 15 + 2 + table1[0][2] = 3 + table2[2][0] = 2
  CHECK(solver::evaluate(p, solver::Assignment{0, 2})->cost == 22);
}

std::string with_costs(const std::string& costs) {
  return R"({"problem":{"nodes":{"intervals":[[0,0]],"costs":[[)" + costs +
         R"(]],"usages":[[1,2,3]]}}})";
}

TEST_CASE("a missing limit is no limit; the largest numbers are forbidden") {
  const auto contest =
      parse_contest(with_costs("9223372036854775807, 1000000000000000000, 0"));
  REQUIRE(contest.has_value());
  CHECK(!contest->problem.limit().has_value());
  CHECK(solver::is_forbidden(contest->problem.costs(VariableId(0))[0]));
  CHECK(solver::is_forbidden(contest->problem.costs(VariableId(0))[1]));
}

TEST_CASE("numbers that are not integers of 64 bits are refused") {
  for (const char* number :
       {"9223372036854775808", "99999999999999999999999", "1e19", "1e400",
        "-9223372036854775809", "1.5", "1.", "01", "+1", "NaN", "--1"}) {
    CAPTURE(number);
    const auto contest = parse_contest(with_costs(number));
    REQUIRE(!contest.has_value());
    CHECK(contest.error().location == "$.problem.nodes.costs[0][0]");
  }
}

TEST_CASE("keys that are unknown, missing or stand twice are refused") {
  const auto error = [](const std::string& text) {
    const auto contest = parse_contest(text);
    REQUIRE(!contest.has_value());
    return contest.error();
  };
  const Error capital = error(R"({"problem":{"Nodes":{}}})");
  CHECK(capital.message == "unknown key `Nodes`");
  CHECK(capital.help == "did you mean `nodes`?");
  CHECK(error(R"({"problem":{}})").message == "`nodes` is missing");
  CHECK(error(R"({"problem":{"nodes":{"costs":[],"costs":[]}}})").message ==
        "`costs` appears twice");
  CHECK(error(with_costs("1,2,3").substr(0, 37)).location ==
        "$.problem.nodes.intervals[0][1]");
}

TEST_CASE("what is written reads back as the same problem") {
  auto contest = parse_contest(kExample);
  contest->name = "a \"name\"\n\x1b of any text";
  const auto text = write_contest(*contest);
  REQUIRE(text.has_value());
  const auto again = parse_contest(*text);
  REQUIRE(again.has_value());
  CHECK(*write_contest(*again) == *text);
  CHECK(again->name == contest->name);
  CHECK(again->problem.limit() == contest->problem.limit());
  for (std::uint32_t a = 0; a < 2; ++a) {
    for (std::uint32_t b = 0; b < 3; ++b) {
      const solver::Assignment x{a, b};
      CHECK(solver::evaluate(again->problem, x)->cost ==
            solver::evaluate(contest->problem, x)->cost);
      CHECK(solver::evaluate(again->problem, x)->peak_bytes ==
            solver::evaluate(contest->problem, x)->peak_bytes);
    }
  }
}

TEST_CASE(
    "pins are written as forbidden choices; several intervals cannot be") {
  solver::ProblemBuilder builder;
  const std::int64_t costs[] = {1, 2};
  const VariableId v = builder.add_variable(costs);
  builder.add_usage(v, {0, 1}, costs);
  builder.pin(v, 1);
  solver::ProblemBuilder more = builder;
  const auto text = write_contest({"p", *std::move(builder).build()});
  REQUIRE(text.has_value());
  CHECK(solver::is_forbidden(parse_contest(*text)->problem.costs(v)[0]));
  more.add_usage(v, {3, 4}, costs);
  const auto refused = write_contest({"p", *std::move(more).build()});
  REQUIRE(!refused.has_value());
  CHECK(refused.error().code == ErrorCode::kContestSyntax);
}

TEST_CASE("malformed files are errors with a place, never worse") {
  for (const char* bad :
       {"", "[]", "{}", "{\"problem\":1}",
        "{\"problem\":{\"nodes\":{\"costs\":[[1,]]}}}",
        "{\"problem\":{\"nodes\":{\"costs\":[[1.5]]}}}",
        "{\"problem\":{\"nodes\":{\"costs\":[[1]],\"intervals\":[[0,1]],"
        "\"usages\":[[1]]},"
        "\"edges\":{\"nodes\":[[0]],\"costs\":[[1]]}}}",
        "{\"problem\":{\"nodes\":{\"costs\":[[1]],\"intervals\":[[0,1]],"
        "\"usages\":[[1]]},"
        "\"edges\":{\"nodes\":[[0,5]],\"costs\":[[1]]}}}",
        "{\"problem\":{\"nodes\":{\"costs\":[[1]],\"intervals\":[[0]],"
        "\"usages\":[[1]]}}}",
        "{\"problem\":{\"nodes\":{\"costs\":[[1]],\"intervals\":[],\"usages\":["
        "[1]]}}}",
        "{\"problem\":{}} trailing", "{\"problem\":{\"x\":[}]}}",
        "{\"problem\":{\"name\":\"a"}) {
    CAPTURE(bad);
    const auto contest = parse_contest(bad);
    REQUIRE(!contest.has_value());
    CHECK(contest.error().code == ErrorCode::kContestSyntax);
  }
  // Every prefix of a good file is an error, too.
  for (std::size_t length = 0; length < kExample.size(); ++length) {
    CHECK(!parse_contest(std::string_view(kExample).substr(0, length))
               .has_value());
  }
  CHECK(parse_contest("{\"problem\": x}").error().location == "$.problem");
}

TEST_CASE("files: plain, gzipped, missing, too large, damaged") {
  const std::string plain = "contest_test_plain.json";
  const std::string zipped = "contest_test.json.gz";
  std::FILE* file = std::fopen(plain.c_str(), "wb");
  REQUIRE(file != nullptr);
  std::fwrite(kExample.data(), 1, kExample.size(), file);
  std::fclose(file);
  gzFile zip = gzopen(zipped.c_str(), "wb");
  gzwrite(zip, kExample.data(), static_cast<unsigned>(kExample.size()));
  gzclose(zip);
  constexpr std::uint64_t kPlenty = 1 << 20;
  CHECK(read_contest(plain, kPlenty)->name == "example");
  CHECK(read_contest(zipped, kPlenty)->name == "example");
  CHECK(read_contest("no_such_file.json", kPlenty).error().code ==
        ErrorCode::kContestFile);
  CHECK(read_contest(zipped, 100).error().code == ErrorCode::kContestFile);
  file = std::fopen(zipped.c_str(), "r+b");
  std::fseek(file, 40, SEEK_SET);
  std::fwrite("damage", 1, 6, file);
  std::fclose(file);
  const auto damaged = read_contest(zipped, kPlenty);
  CHECK(!damaged.has_value());
  std::remove(plain.c_str());
  std::remove(zipped.c_str());
}

}  // namespace
}  // namespace shardprop::io
