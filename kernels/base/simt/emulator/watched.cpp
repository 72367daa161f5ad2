#include "kernels/base/simt/emulator/watched.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tilestep::simt::emulated {

void WatchedValues::add(Watched value) {
  const std::lock_guard lock(mutex_);
  if (values_.size() < kMostWatched) {
    values_.push_back(std::move(value));
  } else {
    ++dropped_;
  }
}

std::vector<Watched> WatchedValues::sorted() const {
  const std::lock_guard lock(mutex_);
  std::vector<Watched> all = values_;
  std::stable_sort(all.begin(), all.end(), [](const Watched& a, const Watched& b) {
    return std::tie(a.block, a.thread) < std::tie(b.block, b.thread);
  });
  return all;
}

std::size_t WatchedValues::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace tilestep::simt::emulated
