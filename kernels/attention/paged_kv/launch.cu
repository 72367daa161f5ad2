// What the host asks of the lesson's kernels, which lie in kernels/attention/kv_cache; the same text for both backends.

#include "kernels/attention/kv_cache/paged/kernel_set.hpp"
#include "kernels/attention/paged_kv/kernels.hpp"

namespace tilestep::paged_kv::SIMT_BACKEND {
namespace {

class KernelsHere final : public kv_cache::SIMT_BACKEND::PagedKernelsHere<Kernels> {};

}  // namespace
}  // namespace tilestep::paged_kv::SIMT_BACKEND
SIMT_KERNEL_SET(paged_kv, KernelsHere)
