// Tests the sizes of programs: symbolic ones that are set, and fixed ones that
// other exports or distinctive numbers rebind.
#include <doctest/doctest.h>

#include "io/program_fixture.h"
#include "io/pt2_conditions.h"
#include "io/size_forms.h"
#include "io/user_program.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using pt2::SizeForms;

SizeForms two_exports() {
  return SizeForms({{"batch", {5, 11}, 64}, {"seq", {37, 101}, 8192}});
}

TEST_CASE("numbers of two exports are functions of their sizes") {
  const SizeForms forms = two_exports();
  const auto number = [&](std::int64_t a, std::int64_t b) {
    const auto value = forms.number({a, b});
    REQUIRE_MESSAGE(value.has_value(), to_string(value.error()));
    return *value;
  };
  CHECK(number(128, 128) == 128);
  CHECK(number(5, 11) == 64);
  CHECK(number(37, 101) == 8192);
  CHECK(number(185, 1111) == 64 * 8192);
  CHECK(number(185 * 37, 1111 * 101) == std::int64_t{64} * 8192 * 8192);
  CHECK(number(3 * 185, 3 * 1111) == 3 * 64 * 8192);
  CHECK(number(36, 100) == 8191);
  CHECK(number(38, 102) == 8193);
  CHECK(number(-36, -100) == -8191);
  CHECK(number(5 * 36, 11 * 100) == 64 * 8191);
  CHECK(number(2 * 37 + 7, 2 * 101 + 7) == 2 * 8192 + 7);
  CHECK(forms.real({185.0, 1111.0}).value() == 64 * 8192);
  CHECK(forms.real({1.0 / 37, 1.0 / 101}).value() ==
        doctest::Approx(1.0 / 8192));
  CHECK(forms.real({0.125, 0.125}).value() == 0.125);
}

TEST_CASE("a number that two exports do not determine is refused") {
  const auto refused = [](const auto& value, const char* message,
                          const char* help) {
    REQUIRE_FALSE(value);
    CHECK(value.error().code == ErrorCode::kInvalidArgument);
    CHECK(value.error().message.find(message) != std::string::npos);
    CHECK(value.error().help.find(help) != std::string::npos);
  };
  refused(two_exports().number({6, 700}), "is no function of their sizes",
          "differ from that by a constant");
  refused(two_exports().real({0.1, 0.7}), "is no function of their sizes",
          "multiple or quotient");
  // 4*batch and seq are 8, then 16. They agree only at some sizes.
  const SizeForms alike({{"batch", {2, 4}, 8}, {"seq", {8, 16}, 64}});
  refused(alike.number({8, 16}), "4*batch or seq", "--other-size GRAPH3");
  refused(alike.real({8.0, 16.0}), "batch or seq", "--other-size GRAPH3");
  const SizeForms agreeing({{"batch", {2, 4}, 8}, {"seq", {8, 16}, 32}});
  CHECK(agreeing.number({8, 16}).value() == 32);
  // A third export decides.
  const SizeForms three({{"batch", {2, 4, 2}, 8}, {"seq", {8, 16, 24}, 64}});
  CHECK(three.number({8, 16, 24}).value() == 64);
  CHECK(three.number({8, 16, 8}).value() == 32);
  // Half of an odd size is no number.
  const SizeForms halves({{"seq", {8, 16}, 7}});
  CHECK(SizeForms({{"seq", {8, 16}, 6}}).number({4, 8}).value() == 3);
  refused(halves.number({4, 8}), "4/8*seq, which is not whole",
          "at which it is whole");
  refused(SizeForms({{"seq", {8, 16}, std::int64_t{1} << 40}})
              .number({std::int64_t{1} << 40, std::int64_t{1} << 41}),
          "too large", "smaller sizes");
}

TEST_CASE("numbers of one export follow the sizes that divide them") {
  const SizeForms forms({{"batch", {11}, 64}, {"seq", {101}, 8192}});
  CHECK(forms.number({4096}).value() == 4096);
  CHECK(forms.number({11}).value() == 64);
  CHECK(forms.number({1111 * 8}).value() == 64 * 8192 * 8);
  CHECK(forms.number({101 * 101}).value() == 8192 * 8192);
  CHECK(forms.number({-11}).value() == -11);
  CHECK(forms.number({0}).value() == 0);
  CHECK(forms.may_follow(std::int64_t{22}));
  CHECK_FALSE(forms.may_follow(std::int64_t{21}));
  CHECK(forms.may_follow(1111.0));
  CHECK(forms.may_follow(1 / 1111.0));
  CHECK_FALSE(forms.may_follow(0.5));
}

