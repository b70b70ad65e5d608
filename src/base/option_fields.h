// OptionField is a row of an options table. Parsing, printing, bounds and the
// rows that users see (shardprop/base/option.h) follow from a list of rows.
//
//   constexpr OptionField<SolveOptions> kFields[] = {
//       {"threads", "N", "Threads to search with.",
//        whole(&SolveOptions::threads, 1, 1024)}, ...};
//   set_field<SolveOptions>(kFields, options, "threads", "2");
#pragma once

#include "base/edit_distance.h"
#include "base/parse_number.h"

#include <shardprop/base/option.h>
#include <shardprop/base/result.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shardprop {

template <class Options>
struct FlagField {
  bool Options::* member;
};

// WholeField is an integer member of any type, with its bounds.
template <class Options>
struct WholeField {
  std::variant<int Options::*, std::uint64_t Options::*,
               std::optional<std::uint64_t> Options::*>
      member;
  std::uint64_t least;
  std::uint64_t most;
};

// An unset value is written "none".
template <class Options>
struct BytesField {
  std::optional<std::int64_t> Options::* member;
  std::int64_t least;
};

template <class Options>
struct RealField {
  double Options::* member;
  double least;
  double most;
  bool none_is_zero;  // "none" may be written for 0
};

// ChoiceField is one of an enumeration's names. `get` returns its index among
// the names, or nullopt if the option is unset.
template <class Options>
struct ChoiceField {
  std::span<const std::string_view> names;
  std::optional<std::size_t> (*get)(const Options&);
  void (*set)(Options&, std::size_t);
};

// ListField is a value that can be given several times, in its own notation.
template <class Options>
struct ListField {
  Result<void> (*add)(Options&, std::string_view);
  std::string (*text)(const Options&);
};

template <class Options>
struct OptionField {
  std::string_view name;
  std::string_view value;
  std::string_view description;
  std::variant<FlagField<Options>, WholeField<Options>, BytesField<Options>,
               RealField<Options>, ChoiceField<Options>, ListField<Options>>
      kind;
};

