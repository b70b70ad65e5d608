#include <shardprop/ops/op_library.h>

#include <shardprop/ops/rule_text.h>

#include "base/try.h"
#include "ops/added_row.h"
#include "ops/bound_call.h"
#include "ops/definitions/families.h"
#include "ops/names/rule_names.h"
#include "ops/schema/declared_table.h"
#include "ops/schema/foreign_operator.h"
#include "ops/schema/overload_form.h"
#include "ops/schema/suggest_operator.h"
#include "ops/space/foreach.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace shardprop {

namespace {

// Rejects a row of a misspelled operator. Operators that libraries on top of
// PyTorch register are declared in exported files only.
void require_declared(const OpRow& row) {
  if (row.name.starts_with("transformers.") || is_in_table(row.name)) return;
  throw InternalError("the row `" + row.name + "` is of no declared operator");
}

}  // namespace

struct OpLibrary::Body {
  std::vector<std::shared_ptr<const OpRow>> rows;
  std::unordered_map<std::string_view, const OpRow*> rows_by_name;
  // The definition of operators that are tagged pointwise and have no
  // definition of their own.
  std::shared_ptr<const OpRow> tagged_pointwise;
  // Declarations that are not in the generated table.
  std::map<std::string, std::shared_ptr<const FunctionSchema>> declared;

  // These members cache earlier lookups.
  mutable std::mutex mutex;
  mutable std::unordered_map<std::string, std::shared_ptr<const FunctionSchema>>
      parsed;
  mutable std::unordered_map<std::string, std::shared_ptr<const OverloadForm>>
      forms;

  void add(std::shared_ptr<const OpRow> row) {
    const auto old = rows_by_name.find(row->name);
    if (old != rows_by_name.end()) {
      const OpRow* replaced = old->second;
      rows_by_name.erase(old);
      std::erase_if(rows, [&](const auto& r) { return r.get() == replaced; });
    }
    rows_by_name.emplace(row->name, row.get());
    rows.push_back(std::move(row));
  }
  const OpRow* find(std::string_view name) const {
    const auto found = rows_by_name.find(name);
    return found == rows_by_name.end() ? nullptr : found->second;
  }
  // Returns the definition of an overload, or else that of its operator.
  const OpRow* own_row(const FunctionSchema& function) const {
    if (const OpRow* exact = find(function.name())) return exact;
    const std::string_view name = function.name();
    return find(name.substr(0, name.rfind('.')));
  }
};

OpLibrary::OpLibrary(std::unique_ptr<Body> body) : body_(std::move(body)) {}
OpLibrary::~OpLibrary() = default;

std::shared_ptr<const OpLibrary> OpLibrary::standard() {
  auto body = std::make_unique<Body>();
  for (OpRow& row : standard_rows()) {
    require_declared(row);
    body->add(std::make_shared<const OpRow>(std::move(row)));
  }
  body->tagged_pointwise = std::make_shared<const OpRow>(
      OpRow{"", pointwise().promoted(), "pointwise", "by its tag"});
  return std::shared_ptr<const OpLibrary>(new OpLibrary(std::move(body)));
}

Result<std::shared_ptr<const OpLibrary>> OpLibrary::with(
    Addition addition) const {
  LibraryBuilder builder(*this);
  SP_CHECK(builder.add(std::move(addition)));
  return std::move(builder).build();
}

LibraryBuilder::LibraryBuilder(const OpLibrary& library) {
  const OpLibrary::Body& old = *library.body_;
  auto body = std::make_unique<OpLibrary::Body>();
  body->tagged_pointwise = old.tagged_pointwise;
  body->declared = old.declared;
  for (const auto& row : old.rows) body->add(row);
  library_.reset(new OpLibrary(std::move(body)));
}

Result<void> LibraryBuilder::add(OpLibrary::Addition addition) {
  return library_->add(std::move(addition));
}

