// Lookups and updates by index. Over a sharded table each rank serves the
// rows it holds and leaves zeros elsewhere: the result is a plain P(sum).

#include "strategy/rule_forms.h"
#include "strategy/rules/families.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

LocalRef input(const OpSchema& op, std::string_view name) {
  return {-1, static_cast<std::int32_t>(op.tensor_arg(name).value())};
}

struct LocalIndex {
  LocalRef inside;  // bool: the rank holds the row
  LocalRef index;   // local, 0 where it does not
};

// Global indices made local to `dim` of operand `table`.
LocalIndex local_index(LocalProgram& program, LocalRef index, int table,
                       int dim) {
  const LocalRef shifted = program.op(
      "aten.sub.Scalar",
      {{"self", index}, {"other", RankScalar::input_offset(table, dim)}});
  const LocalRef low =
      program.op("aten.ge.Scalar",
                 {{"self", shifted}, {"other", Argument(std::int64_t{0})}});
  const LocalRef high = program.op(
      "aten.lt.Scalar",
      {{"self", shifted}, {"other", RankScalar::input_size(table, dim)}});
  LocalIndex local;
  local.inside =
      program.op("aten.logical_and.default", {{"self", low}, {"other", high}});
  local.index = program.op("aten.where.ScalarOther",
                           {{"condition", local.inside},
                            {"self", shifted},
                            {"other", Argument(std::int64_t{0})}});
  return local;
}

LocalRef zero_unless(LocalProgram& program, LocalRef condition,
                     LocalRef value) {
  return program.op("aten.where.ScalarOther",
                    {{"condition", condition},
                     {"self", value},
                     {"other", Argument(std::int64_t{0})}});
}

LocalRef with_trailing_dims(LocalProgram& program, LocalRef value, int count) {
  for (int i = 0; i < count; ++i) {
    value = program.op("aten.unsqueeze.default",
                       {{"self", value}, {"dim", Argument(std::int64_t{-1})}});
  }
  return value;
}

// Local indices are shifted, which negative ones do not survive.
void by_program(FactorMap& map, const DimFactors& factors) {
  for (const std::int8_t f : factors) {
    Factor& factor = map.factors[static_cast<std::size_t>(f)];
    factor.by_program = true;
    factor.nonempty = true;  // index 0 must exist
  }
}

LocalProgram embedding_program(const LocalContext& context) {
  const OpSchema& op = context.op;
  LocalProgram program;
  const LocalRef weight = input(op, "weight");
  const LocalIndex local =
      local_index(program, input(op, "indices"), weight.index, 0);
  const LocalRef rows = program.op(
      "aten.embedding.default", {{"weight", weight}, {"indices", local.index}});
  const LocalRef mask = with_trailing_dims(program, local.inside, 1);
  program.outputs = {zero_unless(program, mask, rows)};
  return program;
}

void embedding_by_program(const OpSchema& op, FactorMap& map) {
  const auto weight = op.tensor_arg("weight").value();
  const auto indices = op.tensor_arg("indices").value();
  by_program(map, map.inputs[weight].dims[0]);
  // Linear in the rows, not in their numbers.
  std::erase_if(map.carries, [&](const Carry& carry) {
    return carry.inputs[indices].is_partial();
  });
  map.flops_per_point = 0;
  map.program = embedding_program;
}

// gather and scatter: dims other than `dim` are alike where sizes agree.
struct DimwiseIndex {
  FactorMap map;
  int dim = 0;
};

