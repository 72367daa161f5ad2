// The launch of the read-only kernel; the same text for both backends.

#include <algorithm>

#include "kernels/attention/kv_cache/bench/read.cu"
#include "kernels/attention/kv_cache/paged/kernels.hpp"
#include "kernels/base/simt/launch.hpp"

namespace tilestep::kv_cache::SIMT_BACKEND {

void read(simt::Device& device, simt::Span<const std::uint8_t> k, simt::Span<const std::uint8_t> v,
          simt::Span<unsigned> sum, int blocks) {
  const auto words = static_cast<long long>(k.count / sizeof(uint4));
  const auto of = [&](simt::Span<const std::uint8_t> bytes, const char* name) {
    return simt::global(simt::Span<const uint4>{reinterpret_cast<const uint4*>(bytes.data),
                                                static_cast<std::size_t>(words)},
                        name);
  };
  const int each = std::max(blocks * device.info().multiprocessors / 2, 1);
  simt::launch(device, simt::row_of_blocks("read_all", 2 * each, kReadThreads), read_all,
               of(k, "K"), of(v, "V"), words, simt::global(sum, "sum"));
}

}  // namespace tilestep::kv_cache::SIMT_BACKEND
