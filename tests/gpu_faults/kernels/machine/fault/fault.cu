// One thread that goes wrong in the ways in which kernels do.
#undef NDEBUG
#include <cassert>

#include "kernels/base/simt/simt.hpp"

namespace tilestep::fault::SIMT_BACKEND {

__global__ void misbehave(simt::Global<int> numbers, int kind) {
  if (kind == 1) numbers[std::ptrdiff_t{1} << 38] = 1;  // no address of this process
  if (kind == 2) {
    while (atomicAdd(&numbers[0], 0) == 0) {  // nobody changes it
    }
  }
  if (kind == 3) assert(numbers[0] != 0);
  numbers[0] += 1;
}

}  // namespace tilestep::fault::SIMT_BACKEND