DimwiseIndex dimwise_index(const OpSchema& op) {
  DimwiseIndex out;
  FactorMap& map = out.map;
  const auto self = op.tensor_arg("self").value();
  const auto index = op.tensor_arg("index").value();
  const int rank = op.inputs[self].rank();
  out.dim = rank > 0 ? wrapped_dims(op, "dim", rank).front() : 0;
  Operand of_self;
  Operand of_index;
  for (int d = 0; d < rank; ++d) {
    DimFactors table;
    DimFactors looked;
    const std::int64_t size = op.inputs[self].size(d);
    if (size != 1 && (d == out.dim || size == op.inputs[index].size(d))) {
      table.push_back(static_cast<std::int8_t>(
          map.add_factor(size, factor_letter(map.factors.size()))));
      if (d != out.dim) looked = table;
    }
    of_self.dims.push_back(std::move(table));
    of_index.dims.push_back(std::move(looked));
  }
  map.inputs.resize(op.inputs.size(), of_index);
  map.inputs[self] = of_self;
  return out;
}

LocalProgram gather_program(const LocalContext& context) {
  const OpSchema& op = context.op;
  const LocalRef self = input(op, "self");
  const int dim = wrapped_dims(op, "dim", op.inputs[0].rank()).front();
  LocalProgram program;
  const LocalIndex local =
      local_index(program, input(op, "index"), self.index, dim);
  const LocalRef values = program.op(
      "aten.gather.default",
      {{"self", self}, {"dim", op.arg("dim")}, {"index", local.index}});
  program.outputs = {zero_unless(program, local.inside, values)};
  return program;
}

Result<FactorMap> instantiate_gather(const OpSchema& op) {
  DimwiseIndex shared = dimwise_index(op);
  FactorMap& map = shared.map;
  const auto index = op.tensor_arg("index").value();
  const auto dim = static_cast<std::size_t>(shared.dim);
  if (op.inputs[0].rank() > 0 && op.inputs[index].size(shared.dim) != 1) {
    map.inputs[index].dims[dim].push_back(static_cast<std::int8_t>(
        map.add_factor(op.inputs[index].size(shared.dim), 'k')));
  }
  map.outputs.push_back(map.inputs[index]);
  map.seal();
  if (op.inputs[0].rank() > 0) {
    for (const std::int8_t f : map.inputs[0].dims[dim]) {
      map.outputs_without[0][static_cast<std::size_t>(f)] =
          Placement::partial(ReduceOp::kSum);
    }
    by_program(map, map.inputs[0].dims[dim]);
  }
  map.program = gather_program;
  return std::move(shared.map);
}

// Where each element of `dim` is the one that its row's single index names.
LocalRef hit(LocalProgram& program, const OpSchema& op, int table, int dim) {
  const int rank = op.inputs[0].rank();
  const LocalRef shifted = program.op(
      "aten.sub.Scalar", {{"self", input(op, "index")},
                          {"other", RankScalar::input_offset(table, dim)}});
  LocalRef places = program.op("aten.arange.default",
                               {{"end", RankScalar::input_size(table, dim)},
                                {"dtype", Argument(DType::kI64)}});
  places = with_trailing_dims(program, places, rank - 1 - dim);
  return program.op("aten.eq.Tensor", {{"self", shifted}, {"other", places}});
}

LocalProgram scatter_program(const LocalContext& context) {
  const OpSchema& op = context.op;
  const LocalRef self = input(op, "self");
  const int dim = wrapped_dims(op, "dim", op.inputs[0].rank()).front();
  LocalProgram program;
  const LocalRef at = hit(program, op, self.index, dim);
  program.outputs = {
      op.has_arg("value")
          ? program.op(
                "aten.where.ScalarSelf",
                {{"condition", at}, {"self", op.arg("value")}, {"other", self}})
          : program.op("aten.where.self", {{"condition", at},
                                           {"self", input(op, "src")},
                                           {"other", self}})};
  return program;
}

