#pragma once

#include "kernels/attention/kv_cache/kernels.hpp"
#include "kernels/lessons.hpp"

namespace tilestep::paged_kv {

/// Those over a cache of pages, as the lesson on decoding has them too.
class Kernels : public kv_cache::PagedKernels {};

}  // namespace tilestep::paged_kv
