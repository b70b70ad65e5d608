// This file has the modifiers that set programs, and the texts of definitions.

#include <shardprop/ops/op_definition.h>

#include "ops/op_call.h"
#include "ops/program/lazy_program.h"
#include "ops/program/program_text.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace shardprop {

OpDefinition OpDefinition::with_program(std::string_view modifier,
                                        std::string_view text) && {
  program_ = std::make_shared<const LazyProgram>(std::string(text));
  text_ += '.';
  text_ += modifier;
  text_ += "(\"";
  printed_programs_.emplace_back(text_.size(), program_);
  text_ += '"';
  return std::move(*this);
}

OpDefinition OpDefinition::decomposed(std::string_view text) && {
  OpDefinition row = std::move(*this).with_program("decomposed", text);
  row.per_rank_ = false;
  row.text_ += ')';
  return std::move(row).opened({FactorKind::kBlocked, FactorKind::kScanned});
}

OpDefinition OpDefinition::per_rank(std::string_view text,
                                    std::optional<FactorKind> kind) && {
  OpDefinition row = std::move(*this).with_program("per_rank", text);
  row.per_rank_ = true;
  if (!kind) {
    row.text_ += ')';
    return row;
  }
  row.text_ += ',';
  row.text_ += to_string(*kind);
  row.text_ += ')';
  return std::move(row).opened({*kind});
}

const ProgramText* OpDefinition::program() const {
  if (program_ == nullptr) return nullptr;
  const Result<ProgramText>& parsed = program_->parsed();
  if (!parsed) throw InternalError(parsed.error().message);
  return &*parsed;
}

Result<void> OpDefinition::check_program() const {
  for (const auto& [at, program] : printed_programs_) {
    if (!program->parsed()) return fail(Error(program->parsed().error()));
  }
  return {};
}

std::string OpDefinition::text() const {
  std::string out;
  std::size_t from = 0;
  for (const auto& [at, program] : printed_programs_) {
    const Result<ProgramText>& parsed = program->parsed();
    if (!parsed) throw InternalError(parsed.error().message);
    out += std::string_view(text_).substr(from, at - from);
    out += to_string(*parsed);
    from = at;
  }
  return out += std::string_view(text_).substr(from);
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
