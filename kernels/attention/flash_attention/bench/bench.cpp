#include "kernels/attention/flash_attention/bench/bench.hpp"

#include "kernels/base/lab/quick.hpp"

namespace tilestep::flash_attention {
namespace {

class Bench final : public ForwardBench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : ForwardBench(start, sizes), sizes_(sizes) {}

 private:
  std::vector<ForwardKernel> kernels_at(int head_dim) const override {
    std::vector<ForwardKernel> all;
    for (const Variant variant : all_of<Variant>()) {
      lab::append(all, forward_kernels(device, variant, head_dim));
    }
    return all;
  }

  /// Scores must find room, and a block a head must not take all day.
  bool is_timed(const std::string& rung, const Task& task) const override {
    if (rung == name_of(Variant::flash_1)) return task.length() <= sizes_.longest_flash_1;
    if (rung != name_of(Variant::naive)) return true;
    const double matrices =
        2.0 * kElementBytes * task.heads * task.length() * score_pitch(task.length());
    return task.length() <= sizes_.longest_stored &&
           matrices < 0.5 * static_cast<double>(device.info().memory_bytes);
  }

  std::string headliner() const override { return std::string(name_of(Variant::flash_2)); }

  const BenchSizes& sizes_;
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::flash_attention
