#include <shardprop/plan/pin.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardprop {

namespace {

struct Prefix {
  std::string_view text;
  PinTerm::Kind kind;
};
constexpr Prefix kPrefixes[] = {{"name:", PinTerm::Kind::kName},
                                {"module:", PinTerm::Kind::kModule},
                                {"op:", PinTerm::Kind::kOp},
                                {"phase:", PinTerm::Kind::kPhase}};
constexpr std::string_view kStoredPrefix = "stored:";
constexpr std::string_view kUsedPrefix = "used:";
constexpr std::string_view kStatePrefix = "state:";

std::string_view prefix_of(Pin::Place place) {
  switch (place) {
    case Pin::Place::kBoth:
      return {};
    case Pin::Place::kStored:
      return kStoredPrefix;
    case Pin::Place::kUsed:
      return kUsedPrefix;
    case Pin::Place::kState:
      return kStatePrefix;
  }
  return {};
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

PinTerm term_of(std::string_view word) {
  for (const Prefix& prefix : kPrefixes) {
    if (take(word, prefix.text)) return {prefix.kind, std::string(word)};
  }
  return {PinTerm::Kind::kName, std::string(word)};
}

std::vector<PinTerm> terms_of(std::string_view text) {
  std::vector<PinTerm> terms;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return terms;
    const std::size_t end = std::min(text.find(' '), text.size());
    terms.push_back(term_of(text.substr(0, end)));
    text.remove_prefix(end);
  }
}

std::string text_of(const PinTerm& term) {
  const PinTerm bare = term_of(term.glob);
  if (term.kind == PinTerm::Kind::kName && bare == term) return term.glob;
  for (const Prefix& prefix : kPrefixes) {
    if (prefix.kind == term.kind) return std::string(prefix.text) + term.glob;
  }
  return term.glob;
}

}  // namespace

Result<Pin> Pin::parse(std::string_view text) {
  const std::string location = fmt::format("--pin '{}'", text);
  const auto refused = [&](std::string message, std::string help) {
    return fail(Error{ErrorCode::kPinSyntax,
                      std::move(message),
                      location,
                      {},
                      std::move(help)});
  };
  // The last `=` ends the names: they may contain one, placements may not.
  const std::size_t equals = text.rfind('=');
  std::string_view what = text.substr(0, std::min(equals, text.size()));
  what.remove_prefix(std::min(what.find_first_not_of(' '), what.size()));
  Pin pin;
  for (const Place place : {Place::kStored, Place::kUsed, Place::kState}) {
    if (pin.place == Place::kBoth && take(what, prefix_of(place))) {
      pin.place = place;
    }
  }
  pin.terms = terms_of(what);
  if (equals == std::string_view::npos || pin.terms.empty()) {
    return refused("a pin needs a name and placements",
                   "write NAME=PLACEMENTS, as in 'layers.*.wq.weight=R,S(0)'");
  }
  for (const PinTerm& term : pin.terms) {
    if (term.glob.empty()) {
      return refused("a term of the pin has nothing behind its colon",
                     "write a glob there, as in 'module:*.mlp op:aten.mm*'");
    }
    if (term.kind == PinTerm::Kind::kPhase && term.glob != "forward" &&
        term.glob != "backward") {
      return refused(fmt::format("`{}` is not a phase", term.glob),
                     "write phase:forward or phase:backward");
    }
  }
  auto layout = Layout::parse(text.substr(equals + 1));
  if (!layout) return fail(std::move(layout).error().at(location));
  pin.layout = *std::move(layout);
  return pin;
}

std::string to_string(const Pin& pin) {
  std::string text(prefix_of(pin.place));
  for (const PinTerm& term : pin.terms) {
    if (&term != &pin.terms.front()) text += ' ';
    text += text_of(term);
  }
  return text + "=" + to_string(pin.layout);
}

}  // namespace shardprop