// x: f32[batch,seq,8] -> view [batch*seq,8] -> mm w -> view [batch,seq,4]
// -> slice dim 1 from 0 to seq-1; arange(seq).
Json sized(int batch, int seq) {
  constexpr int kI64 = 5;
  Json json = program();
  Json& graph = json["graph_module"]["graph"];
  const int rows = batch * seq;
  const auto ints = [](const std::vector<int>& list) {
    return Json{{"as_ints", list}};
  };
  const auto integer = [](int value) { return Json{{"as_int", value}}; };
  graph["tensor_values"] = {
      {"p_w", tensor_meta(kF32, {8, 4}, {4, 1})},
      {"x", tensor_meta(kF32, {batch, seq, 8}, {seq * 8, 8, 1})},
      {"view", tensor_meta(kF32, {rows, 8}, {8, 1})},
      {"mm", tensor_meta(kF32, {rows, 4}, {4, 1})},
      {"view_1", tensor_meta(kF32, {batch, seq, 4}, {seq * 4, 4, 1})},
      {"slice_1", tensor_meta(kF32, {batch, seq - 1, 4}, {seq * 4, 4, 1})},
      {"arange", tensor_meta(kI64, {seq}, {1})}};
  graph["sym_int_values"] = Json::object();
  graph["inputs"] = Json::array({tensor_argument("p_w"), tensor_argument("x")});
  graph["outputs"] =
      Json::array({tensor_argument("slice_1"), tensor_argument("arange")});
  graph["nodes"] = Json::array(
      {node("view", "torch.ops.aten.view.default",
            {{"self", tensor_argument("x")}, {"size", ints({rows, 8})}}),
       node("mm", "torch.ops.aten.mm.default",
            {{"self", tensor_argument("view")},
             {"mat2", tensor_argument("p_w")}}),
       node("view_1", "torch.ops.aten.view.default",
            {{"self", tensor_argument("mm")}, {"size", ints({batch, seq, 4})}}),
       node("slice_1", "torch.ops.aten.slice.Tensor",
            {{"self", tensor_argument("view_1")},
             {"dim", integer(1)},
             {"start", integer(0)},
             {"end", integer(seq - 1)}}),
       node("arange", "torch.ops.aten.arange.default",
            {{"end", integer(seq)}})});
  json["graph_module"]["signature"] = {
      {"input_specs",
       Json::array(
           {{{"parameter",
              {{"arg", {{"name", "p_w"}}}, {"parameter_name", "fc.weight"}}}},
            {{"user_input", {{"arg", tensor_argument("x")}}}}})},
      {"output_specs",
       Json::array({{{"user_output", {{"arg", tensor_argument("slice_1")}}}},
                    {{"user_output", {{"arg", tensor_argument("arange")}}}}})}};
  json["range_constraints"] = Json::object();
  json["guards_code"] = Json::array();
  return json;
}

// The same without the slice, whose end is no multiple of a size.
Json unsliced(int batch, int seq) {
  Json json = sized(batch, seq);
  Json& graph = json["graph_module"]["graph"];
  graph["tensor_values"].erase("slice_1");
  graph["nodes"].erase(3);
  graph["outputs"][0] = tensor_argument("view_1");
  json["graph_module"]["signature"]["output_specs"][0]["user_output"]["arg"] =
      tensor_argument("view_1");
  return json;
}

using Sizes = std::map<std::string, std::int64_t>;

Result<Graph> read_sized(const Json& json, const std::vector<Json>& others,
                         const Sizes& sizes) {
  LoadOptions options;
  options.sizes = sizes;
  for (const Json& other : others) {
    options.other_exports.push_back(
        {"other", std::make_shared<const std::string>(other.dump())});
  }
  return read_graph(json.dump(), "test", test_library(), options);
}