Result<void> OpLibrary::add(Addition addition) {
  if (!addition.declaration.empty()) {
    SP_ASSIGN(FunctionSchema schema,
              FunctionSchema::parse(addition.declaration, addition.tags));
    if (body_->declared.contains(schema.name()) ||
        find_declared(schema.name()) != nullptr) {
      return fail(ErrorCode::kOpRegistered,
                  "`" + schema.name() + "` is already declared",
                  "choose a namespace of your own");
    }
    if (addition.name.empty()) addition.name = schema.name();
    auto shared = std::make_shared<const FunctionSchema>(std::move(schema));
    body_->declared.emplace(shared->name(), shared);
    body_->forms
        .clear();  // a declaration may be the functional form of another
  }
  if (!addition.definition) return {};
  // The names of a row that is replaced are known to the new one.
  const RuleNames known =
      names_of_row(*this, overloads_of_row(*this, addition.name));
  const auto row = std::make_shared<const OpRow>(
      OpRow{std::move(addition.name), *std::move(addition.definition),
            std::move(addition.family), std::move(addition.note)});
  body_->add(row);
  return check_added_row(*this, *row, known);
}

std::shared_ptr<const FunctionSchema> OpLibrary::find(
    std::string_view name) const {
  std::string key = canonical(name);
  if (const auto own = body_->declared.find(key);
      own != body_->declared.end()) {
    return own->second;
  }
  const std::scoped_lock lock(body_->mutex);
  if (const auto known = body_->parsed.find(key);
      known != body_->parsed.end()) {
    return known->second;
  }
  const DeclaredLine* line = find_declared(key);
  if (line == nullptr) return nullptr;
  auto schema = FunctionSchema::parse(line->declaration, line->tags);
  if (!schema) {
    throw InternalError(
        "the table of operators has a line that does not parse: " +
        std::string(line->declaration));
  }
  auto shared = std::make_shared<const FunctionSchema>(*std::move(schema));
  body_->parsed.emplace(std::move(key), shared);
  return shared;
}

std::vector<std::string> OpLibrary::names() const {
  std::vector<std::string> all;
  all.reserve(declared_table().size());
  for (const DeclaredLine& line : declared_table())
    all.push_back(canonical(line.name));
  for (const auto& [name, schema] : body_->declared) all.push_back(name);
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<std::string> OpLibrary::overloads(std::string_view packet) const {
  std::vector<std::string> out;
  const auto add = [&](std::string name) {
    const std::string_view view = name;
    if (view.substr(0, view.rfind('.')) != packet) return;
    const auto function = find(name);
    if (!function->is_mutating()) out.push_back(std::move(name));
  };
  const std::string prefix = qualified(packet);
  for (auto line = std::lower_bound(
           declared_table().begin(), declared_table().end(), prefix,
           [](const DeclaredLine& l, const std::string& key) {
             return l.name < key;
           });
       line != declared_table().end() && line->name.starts_with(prefix);
       ++line) {
    add(canonical(line->name));
  }
  const std::string start = std::string(packet) + '.';
  for (auto own = body_->declared.lower_bound(start);
       own != body_->declared.end() && own->first.starts_with(start); ++own) {
    add(own->first);
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    const bool first = a.ends_with(".default");
    const bool second = b.ends_with(".default");
    return first != second ? first : a < b;
  });
  return out;
}

std::string OpLibrary::suggest(std::string_view unknown) const {
  return suggest_operator(canonical(unknown), names());
}

const OpRow* OpLibrary::row_named(std::string_view name) const {
  return body_->find(name);
}

std::vector<const OpRow*> OpLibrary::rows() const {
  std::vector<const OpRow*> out;
  for (const auto& row : body_->rows) out.push_back(row.get());
  std::sort(out.begin(), out.end(),
            [](const OpRow* a, const OpRow* b) { return a->name < b->name; });
  return out;
}

std::shared_ptr<const OverloadForm> OpLibrary::form(
    const FunctionSchema& function) const {
  if (!function.is_mutating()) return nullptr;
  {
    const std::scoped_lock lock(body_->mutex);
    if (const auto known = body_->forms.find(function.name());
        known != body_->forms.end()) {
      return known->second;
    }
  }
  std::shared_ptr<const OverloadForm> found;
  if (auto form = overload_form(function, *this)) {
    found = std::make_shared<const OverloadForm>(*std::move(form));
  }
  const std::scoped_lock lock(body_->mutex);
  return body_->forms.emplace(function.name(), std::move(found)).first->second;
}

