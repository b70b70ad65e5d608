// Converts dtypes and reductions to MPI's types and operations.
#pragma once

#include <shardprop/placement/placement.h>

#include "mpi/mpi_call.h"

namespace shardprop::mpi {

// The min and max of floats that this library defines for MPI. MPI's own may
// lose a NaN; these keep it.
class NanOps {
 public:
  NanOps();
  ~NanOps();  // before MPI is finalised
  NanOps(const NanOps&) = delete;
  NanOps& operator=(const NanOps&) = delete;

  MPI_Op min(DType dtype) const {
    return dtype == DType::kF32 ? min_f32_ : min_f64_;
  }
  MPI_Op max(DType dtype) const {
    return dtype == DType::kF32 ? max_f32_ : max_f64_;
  }

 private:
  MPI_Op min_f32_;
  MPI_Op max_f32_;
  MPI_Op min_f64_;
  MPI_Op max_f64_;
};

// Precondition of both: reduces_natively(Engine::kMpi, op, dtype).
MPI_Datatype mpi_type(DType dtype);
MPI_Op mpi_op(ReduceOp op, DType dtype, const NanOps& nan_ops);

}  // namespace shardprop::mpi
