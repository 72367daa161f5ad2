#include "kernels/memory/coalescing/bench.hpp"

#include <cstring>
#include <utility>

#include "kernels/memory/coalescing/report.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/memory/coalescing/support.hpp"

using namespace tilestep;
using namespace tilestep::coalescing;
using tilestep::tests::coalescing_device;
using tilestep::tests::contains;
using tilestep::tests::error_of;

namespace {

/// Runs on the emulation and pretends to a clock that shows 1 ms for everything, and to counters
/// that see `sectors_per_request` everywhere: to run the bench's own code where there is no GPU.
class PretendingDevice final : public simt::Device {
 public:
  explicit PretendingDevice(double sectors_per_request)
      : real_(coalescing_device()), sectors_(sectors_per_request), info_(real_->info()) {
    info_.memory_bytes = 4 << 20;
    info_.multiprocessors = 2;
    info_.name = "pretended";
  }
  const simt::DeviceInfo& info() const override { return info_; }
  const simt::KernelSet& kernels(std::string_view) const override { return kernels_; }
  void* allocate(std::size_t bytes) override { return real_->allocate(bytes); }
  void release(void* memory) noexcept override { real_->release(memory); }
  void copy_in(void* to, const void* from, std::size_t n) override { real_->copy_in(to, from, n); }
  void copy_out(void* to, const void* from, std::size_t n) override {
    real_->copy_out(to, from, n);
  }
  void copy_on_device(void* to, const void* from, std::size_t n) override {
    real_->copy_on_device(to, from, n);
  }
  void fill(void* to, int byte, std::size_t n) override { real_->fill(to, byte, n); }
  void synchronize() override { real_->synchronize(); }
  bool can_time() const override { return true; }
  std::vector<double> time_ms(const std::function<void()>& work,
                              const simt::TimingPlan& plan) override {
    work();
    return std::vector<double>(static_cast<std::size_t>(plan.samples), 1.0);
  }
  simt::CounterStatus counters() override { return {true, ""}; }
  std::vector<std::map<std::string, double>> count(
      const std::vector<std::string>& metrics,
      const std::vector<std::function<void()>>& works) override {
    std::vector<std::map<std::string, double>> all;
    for (const auto& work : works) {
      work();
      std::map<std::string, double> values;
      for (const std::string& metric : metrics) {
        values[metric] = metric.find("sectors") != std::string::npos ? 64 * sectors_ : 64;
      }
      all.push_back(std::move(values));
    }
    return all;
  }
  void stop_when(std::function<bool()> asked) override { real_->stop_when(std::move(asked)); }

 private:
  /// Hands each launch on with the device that it runs on.
  class Forwarding final : public Kernels {
   public:
    explicit Forwarding(simt::Device& device)
        : device_(device), kernels_(tests::coalescing_kernels(device)) {}
    void access(simt::Device&, const PatternShape& shape, simt::Span<const unsigned char> in,
                simt::Span<unsigned char> out) const override {
      kernels_.access(device_, shape, in, out);
    }
    void access_traced(simt::Device&, const PatternShape& shape, int blocks,
                       simt::Span<const unsigned char> in, simt::Span<unsigned char> out,
                       const simt::Tape& tape) const override {
      kernels_.access_traced(device_, shape, blocks, in, out, tape);
    }
    void fill_random(simt::Device&, simt::Span<unsigned> words, unsigned seed) const override {
      kernels_.fill_random(device_, words, seed);
    }
    void copy(simt::Device&, CopyRung rung, const CopyConfig& config, simt::Span<const float> in,
              simt::Span<float> out) const override {
      kernels_.copy(device_, rung, config, in, out);
    }
    void transpose(simt::Device&, TransposeRung rung, const TransposeShape& shape,
                   simt::Span<const float> in, simt::Span<float> out) const override {
      kernels_.transpose(device_, rung, shape, in, out);
    }
    void transpose_traced(simt::Device&, TransposeRung rung, int rows, int columns,
                          simt::Span<const float> in, simt::Span<float> out,
                          const simt::Tape& tape) const override {
      kernels_.transpose_traced(device_, rung, rows, columns, in, out, tape);
    }
    void count_wrong(simt::Device&, std::int64_t rows, std::int64_t columns, unsigned seed,
                     simt::Span<const unsigned> out,
                     simt::Span<unsigned long long> wrong) const override {
      kernels_.count_wrong(device_, rows, columns, seed, out, wrong);
    }