namespace option_fields {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

template <class Options>
std::string range_of(const OptionField<Options>& field) {
  using std::to_string;
  return std::visit(
      Overloaded{[](const WholeField<Options>& f) {
                   return "an integer between " + to_string(f.least) + " and " +
                          to_string(f.most);
                 },
                 [](const RealField<Options>& f) {
                   return "a number between " + number_text(f.least) + " and " +
                          number_text(f.most);
                 },
                 [](const BytesField<Options>&) {
                   return std::string(
                       "80GiB, 512MiB, a positive number of bytes, or none");
                 },
                 [](const FlagField<Options>&) {
                   return std::string("true or false");
                 },
                 [](const ChoiceField<Options>& f) {
                   std::string list;
                   for (const std::string_view name : f.names) {
                     list +=
                         (list.empty() ? "one of " : ", ") + std::string(name);
                   }
                   return list;
                 },
                 [](const ListField<Options>&) { return std::string(); }},
      field.kind);
}

// Printed is the value as text (empty if unset), and whether the value is in
// bounds.
struct Printed {
  std::string text;
  bool fits = true;
};

template <class Options>
Printed printed(const OptionField<Options>& field, const Options& options) {
  using std::to_string;
  return std::visit(
      Overloaded{
          [&](const FlagField<Options>& f) -> Printed {
            return {options.*f.member ? "true" : "false"};
          },
          [&](const WholeField<Options>& f) -> Printed {
            return std::visit(
                Overloaded{
                    [&](int Options::* m) -> Printed {
                      const int v = options.*m;
                      return {to_string(v),
                              v >= 0 &&
                                  static_cast<std::uint64_t>(v) >= f.least &&
                                  static_cast<std::uint64_t>(v) <= f.most};
                    },
                    [&](std::uint64_t Options::* m) -> Printed {
                      const std::uint64_t v = options.*m;
                      return {to_string(v), v >= f.least && v <= f.most};
                    },
                    [&](std::optional<std::uint64_t> Options::* m) -> Printed {
                      const auto& v = options.*m;
                      if (!v) return {};
                      return {to_string(*v), *v >= f.least && *v <= f.most};
                    }},
                f.member);
          },
          [&](const BytesField<Options>& f) -> Printed {
            const auto& v = options.*f.member;
            if (!v) return {};
            return {to_string(*v), *v >= f.least};
          },
          [&](const RealField<Options>& f) -> Printed {
            const double v = options.*f.member;
            // The comparisons are false for a NaN, so a NaN is out of bounds.
            return {number_text(v), v >= f.least && v <= f.most};
          },
          [&](const ChoiceField<Options>& f) -> Printed {
            const std::optional<std::size_t> v = f.get(options);
            if (!v) return {};
            if (*v >= f.names.size()) {
              return {"value " + to_string(*v), false};
            }
            return {std::string(f.names[*v])};
          },
          [&](const ListField<Options>& f) -> Printed {
            return {f.text(options)};
          }},
      field.kind);
}

inline std::optional<std::uint64_t> parse_whole(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Sets the member from the text; returns false if the text is not a value of
// the field.
template <class Options>
Result<bool> put(const OptionField<Options>& field, Options& options,
                 std::string_view text) {
  return std::visit(
      Overloaded{
          [&](const FlagField<Options>& f) -> Result<bool> {
            options.*f.member = text == "true";
            return text == "true" || text == "false";
          },
          [&](const WholeField<Options>& f) -> Result<bool> {
            const auto v = parse_whole(text);
            if (!v || *v < f.least || *v > f.most) return false;
            std::visit(Overloaded{[&](int Options::* m) {
                                    options.*m = static_cast<int>(*v);
                                  },
                                  [&](auto Options::* m) { options.*m = *v; }},
                       f.member);
            return true;
          },
          [&](const BytesField<Options>& f) -> Result<bool> {
            options.*f.member = parse_bytes(text);
            return text == "none" || (options.*f.member).has_value();
          },
          [&](const RealField<Options>& f) -> Result<bool> {
            if (f.none_is_zero && text == "none") {
              options.*f.member = 0;
              return true;
            }
            const auto v = parse_number(text);
            if (v) options.*f.member = *v;
            return v.has_value();
          },
          [&](const ChoiceField<Options>& f) -> Result<bool> {
            const auto at = std::find(f.names.begin(), f.names.end(), text);
            if (at == f.names.end()) return false;
            f.set(options, static_cast<std::size_t>(at - f.names.begin()));
            return true;
          },
          [&](const ListField<Options>& f) -> Result<bool> {
            if (auto added = f.add(options, text); !added) {
              return fail(std::move(added).error());
            }
            return true;
          }},
      field.kind);
}

}  // namespace option_fields

template <class Options>
std::vector<OptionInfo> option_rows(
    std::span<const OptionField<Options>> fields,
    const Options& defaults = {}) {
  std::vector<OptionInfo> rows;
  for (const OptionField<Options>& field : fields) {
    OptionInfo row{field.name,
                   field.value,
                   field.description,
                   option_fields::range_of(field),
                   option_fields::printed(field, defaults).text,
                   {},
                   false};
    if (const auto* f = std::get_if<ChoiceField<Options>>(&field.kind)) {
      row.choices.assign(f->names.begin(), f->names.end());
    }
    row.repeatable = std::holds_alternative<ListField<Options>>(field.kind);
    rows.push_back(std::move(row));
  }
  return rows;
}

// Checks all fields. Error: kInvalidArgument, for the first field that is out
// of bounds.
template <class Options>
Result<void> check_fields(std::span<const OptionField<Options>> fields,
                          const Options& options) {
  for (const OptionField<Options>& field : fields) {
    const option_fields::Printed now = option_fields::printed(field, options);
    if (now.fits) continue;
    return fail(Error{ErrorCode::kInvalidArgument,
                      "`" + std::string(field.name) + "` is " + now.text,
                      std::string(field.name),
                      {},
                      "give " + option_fields::range_of(field)});
  }
  return {};
}

template <class Options>
Result<const OptionField<Options>*> find_field(
    std::span<const OptionField<Options>> fields, std::string_view name) {
  std::vector<std::string_view> names;
  for (const OptionField<Options>& field : fields) {
    if (field.name == name) return &field;
    names.push_back(field.name);
  }
  return fail(Error{ErrorCode::kInvalidArgument,
                    "`" + std::string(name) + "` is not an option",
                    std::string(name),
                    {},
                    did_you_mean(name, names)});
}

// Error: kInvalidArgument; the options are then unchanged.
template <class Options>
Result<void> set_field(std::span<const OptionField<Options>> fields,
                       Options& options, std::string_view name,
                       std::string_view text) {
  auto field = find_field(fields, name);
  if (!field) return fail(std::move(field).error());
  Options changed = options;
  Result<bool> put = option_fields::put(**field, changed, text);
  if (!put) return fail(std::move(put).error());
  if (!*put || !option_fields::printed(**field, changed).fits) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      "`" + std::string(text) + "` is not a valid value",
                      std::string(name),
                      {},
                      "give " + option_fields::range_of(**field)});
  }
  options = std::move(changed);
  return {};
}

// Returns an empty text if the option is unset. Error: kInvalidArgument.
template <class Options>
Result<std::string> get_field(std::span<const OptionField<Options>> fields,
                              const Options& options, std::string_view name) {
  auto field = find_field(fields, name);
  if (!field) return fail(std::move(field).error());
  return option_fields::printed(**field, options).text;
}

}  // namespace shardprop
