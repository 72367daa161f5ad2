// The lesson's kernels as the host finds them; the same text for both backends.

#include "kernels/attention/flash_attention_3/kernels.hpp"
#include "kernels/attention/flash_attention_3/launch/launches.hpp"

namespace tilestep::flash_attention_3::SIMT_BACKEND {
namespace {

class KernelsHere final : public Kernels {
 public:
  void explain(simt::Device& device, const Problem& problem, const Arrays<float>& arrays, int keys,
               const simt::Tape& tape) const override {
    explain_here(device, problem, arrays, keys, tape);
  }
  void run(simt::Device& device, const Problem& problem,
           const Arrays<std::uint16_t>& arrays) const override {
    run_here(device, problem, arrays);
  }
  simt::Resources resources(simt::Device& device, const Problem& problem) const override {
    return resources_here(device, problem);
  }
};

}  // namespace
}  // namespace tilestep::flash_attention_3::SIMT_BACKEND
SIMT_KERNEL_SET(flash_attention_3, KernelsHere)
