// `AsyncTensor` is the result of a collective that may still be running.
//
// Sizes and views are available immediately. The first use of the data waits
// once for all views. Dropping an AsyncTensor without a wait does not block:
// the communicator keeps the buffers until the collective completes.
//
//   AsyncTensor sum =
//       all_reduce(communicator, x, ReduceOp::kSum, group).value();
//   AsyncTensor head = sum.narrow(0, 0, 1);      // does not wait
//   Result<LocalTensor> data = head.wait();      // waits
#pragma once

#include <shardprop/collective/communicator.h>

#include <memory>

namespace shardprop {

class AsyncTensor {
 public:
  // Makes a result that is complete already.
  explicit AsyncTensor(LocalTensor result);
  AsyncTensor(LocalTensor result, std::shared_ptr<Work> work);

  const Dims& sizes() const { return result_.sizes(); }
  const Dims& strides() const { return result_.strides(); }
  DType dtype() const { return result_.dtype(); }
  int rank() const { return result_.rank(); }
  std::int64_t numel() const { return result_.numel(); }

  // Returns a view, as LocalTensor does.
  AsyncTensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  AsyncTensor transpose(int a, int b) const;
  AsyncTensor reshaped(Dims sizes) const;

  bool is_done() const;
  // Waits and returns the data. Errors: those of Work::wait().
  Result<LocalTensor> wait() const;

 private:
  LocalTensor result_;
  std::shared_ptr<Work> work_;
};

}  // namespace shardprop
