#include "io/emit/torch_graph.h"

#include "base/try.h"
#include "program/torch_collectives.h"

#include <shardprop/base/error.h>

#include <cctype>
#include <iterator>

namespace shardprop::emit {
namespace {

// Returns the name with letters, digits and underscores only, and no digit
// first.
std::string identifier(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    out += plain ? c : '_';
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) {
    out.insert(out.begin(), '_');
  }
  return out;
}

}  // namespace

TensorMeta dense(Dims shape, DType dtype) {
  auto meta = TensorMeta::contiguous(std::move(shape), dtype);
  if (!meta) throw InternalError(meta.error().message);
  return *std::move(meta);
}

TorchGraph::TorchGraph(const OpLibrary& library) : library_(library) {
  for (const char* text : torch_collectives()) {
    auto declared = FunctionSchema::parse(text);
    if (!declared) throw InternalError(declared.error().message);
    functions_.emplace(declared->name(),
                       std::make_shared<const FunctionSchema>(*declared));
  }
}

std::shared_ptr<const FunctionSchema> TorchGraph::find(
    std::string_view op) const {
  const auto [it, fresh] = functions_.try_emplace(std::string(op));
  if (fresh) it->second = library_.find(op);
  return it->second;
}

TorchId TorchGraph::value(std::string_view name, TensorMeta meta) {
  std::string own = identifier(name);
  // Names are numbered as in FX. References into the map are not kept, because
  // the map grows.
  if (!taken_.try_emplace(own, 0).second) {
    std::string numbered;
    do {
      numbered = own + "_" + std::to_string(++taken_[own]);
    } while (!taken_.try_emplace(numbered, 0).second);
    own = std::move(numbered);
  }
  values_.push_back({std::move(own), std::move(meta)});
  return TorchId(values_.size() - 1);
}

void TorchGraph::call(std::string_view op, TorchArguments args,
                      std::vector<TorchId> outputs) {
  auto function = find(op);
  if (function == nullptr) {
    throw InternalError("an operator is emitted that is not declared: " +
                        std::string(op));
  }
  const auto waiting = queue_ ? waiting_.find(*queue_) : waiting_.end();
  std::vector<TorchCall>& calls =
      waiting == waiting_.end() ? calls_ : waiting->second.back();
  calls.push_back(
      {std::move(function), std::move(args), std::move(outputs), node_, copy_});
}

void TorchGraph::stand_at_overlapped(std::size_t node, std::size_t copy,
                                     std::size_t queue) {
  stand_at(node, copy);
  queue_ = queue;
}

void TorchGraph::note_started() {
  if (queue_) waiting_[*queue_].emplace_back();
}

void TorchGraph::continue_queue(std::size_t queue) {
  const auto found = waiting_.find(queue);
  // Later calls of the queue are added to its last list.
  if (found == waiting_.end() || found->second.size() < 2) return;
  add_first(found->second);
}

void TorchGraph::finish_queue(std::size_t queue) {
  const auto found = waiting_.find(queue);
  if (found == waiting_.end()) return;
  while (!found->second.empty()) add_first(found->second);
  waiting_.erase(found);
}

void TorchGraph::add_first(std::deque<std::vector<TorchCall>>& lists) {
  std::vector<TorchCall>& first = lists.front();
  calls_.insert(calls_.end(), std::make_move_iterator(first.begin()),
                std::make_move_iterator(first.end()));
  lists.pop_front();
}

TorchId TorchGraph::op(std::string_view op, TorchArguments args,
                       TensorMeta meta) {
  const std::size_t begin = op.find('.') + 1;
  const TorchId made =
      value(op.substr(begin, op.find('.', begin) - begin), std::move(meta));
  call(op, std::move(args), {made});
  return made;
}

Result<TorchId> TorchGraph::op(std::string_view name, TorchArguments args) {
  SP_ASSIGN(auto results, infer(name, args));
  if (results.size() != 1 || !results[0]) {
    throw InternalError("not one tensor is returned by " + std::string(name));
  }
  return op(name, std::move(args), *std::move(results[0]));
}

Result<std::vector<std::optional<TensorMeta>>> TorchGraph::infer(
    std::string_view op, const TorchArguments& args) const {
  const auto function = find(op);
  if (function == nullptr) {
    return fail(ErrorCode::kUnknownOperator,
                "`" + std::string(op) + "` is not declared");
  }
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> inputs;
  const auto tensor = [&](TorchId id) -> TensorArg {
    if (!id.valid()) return {};
    inputs.push_back(meta(id));
    return {static_cast<std::int32_t>(inputs.size() - 1)};
  };
  for (const auto& [name, value] : args) {
    if (const auto* own = std::get_if<Argument>(&value)) {
      given.push_back({name, *own});
    } else if (const auto* id = std::get_if<TorchId>(&value)) {
      given.push_back({name, id->valid() ? Argument(tensor(*id)) : NoneArg{}});
    } else {
      std::vector<TensorArg> list;
      for (const TorchId element : std::get<std::vector<TorchId>>(value)) {
        list.push_back(tensor(element));
      }
      given.push_back({name, std::move(list)});
    }
  }
  SP_ASSIGN(const OpSchema schema,
            make_op_schema(function, std::move(given), std::move(inputs)));
  return library_.infer_results(schema);
}

}  // namespace shardprop::emit