std::uint64_t hash_sized(const Result<Graph>& graph) {
  REQUIRE_MESSAGE(graph.has_value(), to_string(graph.error()));
  return graph->hash();
}

void refused_size(const Result<Graph>& graph, const std::string& message,
                  const std::string& help, const std::string& place = "") {
  CAPTURE(message);
  REQUIRE_FALSE(graph);
  CAPTURE(to_string(graph.error()));
  CHECK(graph.error().code == ErrorCode::kInvalidArgument);
  CHECK(graph.error().message.find(message) != std::string::npos);
  CHECK(graph.error().help.find(help) != std::string::npos);
  CHECK(graph.error().location.find(place) != std::string::npos);
}

TEST_CASE("two exports give the graph at any sizes") {
  const auto wanted = [](int batch, int seq) {
    return hash_sized(read_json(sized(batch, seq)));
  };
  const std::vector<Json> other{sized(11, 101)};
  const auto got = [&](const Sizes& sizes) {
    return hash_sized(read_sized(sized(5, 37), other, sizes));
  };
  CHECK(got({{"batch", 64}, {"seq", 8192}}) == wanted(64, 8192));
  CHECK(got({{"batch", 1}, {"seq", 2}}) == wanted(1, 2));
  CHECK(got({{"batch", 11}, {"seq", 101}}) == wanted(11, 101));
  CHECK(got({{"batch", 5}}) == wanted(5, 37));
  CHECK(got({{"batch", 64}}) == wanted(64, 37));
  CHECK(got({{"x.0", 64}, {"x.1", 16}}) == wanted(64, 16));
  // The other export may have the same batch, which then stays.
  CHECK(hash_sized(read_sized(sized(5, 37), {sized(5, 101)}, {{"seq", 64}})) ==
        wanted(5, 64));
  // Three exports, each of which changes one size.
  CHECK(hash_sized(read_sized(sized(2, 8), {sized(4, 8), sized(2, 16)},
                              {{"batch", 64}, {"seq", 128}})) ==
        wanted(64, 128));
}

TEST_CASE("one export is enough if its sizes divide no number of the model") {
  CHECK(hash_sized(
            read_sized(unsliced(11, 37), {}, {{"batch", 64}, {"seq", 128}})) ==
        hash_sized(read_json(unsliced(64, 128))));
  CHECK(hash_sized(read_sized(unsliced(5, 37), {}, {{"seq", 128}})) ==
        hash_sized(read_json(unsliced(5, 128))));
  refused_size(read_sized(unsliced(4, 37), {}, {{"batch", 64}}),
               "one export does not tell which numbers follow `batch`",
               "--size batch=64 --other-size GRAPH2", "size batch=64");
  refused_size(read_sized(unsliced(5, 10), {}, {{"batch", 64}}),
               "which numbers follow", "--other-size GRAPH2");
  // The end of the slice, 36, is no multiple of 37.
  refused_size(read_sized(sized(5, 37), {}, {{"seq", 128}}),
               "one export does not tell whether 36 follows",
               "--other-size GRAPH2", "slice_1");
  // A scalar may be a size or a constant.
  Json json = unsliced(5, 37);
  json["graph_module"]["graph"]["nodes"][1] =
      node("mm", "torch.ops.aten.addmm.default",
           {{"self", tensor_argument("p_w")},
            {"mat1", tensor_argument("view")},
            {"mat2", tensor_argument("p_w")},
            {"beta", Json{{"as_int", 185}}}});
  refused_size(read_sized(json, {}, {{"seq", 128}}),
               "one export does not tell whether 185 follows",
               "--other-size GRAPH2", "beta");
  json["graph_module"]["graph"]["nodes"][1]["inputs"][3]["arg"] = {
      {"as_float", 1 / 37.0}};
  refused_size(read_sized(json, {}, {{"seq", 128}}),
               "one export does not tell whether 0.027", "--other-size GRAPH2",
               "beta");
}