// Over a sharded dim, each row may name one element: then a comparison finds
// it without a scatter that would write out of bounds.
Result<FactorMap> instantiate_scatter(const OpSchema& op) {
  DimwiseIndex shared = dimwise_index(op);
  FactorMap& map = shared.map;
  const auto self = op.tensor_arg("self").value();
  const auto index = op.tensor_arg("index").value();
  map.outputs.push_back(map.inputs[self]);
  map.seal();
  if (op.inputs[self].rank() > 0) {
    const DimFactors& over =
        map.inputs[self].dims[static_cast<std::size_t>(shared.dim)];
    bool single = op.inputs[index].size(shared.dim) == 1;
    if (const auto src =
            op.has_arg("src") ? op.tensor_arg("src") : std::nullopt) {
      single = single && op.inputs[*src].shape() == op.inputs[index].shape();
    }
    // Every row must be named: a shorter index leaves rows untouched.
    for (int d = 0; d < op.inputs[self].rank(); ++d) {
      single = single && (d == shared.dim ||
                          op.inputs[index].size(d) == op.inputs[self].size(d));
    }
    for (const std::int8_t f : over) {
      map.factors[static_cast<std::size_t>(f)].by_program = true;
      if (!single) {
        map.factors[static_cast<std::size_t>(f)].blocked =
            "its rows are scattered to by several indices";
      }
    }
  }
  map.program = scatter_program;
  return std::move(shared.map);
}

// index_put with one run of indexed dims, none between them left whole.
struct IndexPut {
  std::size_t self = 0;
  std::size_t values = 0;
  int first = 0;                     // first indexed dim
  std::vector<std::size_t> indices;  // operands
};

IndexPut index_put_operands(const OpSchema& op) {
  IndexPut out;
  out.self = op.tensor_arg("self").value();
  out.values = op.tensor_arg("values").value();
  out.indices = op.tensor_list_arg("indices");
  const auto* list = std::get_if<std::vector<TensorArg>>(&op.arg("indices"));
  while (list != nullptr &&
         static_cast<std::size_t>(out.first) < list->size() &&
         (*list)[static_cast<std::size_t>(out.first)].operand ==
             TensorArg::kNone) {
    ++out.first;
  }
  return out;
}

LocalProgram index_put_program(const LocalContext& context) {
  const OpSchema& op = context.op;
  const IndexPut put = index_put_operands(op);
  LocalProgram program;
  const LocalRef index{-1, static_cast<std::int32_t>(put.indices[0])};
  const LocalIndex local =
      local_index(program, index, static_cast<int>(put.self), put.first);
  const int trailing = op.inputs[put.self].rank() - put.first - 1;
  const LocalRef mask = with_trailing_dims(program, local.inside, trailing);
  const LocalRef values =
      zero_unless(program, mask, {-1, static_cast<std::int32_t>(put.values)});
  std::vector<LocalRef> indices(static_cast<std::size_t>(put.first),
                                LocalRef{-1, TensorArg::kNone});
  indices.push_back(local.index);
  program.outputs = {
      program.op("aten.index_put.default",
                 {{"self", LocalRef{-1, static_cast<std::int32_t>(put.self)}},
                  {"indices", std::move(indices)},
                  {"values", values},
                  {"accumulate", Argument(true)}})};
  return program;
}

