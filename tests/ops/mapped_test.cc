// Tests operators on some dims of their operands: which dims can be sharded and
// which stay replicated.
#include <doctest/doctest.h>
#include <shardprop/ops/op_library.h>

#include "support/standard_library.h"

#include <string>
#include <utility>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

std::string mapped_space(const char* name,
                         const std::vector<const char*>& inputs,
                         std::vector<GivenArgument> rest = {}) {
  const OpLibrary& library = testing::standard_library();
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> metas;
  for (const char* text : inputs) {
    given.push_back({"", TensorArg{static_cast<std::int32_t>(metas.size())}});
    metas.push_back(TensorMeta::parse(text).value());
  }
  for (GivenArgument& argument : rest) given.push_back(std::move(argument));
  auto op =
      make_op_schema(library.find(name), std::move(given), std::move(metas));
  if (!op) return to_string(op.error());
  auto results = library.infer_results(*op);
  if (!results) return to_string(results.error());
  std::string out;
  for (const auto& result : *results) {
    out += (out.empty() ? "" : " ") + (result ? to_string(*result) : "-");
  }
  set_results(*op, *std::move(results));
  const auto space = library.index_space(*op);
  return out + ": " + (space ? to_string(*space) : to_string(space.error()));
}

using Ints = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("matrices stay unsharded, their batches are sharded") {
  const auto cholesky =
      mapped_space("aten.linalg_cholesky_ex.default", {"f64[6,4,4]"});
  CHECK(cholesky.starts_with("f64[6,4,4]"));
  CHECK(cholesky.find(" i32[6]: ") != std::string::npos);
  CHECK(cholesky.find("=6}") != std::string::npos);
  CHECK(mapped_space("aten.linalg_qr.default", {"f32[6,4,3]"}).find("=6}") !=
        std::string::npos);
  const auto svd = mapped_space("aten._linalg_svd.default", {"f32[2,6,4,3]"});
  CHECK(svd.find("=2,") != std::string::npos);
  CHECK(svd.find("=6}") != std::string::npos);
}

TEST_CASE("transforms keep the dims that they run over") {
  CHECK(mapped_space("aten.fft_rfft.default", {"f32[6,8]"})
            .starts_with("c64[6,5]: "));
  CHECK(mapped_space("aten.fft_irfft.default", {"c64[6,5]"})
            .starts_with("f32[6,8]: "));
  CHECK(mapped_space("aten._fft_c2c.default", {"c64[6,5,4]"},
                     {{"", Ints{2}}, {"", std::int64_t{0}}, {"", true}})
            .starts_with("c64[6,5,4]: "));
}

TEST_CASE("distances: both lists and their rows are cut") {
  CHECK(mapped_space("aten.cdist.default", {"f32[5,3]", "f32[7,3]"}) ==
        "f32[5,7]: pm,rm->pr {p=5,m=3 program nonempty,r=7} m:.,.->_");
}

TEST_CASE("what does not fit is refused") {
  CHECK(mapped_space("aten.linalg_cholesky_ex.default", {"f32[4,3]"})
            .find("a dim of size 3 does not match the 4") != std::string::npos);
  CHECK(mapped_space("aten.glu.default", {"f32[4,3]"}).find("halves") !=
        std::string::npos);
}

TEST_CASE("a tensor may have more dims than there are letters") {
  const auto many = [](int rank) {
    std::string text = "f32[2";
    for (int d = 1; d < rank; ++d) text += ",1";
    return text + ']';
  };
  for (const int rank : {26, 27, 29, 30, 31, 40}) {
    CAPTURE(rank);
    const std::string self = many(rank);
    const auto is_sharded = [&](const std::string& answer) {
      CAPTURE(answer);
      CHECK(answer.find("{a=2}") != std::string::npos);
    };
    is_sharded(mapped_space("aten.rot90.default", {self.c_str()},
                            {{"", std::int64_t{1}}, {"", Ints{1, 2}}}));
    is_sharded(
        mapped_space("aten.renorm.default", {self.c_str()},
                     {{"p", 2.0}, {"dim", std::int64_t{0}}, {"maxnorm", 1.0}}));
    const std::string index = "i64" + self.substr(3);
    is_sharded(mapped_space("aten.take_along_dim.default",
                            {self.c_str(), index.c_str()},
                            {{"dim", std::int64_t{1}}}));
  }
}

TEST_CASE("full dims of a product count in its work") {
  const OpLibrary& library = testing::standard_library();
  for (const bool use_gelu : {false, true}) {
    std::vector<TensorMeta> metas;
    for (const char* text : {"f32[6]", "f32[4,8]", "f32[8,6]"}) {
      metas.push_back(TensorMeta::parse(text).value());
    }
    auto op = make_op_schema(library.find("aten._addmm_activation.default"),
                             {{"", TensorArg{0}},
                              {"", TensorArg{1}},
                              {"", TensorArg{2}},
                              {"use_gelu", use_gelu}},
                             std::move(metas));
    REQUIRE(op.has_value());
    set_results(*op, library.infer_results(*op).value());
    const IndexSpace space = library.index_space(*op).value();
    double points = 1;
    for (const Factor& factor : space.factors) {
      points *= static_cast<double>(factor.size);
    }
    CHECK(points * space.flops_per_point == 2.0 * 4 * 6 * 8);
  }
}

TEST_CASE("a call for which no alternative of a rule is written is an error") {
  const auto with_mask = [](bool returns_mask) {
    return mapped_space("aten._flash_attention_forward.default",
                        {"bf16[4,6,8,16]", "bf16[4,6,2,16]", "bf16[4,6,2,16]"},
                        {{"cum_seq_q", NoneArg{}},
                         {"cum_seq_k", NoneArg{}},
                         {"max_q", std::int64_t{6}},
                         {"max_k", std::int64_t{6}},
                         {"dropout_p", 0.0},
                         {"is_causal", true},
                         {"return_debug_mask", returns_mask}});
  };
  CHECK(with_mask(false).starts_with("bf16[4,6,8,16] f32[4,8,6]"));
  CHECK(with_mask(true).find("the rule has no alternative for these "
                             "arguments") != std::string::npos);
}
