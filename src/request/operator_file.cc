#include <shardprop/request/operator_file.h>

#include "base/parse_int.h"
#include "base/try.h"
#include "io/input_file.h"
#include "request/rule_parts.h"

#include <shardprop/ops/rule_text.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace shardprop {
namespace {

// Unit: bytes. A library has hundreds of operators, of less than 1 KiB each.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 20;

// `Entry` is one operator of a file; its lines are joined by line ends.
struct Entry {
  std::string text;
  std::vector<std::size_t> lines;  // number of each line in the file, from 1
};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

Error wrong(std::string message, std::string place) {
  return {ErrorCode::kInvalidArgument,
          std::move(message),
          std::move(place),
          {},
          "write the declaration at the start of a line, and indent the lines "
          "after it: mylib::scale(Tensor x, float by) -> Tensor = "
          "pointwise().linear_in(x)"};
}

Result<std::vector<Entry>> entries_of(std::string_view text,
                                      const std::string& file) {
  std::vector<Entry> entries;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t word = line.find_first_not_of(" \t");
    if (word == std::string_view::npos || line[word] == '#') continue;
    if (!is_blank(line[0])) {
      entries.emplace_back();
    } else if (entries.empty()) {
      return fail(wrong("the first operator is indented",
                        file + ':' + std::to_string(number)));
    }
    Entry& entry = entries.back();
    if (!entry.text.empty()) entry.text += '\n';
    entry.text += line;
    entry.lines.push_back(number);
  }
  return entries;
}

// Returns the line and the column of a place in the entry.
std::string place_of(const Entry& entry, const std::string& file,
                     std::size_t at) {
  const std::string_view before =
      std::string_view(entry.text).substr(0, std::min(at, entry.text.size()));
  const auto line =
      static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos
                                 ? before.size()
                                 : before.size() - start - 1;
  return file + ':' + std::to_string(entry.lines[line]) + ':' +
         std::to_string(column + 1);
}

// Returns the error of a rule that begins at `from` of the entry, at its place in
// the file.
Error in_file(Error error, const Entry& entry, const std::string& file,
              std::size_t from) {
  error.location = place_of(entry, file, from + column_of(error).value_or(0));
  return error;
}

// `OneLine` is a text without line ends, with the place of each character before.
struct OneLine {
  std::string text;
  std::vector<std::size_t> places;
};

// Joins the lines of a declaration.
OneLine in_one_line(std::string_view text) {
  OneLine out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool blank = is_blank(text[at]) || text[at] == '\n';
    if (blank && (out.text.empty() || out.text.back() == ' ')) continue;
    out.text += blank ? ' ' : text[at];
    out.places.push_back(at);
  }
  while (out.text.ends_with(' ')) out.text.pop_back();
  out.places.resize(out.text.size());
  return out;
}

// Returns the error of the declaration at the start of an entry.
Error in_declaration(Error error, const Entry& entry, const std::string& file,
                     const OneLine& line) {
  const std::size_t column = column_of(error).value_or(0);
  const std::size_t at = column < line.places.size() ? line.places[column]
                         : line.places.empty()       ? 0
                                                     : line.places.back() + 1;
  error.location = place_of(entry, file, at);
  return error;
}

struct StatedOperator {
  std::string name;
  std::string declaration;
  OpDefinition definition;
  std::string place;
};

template <class Parse>
Result<StatedOperator> operator_of_entry(const Entry& entry,
                                         const std::string& file,
                                         const OpLibrary& library,
                                         const Parse& parse) {
  const std::size_t equals = equals_of(entry.text);
  const OneLine line =
      in_one_line(std::string_view(entry.text).substr(0, equals));
  auto schema = FunctionSchema::parse(line.text, "");
  // Without `=`, a parenthesis of the declaration may be open.
  if (!schema) {
    return fail(in_declaration(std::move(schema).error(), entry, file, line));
  }
  if (equals == std::string::npos) {
    return fail(
        wrong("an operator has no rule: expected `=` after its declaration",
              place_of(entry, file, entry.text.size())));
  }
  const std::string_view rule = std::string_view(entry.text).substr(equals + 1);
  auto definition = parse(rule);
  if (!definition) {
    return fail(
        in_file(std::move(definition).error(), entry, file, equals + 1));
  }
  const auto shared =
      std::make_shared<const FunctionSchema>(*std::move(schema));
  if (auto checked = check_rule(rule, {shared}, library); !checked) {
    return fail(in_file(std::move(checked).error(), entry, file, equals + 1));
  }
  return StatedOperator{shared->name(), line.text, *std::move(definition),
                        file + ':' + std::to_string(entry.lines[0])};
}

template <class Parse>
Result<std::vector<StatedOperator>> operators_of(std::string_view text,
                                                 const std::string& file,
                                                 const OpLibrary& library,
                                                 const Parse& parse) {
  SP_ASSIGN(const std::vector<Entry> entries, entries_of(text, file));
  std::vector<StatedOperator> stated;
  std::set<std::string> names;
  for (const Entry& entry : entries) {
    SP_ASSIGN(StatedOperator one,
              operator_of_entry(entry, file, library, parse));
    if (!names.insert(one.name).second) {
      return fail(wrong("`" + one.name + "` is stated twice", one.place));
    }
    stated.push_back(std::move(one));
  }
  return stated;
}

}  // namespace

Result<std::vector<GivenText>> operator_texts(std::string_view text,
                                              const std::string& file) {
  const auto library = OpLibrary::standard();
  SP_ASSIGN(const auto stated, operators_of(text, file, *library, parse_rule));
  std::vector<GivenText> rules;
  for (const StatedOperator& one : stated) {
    rules.push_back(
        {one.declaration + '=' + one.definition.text(), one.place, true});
  }
  return rules;
}

Result<std::vector<GivenText>> with_files(std::vector<GivenText> rules) {
  std::vector<GivenText> out;
  std::set<std::string> stated;
  for (GivenText& rule : rules) {
    if (rule.text.starts_with('@')) continue;
    stated.insert(operator_of(rule.text));
    out.push_back(std::move(rule));
  }
  std::set<std::string> read;
  for (const GivenText& rule : rules) {
    if (!rule.text.starts_with('@')) continue;
    const std::string path = rule.text.substr(1);
    auto text = read_file(path, kMostBytes);
    if (!text) return fail(std::move(text).error().at(rule.place));
    SP_ASSIGN(std::vector<GivenText> of_file, operator_texts(*text, path));
    for (GivenText& one : of_file) {
      const std::string op = operator_of(one.text);
      if (!read.insert(op).second) {
        return fail(wrong("two files state `" + op + '`', one.place));
      }
      if (!stated.contains(op)) out.push_back(std::move(one));
    }
  }
  return out;
}

Result<std::shared_ptr<const OpLibrary>> library_with_file(
    const OpLibrary& library, const std::string& path) {
  SP_ASSIGN(const std::string text, read_file(path, kMostBytes));
  SP_ASSIGN(auto stated, operators_of(text, path, library, parse_definition));
  LibraryBuilder builder(library);
  for (StatedOperator& one : stated) {
    auto added = builder.add({.declaration = std::move(one.declaration),
                              .definition = std::move(one.definition),
                              .note = "by " + path});
    if (!added) return fail(std::move(added).error().at(one.place));
  }
  return std::move(builder).build();
}

}  // namespace shardprop