const OpRow* OpLibrary::row(const FunctionSchema& function) const {
  if (const auto foreach = foreach_form(function, *this)) {
    return row(*foreach->each);
  }
  if (const auto derived = form(function)) {
    if (const OpRow* exact = body_->find(function.name())) return exact;
    return row(*derived->functional);
  }
  if (function.is_out()) return body_->find(function.name());
  if (const OpRow* own = body_->own_row(function)) return own;
  // aten.equal has the tag too, but returns no tensor.
  const bool makes_tensors =
      !function.returns().empty() &&
      function.returns().front().type == ArgumentType::kTensor;
  return function.has_tag("pointwise") && makes_tensors &&
                 !function.is_mutating()
             ? body_->tagged_pointwise.get()
             : nullptr;
}

Result<std::vector<std::optional<TensorMeta>>> OpLibrary::infer_results(
    const OpSchema& op) const {
  return infer(*this, op);
}

Result<std::vector<TensorMeta>> OpLibrary::infer_outputs(
    const OpSchema& op) const {
  SP_ASSIGN(Results results, infer(*this, op));
  std::vector<TensorMeta> outputs;
  for (auto& result : results) {
    if (result) outputs.push_back(*std::move(result));
  }
  return outputs;
}

bool OpLibrary::infers(const FunctionSchema& function) const {
  return shardprop::infers(*this, function);
}

Result<void> OpLibrary::check_outputs(const OpSchema& op) const {
  return check_stated(*this, op);
}

Result<IndexSpace> OpLibrary::index_space(const OpSchema& op) const {
  const OpRow* own = row(*op.function);
  if (own == nullptr && is_functionalized_write(op.name())) {
    return fail(Error{ErrorCode::kNoStrategy,
                      "`" + op.name() +
                          "` wraps an operator that writes through views or "
                          "lists, which is not planned; it can only run "
                          "replicated",
                      op.name(),
                      {},
                      "pass tensors of their own to the operator, not views or "
                      "lists of them"});
  }
  if (own == nullptr && op.function->ns() == "higher_order") {
    return fail(Error{ErrorCode::kNoStrategy,
                      "`" + op.name() +
                          "` runs graphs of its own, which are "
                          "not planned; it can only run replicated",
                      op.name(),
                      {},
                      "--rule '" + std::string(op.name()) +
                          "=batch(0)' where "
                          "the graphs treat dim 0 of all tensors alike"});
  }
  if (own == nullptr) {
    return fail(Error{ErrorCode::kNoStrategy,
                      "`" + op.name() + "` has no sharding rule",
                      op.name(),
                      {"declared as " + to_string(*op.function)},
                      "it can only run replicated; a row of your own says how "
                      "it may be sharded"});
  }
  const auto derived = form(*op.function);
  const auto foreach = foreach_form(*op.function, *this);
  // A definition of its own describes the overload, unless the functional form
  // has the same name. Then the definition describes the functional form.
  const bool has_own_row = derived != nullptr &&
                           body_->find(op.function->name()) != nullptr &&
                           derived->functional->name() != op.function->name();
  Result<IndexSpace> space = foreach ? foreach_space(*foreach, op, *this)
                             : derived != nullptr && !has_own_row
                                 ? derived_space(*this, *derived, *own, op)
                                 : bound_space(*this, *own, op);
  if (space) return space;
  return fail(std::move(space).error().at(op.name()));
}

void set_results(OpSchema& op, std::vector<std::optional<TensorMeta>> results) {
  op.outputs.clear();
  op.output_slots.clear();
  for (auto& result : results) {
    if (!result) {
      op.output_slots.push_back(OpSchema::kNotProduced);
      continue;
    }
    op.output_slots.push_back(static_cast<std::int32_t>(op.outputs.size()));
    op.outputs.push_back(*std::move(result));
  }
}

}  // namespace shardprop