TEST_CASE("sizes that a program with fixed sizes does not have") {
  const std::vector<Json> other{sized(5, 101)};
  refused_size(read_sized(sized(5, 37), other, {{"s7", 8}}),
               "`s7` is not a size of this program",
               "sizes to set: seq (dim 1 of x)", "size s7=8");
  refused_size(read_sized(sized(5, 37), other, {{"batch", 8}}),
               "`batch` is 5 in all exports", "--other-size", "size batch=8");
  refused_size(read_sized(sized(5, 37), other, {{"seq", 8}, {"x.1", 8}}),
               "`seq` and `x.1` are one size", "give it once");
  refused_size(read_sized(sized(5, 37), other, {{"seq", 0}}),
               "`seq` cannot be 0", "at least 1");
  refused_size(read_sized(unsliced(1, 37), {}, {{"batch", 8}}),
               "`batch` is 1 in an export", "of at least 2");
  refused_size(read_sized(unsliced(37, 37), {}, {{"batch", 8}}),
               "dim 0 of x and dim 1 are equal", "--other-size GRAPH2");
  refused_size(read_sized(sized(5, 37), other, {}), "no use without a size",
               "--size");
  refused_size(read_sized(program(), other, {{"s77", 8}}),
               "the program has symbolic sizes", "leave the other export out");
}

TEST_CASE("another program is no other export") {
  const auto with = [&](const std::function<void(Json&)>& change) {
    Json other = sized(11, 101);
    change(other["graph_module"]["graph"]);
    return read_sized(sized(5, 37), {other}, {{"batch", 64}});
  };
  constexpr const char* kDiffer = "the exports are not one program";
  refused_size(with([](Json& g) { g["nodes"].erase(4); }), kDiffer,
               "same model");
  refused_size(with([](Json& g) { g["nodes"][1]["name"] = "mm_7"; }), kDiffer,
               "same model", "node `mm`");
  refused_size(with([](Json& g) {
                 g["nodes"][2]["inputs"][1]["arg"] = {{"as_ints", {11, 101}}};
               }),
               kDiffer, "same model", "size");
  refused_size(with([](Json& g) {
                 g["nodes"][2]["inputs"][1]["arg"] = {{"as_int", 11}};
               }),
               kDiffer, "same model", "node `view_1`");
  refused_size(with([](Json& g) { g["tensor_values"]["mm"]["dtype"] = 6; }),
               kDiffer, "same model", "tensor `mm`");
  refused_size(with([](Json& g) { g["inputs"].erase(1); }), kDiffer,
               "same model");
  // An unreadable one has its own place.
  LoadOptions options;
  options.sizes = {{"batch", 64}};
  options.other_exports = {
      {"b.json", std::make_shared<const std::string>("{")}};
  const auto broken =
      read_graph(sized(5, 37).dump(), "test", test_library(), options);
  REQUIRE_FALSE(broken);
  CHECK(broken.error().code == ErrorCode::kJsonSyntax);
  CHECK(broken.error().location.find("b.json") != std::string::npos);
}

TEST_CASE("rules are checked at the wanted sizes") {
  // A slice that ends at 30 has 30 rows, unless the tensor has fewer.
  const auto cut = [](int batch, int seq) {
    Json json = sized(batch, seq);
    Json& graph = json["graph_module"]["graph"];
    graph["nodes"][3]["inputs"][3]["arg"] = {{"as_int", 30}};
    graph["tensor_values"]["slice_1"]["sizes"][1] = {{"as_int", 30}};
    return json;
  };
  CHECK(hash_sized(read_sized(cut(5, 37), {cut(11, 101)}, {{"seq", 64}})) ==
        hash_sized(read_json(cut(5, 64))));
  refused_size(read_sized(cut(5, 37), {cut(11, 101)}, {{"seq", 16}}),
               "the program does not hold at seq=16",
               "export the program at these sizes", "slice_1");
}

