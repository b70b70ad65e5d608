// Definitions with programs, and their texts.

#include <shardprop/ops/op_definition.h>

#include "ops/op_call.h"
#include "ops/program/program_text.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace shardprop {

namespace {

std::shared_ptr<const ProgramText> parsed_program(std::string_view text) {
  auto program = parse_program(text);
  if (!program) throw InternalError(program.error().message);
  return std::make_shared<const ProgramText>(*std::move(program));
}

}  // namespace

OpDefinition OpDefinition::decomposed(std::string_view text) && {
  program_ = parsed_program(text);
  per_rank_ = false;
  const std::string said = "decomposed(\"" + to_string(*program_) + "\")";
  return std::move(*this)
      .opened({FactorKind::kBlocked, FactorKind::kScanned})
      .say(said);
}

OpDefinition OpDefinition::per_rank(std::string_view text,
                                    std::optional<FactorKind> kind) && {
  program_ = parsed_program(text);
  per_rank_ = true;
  const std::string said = "per_rank(\"" + to_string(*program_) + '"';
  if (!kind) return std::move(*this).say(said + ')');
  return std::move(*this).opened({*kind}).say(
      said + ',' + std::string(to_string(*kind)) + ')');
}

std::string OpDefinition::summary() const {
  std::string out;
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t open = std::min(text_.find("(\"", at), text_.size());
    out += text_.substr(at, open - at);
    if (open == text_.size()) break;
    const std::size_t close = text_.find('"', open + 2);
    out += "()";
    at = text_.find(')', close) + 1;
  }
  return out;
}

// Lets the program shard factors of these kinds. Its results are replicated if
// they lack such a factor.
OpDefinition OpDefinition::opened(std::vector<FactorKind> kinds) && {
  return std::move(*this).refined([kinds = std::move(kinds)](
                                      const OpCall&, IndexSpace& space) {
    const auto is_meant = [&](const Factor& factor) {
      return std::find(kinds.begin(), kinds.end(), factor.kind) != kinds.end();
    };
    // A factor of size 0 has no elements to shard.
    for (const Factor& factor : space.factors) {
      if (is_meant(factor) && factor.size == 0) return;
    }
    for (std::size_t f = 0; f < space.factors.size(); ++f) {
      Factor& factor = space.factors[f];
      if (!is_meant(factor)) continue;
      factor.program = ProgramUse::kWhenSharded;
      factor.least = std::max<std::int64_t>(factor.least, 1);
      for (std::size_t o = 0; o < space.outputs.size(); ++o) {
        Without& without = space.outputs_without[o][f];
        if (without.is_forbidden()) without = Without::same();
      }
    }
  });
}

}  // namespace shardprop