Result<FactorMap> instantiate_index_put(const OpSchema& op) {
  const IndexPut put = index_put_operands(op);
  const bool accumulate = op.bool_arg("accumulate").value_or(false);
  const TensorMeta& self = op.inputs[put.self];
  FactorMap map;

  // The broadcast shape of the indices, a factor per dim of it.
  int index_rank = 0;
  bool boolean = false;
  for (const std::size_t i : put.indices) {
    index_rank = std::max(index_rank, op.inputs[i].rank());
    boolean = boolean || op.inputs[i].dtype() == DType::kBool ||
              op.inputs[i].dtype() == DType::kU8;
  }
  const auto indexed = static_cast<int>(put.indices.size());
  const auto* list = std::get_if<std::vector<TensorArg>>(&op.arg("indices"));
  const bool one_run =
      list != nullptr && std::count_if(list->begin() + put.first, list->end(),
                                       [](const TensorArg& a) {
                                         return a.operand == TensorArg::kNone;
                                       }) == 0;
  const int trailing = self.rank() - put.first - indexed;
  map.inputs.resize(op.inputs.size());
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    map.inputs[i].dims.resize(static_cast<std::size_t>(op.inputs[i].rank()));
  }
  if (one_run && !boolean) {
    // Dims of values: leading whole ones, those of the index, trailing ones.
    const int values_rank = put.first + index_rank + trailing;
    const auto bind_values = [&](int dim, int factor) {
      const int own = dim - (values_rank - op.inputs[put.values].rank());
      if (own >= 0 && op.inputs[put.values].size(own) ==
                          map.factors[static_cast<std::size_t>(factor)].size) {
        map.inputs[put.values].dims[static_cast<std::size_t>(own)].push_back(
            static_cast<std::int8_t>(factor));
      }
    };
    for (int d = 0; d < self.rank(); ++d) {
      if (self.size(d) == 1) continue;
      const bool is_indexed = d >= put.first && d < put.first + indexed;
      const int factor =
          map.add_factor(self.size(d), factor_letter(map.factors.size()));
      map.inputs[put.self].dims[static_cast<std::size_t>(d)].push_back(
          static_cast<std::int8_t>(factor));
      if (!is_indexed) {
        bind_values(d < put.first ? d : d - indexed + index_rank, factor);
      } else if (indexed == 1 && accumulate) {
        by_program(map, {static_cast<std::int8_t>(factor)});
      } else {
        map.factors.back().blocked = "it is indexed";
      }
    }
    for (int d = 0; d < index_rank; ++d) {
      std::int64_t size = 1;
      for (const std::size_t i : put.indices) {
        const int own = d - (index_rank - op.inputs[i].rank());
        if (own >= 0) size = std::max(size, op.inputs[i].size(own));
      }
      if (size == 1) continue;
      const int factor =
          map.add_factor(size, factor_letter(map.factors.size()));
      if (!accumulate) {
        map.factors.back().blocked = "later indices overwrite earlier ones";
      }
      for (const std::size_t i : put.indices) {
        const int own = d - (index_rank - op.inputs[i].rank());
        if (own >= 0 && op.inputs[i].size(own) == size) {
          map.inputs[i].dims[static_cast<std::size_t>(own)].push_back(
              static_cast<std::int8_t>(factor));
        }
      }
      bind_values(put.first + d, factor);
    }
  }
  map.outputs.push_back(map.inputs[put.self]);
  map.seal();
  const Placement sum = Placement::partial(ReduceOp::kSum);
  for (std::size_t f = 0; accumulate && f < map.factors.size(); ++f) {
    if (map.outputs[0].holds(static_cast<int>(f))) continue;
    map.outputs_without[0][f] = sum;
    map.inputs_without[put.self][f] = sum;
  }
  for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
    if (!accumulate || !is_defined(kind, self.dtype())) continue;
    Carry carry;
    carry.inputs.resize(op.inputs.size());
    carry.inputs[put.self] = Placement::partial(kind);
    carry.inputs[put.values] = Placement::partial(kind);
    carry.outputs = {Placement::partial(kind)};
    map.carries.push_back(std::move(carry));
  }
  map.program = index_put_program;
  return map;
}

}  // namespace

void add_index_rules(RuleBook& book) {
  const auto add = [&](const char* name, ShardingRule rule) {
    book.add("index", name, std::move(rule));
  };
  add("aten.embedding.default",
      einsum("ve,...->...e").refine("rows()", embedding_by_program));
  add("aten.gather.default",
      custom("gather(dim)", instantiate_gather).passes({"self"}));
  add("aten.index_put.default",
      custom("index_put(indices)", instantiate_index_put));
  add("aten.scatter.src",
      custom("scatter(dim)", instantiate_scatter).passes({"self", "src"}));
  add("aten.scatter.value", custom("scatter(dim)", instantiate_scatter));
}

}  // namespace shardprop
