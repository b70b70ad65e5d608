// AsyncTensor: the result of a collective that may still be under way.
//
// Sizes and views are there at once; the first use of the data waits, once, for
// all views together. Dropping it without a wait blocks nobody: the
// communicator holds on to the buffers until the collective is over.
//
//   AsyncTensor sum =
//       all_reduce(communicator, x, ReduceOp::kSum, group).value();
//   AsyncTensor head = sum.narrow(0, 0, 1);      // does not wait
//   Result<LocalTensor> data = head.wait();      // does
#pragma once

#include <shardprop/collective/communicator.h>

#include <memory>

namespace shardprop {

class AsyncTensor {
 public:
  // A result that is there already.
  explicit AsyncTensor(LocalTensor result);
  AsyncTensor(LocalTensor result, std::shared_ptr<Work> work);

  const Dims& sizes() const { return result_.sizes(); }
  const Dims& strides() const { return result_.strides(); }
  DType dtype() const { return result_.dtype(); }
  int rank() const { return result_.rank(); }
  std::int64_t numel() const { return result_.numel(); }

  // Views, as LocalTensor's.
  AsyncTensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  AsyncTensor transpose(int a, int b) const;
  AsyncTensor reshaped(Dims sizes) const;

  bool is_done() const;
  // The data. Errors: those of Work::wait().
  Result<LocalTensor> wait() const;

 private:
  LocalTensor result_;
  std::shared_ptr<Work> work_;
};

}  // namespace shardprop
