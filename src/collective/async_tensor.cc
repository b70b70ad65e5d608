#include <shardprop/collective/async_tensor.h>

#include "base/try.h"

#include <utility>

namespace shardprop {

AsyncTensor::AsyncTensor(LocalTensor result) : result_(std::move(result)) {}

AsyncTensor::AsyncTensor(LocalTensor result, std::shared_ptr<Work> work)
    : result_(std::move(result)), work_(std::move(work)) {}

AsyncTensor AsyncTensor::narrow(int dim, std::int64_t start,
                                std::int64_t length) const {
  return {result_.narrow(dim, start, length), work_};
}

AsyncTensor AsyncTensor::transpose(int a, int b) const {
  return {result_.transpose(a, b), work_};
}

AsyncTensor AsyncTensor::reshaped(Dims sizes) const {
  return {result_.reshaped(std::move(sizes)), work_};
}

bool AsyncTensor::is_done() const {
  return work_ == nullptr || work_->is_done();
}

Result<LocalTensor> AsyncTensor::wait() const {
  if (work_ != nullptr) SP_CHECK(work_->wait());
  return result_;
}

}  // namespace shardprop
