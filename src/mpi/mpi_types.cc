#include "mpi/mpi_types.h"

#include <shardprop/base/error.h>

#include <cmath>

namespace shardprop::mpi {
namespace {

// An MPI_User_function: inout[i] = in[i] op inout[i].
template <class T, bool kLeast>
void keep_nan(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* a = static_cast<const T*>(in);
  auto* b = static_cast<T*>(inout);
  for (int i = 0; i < *count; ++i) {
    if (std::isnan(b[i])) continue;
    if (std::isnan(a[i]) || (kLeast ? a[i] < b[i] : a[i] > b[i])) b[i] = a[i];
  }
}

template <class T, bool kLeast>
MPI_Op made() {
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(&keep_nan<T, kLeast>, 1, &op);
  return op;
}

MPI_Op logical(ReduceOp op) {
  switch (op) {
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
    case ReduceOp::kBand:
      return MPI_LAND;
    case ReduceOp::kBxor:
      return MPI_LXOR;
    default:
      return MPI_LOR;
  }
}

}  // namespace

NanOps::NanOps()
    : min_f32_(made<float, true>()),
      max_f32_(made<float, false>()),
      min_f64_(made<double, true>()),
      max_f64_(made<double, false>()) {}

NanOps::~NanOps() {
  for (MPI_Op* op : {&min_f32_, &max_f32_, &min_f64_, &max_f64_}) {
    MPI_Op_free(op);
  }
}

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return MPI_C_BOOL;
    case DType::kU8:
      return MPI_UINT8_T;
    case DType::kU16:
      return MPI_UINT16_T;
    case DType::kU32:
      return MPI_UINT32_T;
    case DType::kU64:
      return MPI_UINT64_T;
    case DType::kI8:
      return MPI_INT8_T;
    case DType::kI16:
      return MPI_INT16_T;
    case DType::kI32:
      return MPI_INT32_T;
    case DType::kI64:
      return MPI_INT64_T;
    case DType::kF32:
      return MPI_FLOAT;
    case DType::kF64:
      return MPI_DOUBLE;
    case DType::kC64:
      return MPI_C_FLOAT_COMPLEX;
    case DType::kC128:
      return MPI_C_DOUBLE_COMPLEX;
    default:
      throw InternalError("MPI has no type for " +
                          std::string(to_string(dtype)));
  }
}

MPI_Op mpi_op(ReduceOp op, DType dtype, const NanOps& nan_ops) {
  if (dtype == DType::kBool) return logical(op);
  switch (op) {
    case ReduceOp::kSum:
      return MPI_SUM;
    case ReduceOp::kProduct:
      return MPI_PROD;
    case ReduceOp::kMin:
      return is_floating(dtype) ? nan_ops.min(dtype) : MPI_MIN;
    case ReduceOp::kMax:
      return is_floating(dtype) ? nan_ops.max(dtype) : MPI_MAX;
    case ReduceOp::kBand:
      return MPI_BAND;
    case ReduceOp::kBor:
      return MPI_BOR;
    case ReduceOp::kBxor:
      return MPI_BXOR;
    case ReduceOp::kAvg:
      break;
  }
  throw InternalError("MPI has no average");
}

}  // namespace shardprop::mpi