TEST_CASE("conditions on symbolic sizes") {
  const SymExpr::Bindings sizes{{"s7", 6}, {"s8", 9}};
  const std::string s7 = "Symbol('s7', positive=True, integer=True)";
  const std::string s8 = "Symbol('s8', positive=True, integer=True)";
  CHECK(pt2::holds("Equality(Mod(" + s7 + ", Integer(3)), Integer(0))",
                   sizes) == true);
  CHECK(pt2::holds("Equality(Mod(" + s7 + ", Integer(4)), Integer(0))",
                   sizes) == false);
  CHECK(pt2::holds("LessThan(" + s7 + ", " + s8 + ")", sizes) == true);
  CHECK(pt2::holds("StrictGreaterThan(" + s7 + ", " + s8 + ")", sizes) ==
        false);
  CHECK(pt2::holds("GreaterThan(Pow(" + s7 + ", Integer(2)), " + s8 + ")",
                   sizes) == true);
  CHECK(pt2::holds("StrictLessThan(" + s8 + ", " + s7 + ")", sizes) == false);
  CHECK(pt2::holds("Unequality(" + s7 + ", Integer(6))", sizes) == false);
  CHECK_FALSE(pt2::holds("Equality(Symbol('u0'), Integer(3))", sizes));
  CHECK_FALSE(pt2::holds("Or(" + s7 + ", " + s8 + ")", sizes));
  CHECK_FALSE(pt2::holds("Equality(" + s7 + ")", sizes));
  CHECK_FALSE(pt2::holds("", sizes));

  const pt2::SizeOfInput size_of = [](std::string_view input, std::size_t dim) {
    return input == "x" && dim < 2
               ? std::optional<std::int64_t>(dim == 0 ? 6 : 9)
               : std::nullopt;
  };
  const auto guard = [&](std::string_view text) {
    return pt2::guard_holds(text, size_of);
  };
  CHECK(guard("L['x'].size()[0] == 6") == true);
  CHECK(guard("(2*L['x'].size()[0]) != (L['x'].size()[1] + 3)") == false);
  CHECK(guard("4*L['x'].size()[0] <= 20") == false);
  CHECK(guard("L['x'].size()[1] // 2 >= 4") == true);
  CHECK(guard("L['x'].size()[1] % 2 > 0") == true);
  CHECK(guard("L['x'].size()[1] - L['x'].size()[0] < 3") == false);
  CHECK_FALSE(guard("L['y'].size()[0] == 6"));
  CHECK_FALSE(guard("L['x'].size()[2] == 6"));
  CHECK_FALSE(guard("L['x'].size()[0] ** 2 == 36"));
  CHECK_FALSE(guard("L['x'].size()[0]"));
  CHECK_FALSE(guard("not L['x']"));
  CHECK_FALSE(guard("1 // 0 == 1"));
  CHECK_FALSE(guard("9223372036854775807 + 1 == 0"));
  CHECK_FALSE(guard(std::string(1000, '(')));
  CHECK_FALSE(guard(""));
}

TEST_CASE("sizes must satisfy the conditions of the program") {
  const auto read_at = [](const Json& json, std::int64_t size) {
    LoadOptions options;
    options.sizes = {{"s77", size}};
    return read_graph(json.dump(), "test", test_library(), options);
  };
  Json json = program();
  json["guards_code"] =
      Json::array({"L['x'].size()[0] % 4 == 0", "L['x'].size()[0] != 32"});
  CHECK(read_at(json, 12));
  CHECK(read_at(json, 16));
  refused_size(read_at(json, 14), "does not hold at this size",
               "at which it holds", "size s77=14");
  refused_size(read_at(json, 32), "does not hold at this size",
               "at which it holds");
  CHECK(read_at(json, 32).error().notes[0] ==
        "the program says L['x'].size()[0] != 32");

  json = program();
  Json& graph = json["graph_module"]["graph"];
  const std::string s77 = "Symbol('s77', positive=True, integer=True)";
  graph["sym_bool_values"]["eq"] = {
      {"as_expr",
       {{"expr_str", "Equality(Mod(" + s77 + ", Integer(4)), Integer(0))"},
        {"hint", nullptr}}}};
  Json check = node("assert_1", "torch.ops.aten._assert_scalar.default",
                    {{"self", {{"as_sym_bool", {{"as_name", "eq"}}}}},
                     {"assert_msg", {{"as_string", "Eq(Mod(s77, 4), 0)"}}}});
  check["outputs"] = Json::array();
  graph["nodes"].push_back(check);
  CHECK(read_at(json, 12));
  refused_size(read_at(json, 14), "does not hold at this size",
               "at which it holds", "size s77=14");
  CHECK(read_at(json, 14).error().notes[0] ==
        "the program says Eq(Mod(s77, 4), 0)");
}

}  // namespace
}  // namespace shardprop