   private:
    simt::Device& device_;
    const Kernels& kernels_;
  };

  std::unique_ptr<simt::Device> real_;
  double sectors_;
  simt::DeviceInfo info_;
  Forwarding kernels_{*real_};
};

}  // namespace

TEST_CASE("the bench of coalescing needs a device that can be timed", "[coalescing]") {
  const auto device = coalescing_device();
  lab::NoProgress progress;
  REQUIRE(contains(error_of([&] { lesson().bench(*device, progress); }), "emulation"));
}

TEST_CASE("the bench of coalescing fills its tables", "[coalescing]") {
  PretendingDevice device(4);
  lab::NoProgress progress;
  const lab::Report report = lesson().bench(device, progress);
  for (const lab::Check& check : report.checks) {
    INFO(check.id << ": " << check.detail);
    REQUIRE(check.ok == (check.id != "counted_equals_traced"));
  }
  REQUIRE(report.table("copy_ladder")->rows.size() == 4);
  REQUIRE(report.table("transpose_ladder")->rows.size() == 3);
  REQUIRE(report.table("bandwidth_by_stride")->rows.size() >= 10);
  REQUIRE(report.table("bandwidth_by_offset")->rows.size() == 32);
  REQUIRE(report.table("bandwidth_by_pattern")->rows.size() == 11 * 5 * 2);
  REQUIRE(report.table("counted_sweep")->rows.size() >= 200);
  REQUIRE(report.measurement("fraction_of_copy", "shared-tile-padded")->value > 0);
  REQUIRE(report.measurement("useful_bandwidth", "matrix-column") != nullptr);
  // At equal times stride 2 moves 3 bytes for 2 useful ones, stride 32 moves 9 for 2.
  const double copy = report.measurement("copy_bandwidth", "device")->value;
  for (const auto& row : report.table("bandwidth_by_stride")->rows) {
    const double stride = std::get<double>(row.front());
    const double expected = std::get<double>(row.back());
    if (stride == 1) REQUIRE(expected == Approx(copy));
    if (stride == 2) REQUIRE(expected == Approx(copy * 2 / 3));
    if (stride == 32) REQUIRE(expected == Approx(copy * 2 / 9));
  }
  REQUIRE(lab::to_json(report).dump().size() < 300'000);
}

TEST_CASE("points that the hardware counts differently are named", "[coalescing]") {
  PretendingDevice device(4);
  lab::NoProgress progress;
  lab::Report report;
  const auto& kernels = static_cast<const Kernels&>(device.kernels(kLessonId));
  count_sweep({device, kernels, progress, report, bench_sizes(device.info().memory_bytes)});
  const lab::Check& check = report.checks.front();
  REQUIRE_FALSE(check.ok);
  REQUIRE(check.max_error > 1);
  REQUIRE(contains(check.detail, "sequential load of 1 bytes"));

  Params p;
  p.pattern = Pattern::sequential;
  lab::Report counted = lesson().run(knob_table().settings(p), device, progress);
  REQUIRE(counted.measurement("sectors_per_request", "hardware")->value == 4);
  REQUIRE(counted.measurement("sectors_per_request", "hardware")->provenance ==
          lab::Provenance::counted);
  REQUIRE(counted.ok());
  p.pattern = Pattern::strided;
  counted = lesson().run(knob_table().settings(p), device, progress);
  REQUIRE_FALSE(counted.ok());
}

TEST_CASE("sizes of the bench follow the memory", "[coalescing]") {
  const BenchSizes large = bench_sizes(std::size_t{140} << 30);
  REQUIRE(large.copy_floats * 4 == std::size_t{2} << 30);
  REQUIRE(large.transpose_edge == 16384);
  REQUIRE(large.access_elements == std::int64_t{1} << 27);
  const BenchSizes small = bench_sizes(std::size_t{8} << 30);
  REQUIRE(small.copy_floats * 8 <= std::size_t{2} << 30);
  REQUIRE(small.access_elements * 260 <= std::int64_t{4} << 30);
}
