// The host's interface to the lesson's kernels; the same text for both backends. They are compiled in separate files.

#include "kernels/attention/decode/kernels.hpp"
#include "kernels/attention/decode/latent/kernels.hpp"
#include "kernels/attention/kv_cache/paged/kernel_set.hpp"
#include "kernels/lessons.hpp"

namespace tilestep::decode::SIMT_BACKEND {
namespace {

class KernelsHere final : public kv_cache::SIMT_BACKEND::PagedKernelsHere<Kernels> {
 public:
  void attend_latent(simt::Device& device, const paged::Problem& problem,
                     const paged::Arrays& arrays, const simt::Tape& tape) const override {
    latent::SIMT_BACKEND::attend(device, problem, arrays, tape);
  }
};

}  // namespace
}  // namespace tilestep::decode::SIMT_BACKEND
SIMT_KERNEL_SET(decode, KernelsHere)
