#include "ops/rules/rule_forms.h"

#include <shardprop/ops/rule_text.h>

#include "base/parse_int.h"
#include "base/try.h"
#include "ops/forms/forms.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

std::optional<int> small_number(std::string_view text) {
  const auto number = parse_int(text);
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (!number || *number > kMost || *number < -kMost) return std::nullopt;
  return static_cast<int>(*number);
}

// Returns whether the text is a number, of any size.
bool is_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), RuleReader::is_digit);
}

// Removes and returns the number of results of a form: its last argument, if it
// is a number; else 1. Only rows of the library may have none.
Result<int> take_results(RuleCall& call, bool is_of_library) {
  if (call.arguments.empty()) return 1;
  const std::string& text = call.arguments.back().text;
  if (!is_number(text)) return 1;
  const auto count = small_number(text);
  // A check has no result: pointwise(0).
  const int least = is_of_library && call.name == "pointwise" ? 0 : 1;
  if (!count || *count < least || *count > 64) {
    return RuleReader::wrong(
        "expected " + std::to_string(least) + " to 64 results, found " + text,
        call.arguments.back().at, kFormsHelp);
  }
  call.arguments.pop_back();
  return *count;
}

Result<OpDefinition> batch_of(const RuleCall& call) {
  std::vector<int> dims;
  for (const RuleCall::Given& one : call.arguments) {
    const auto dim = small_number(one.text);
    if (!dim) {
      return RuleReader::wrong("expected a dim, found `" + one.text + '`',
                               one.at, kFormsHelp);
    }
    dims.push_back(*dim);
  }
  if (dims.empty()) {
    return RuleReader::wrong("expected a dim, found " + call.found_at_end,
                             call.end, kFormsHelp);
  }
  return batch(std::move(dims));
}

}  // namespace

Result<OpDefinition> form_of(RuleCall call, bool is_of_library,
                             RuleNames* names) {
  if (call.name == "batch") return batch_of(call);
  const std::size_t at =
      call.arguments.empty() ? call.at : call.arguments.back().at;
  const std::size_t before = call.arguments.size();
  const bool is_along = call.name == "along" || call.name == "scanned";
  if (is_along && before == 1 && is_number(call.arguments[0].text)) {
    return RuleReader::wrong("expected the name of an argument, found `" +
                                 call.arguments[0].text + '`',
                             at, kFormsHelp);
  }
  SP_ASSIGN(const int results, take_results(call, is_of_library));
  if (names != nullptr) {
    names->counts.push_back({static_cast<std::size_t>(results),
                             call.arguments.size() < before ? at : call.at,
                             RuleNames::Count::Of::kResults, call.name});
  }
  const auto& given = call.arguments;
  const std::size_t most = is_along || call.name == "reduction" ? 1 : 0;
  if (given.size() > most) {
    return RuleReader::wrong(
        "expected `)` of `" + call.name + "`, found `" + given[most].text + '`',
        given[most].at, kFormsHelp);
  }
  if (call.name == "pointwise") return pointwise(results);
  if (call.name == "same_shape") return same_shape(results);
  if (is_along) {
    if (given.empty()) {
      return RuleReader::wrong(
          "expected the name of an argument, found " + call.found_at_end,
          call.end, kFormsHelp);
    }
    if (!RuleReader::is_name(given[0].text)) {
      return RuleReader::wrong(
          "expected the name of an argument, found `" + given[0].text + '`',
          given[0].at, kFormsHelp);
    }
    if (names != nullptr) {
      names->names.push_back(
          {given[0].text, given[0].at, NameKind::kInteger, call.name});
    }
    return along(
        given[0].text, results,
        call.name == "scanned" ? FactorKind::kScanned : FactorKind::kBlocked);
  }
  if (given.empty()) return reduction(std::nullopt, results);
  if (const auto op = reduction_named(given[0].text)) {
    return reduction(*op, results);
  }
  return RuleReader::wrong(
      "expected one of sum, avg, product, min, max, band, bor, bxor, found `" +
          given[0].text + '`',
      given[0].at, kFormsHelp);
}

}  // namespace shardprop
