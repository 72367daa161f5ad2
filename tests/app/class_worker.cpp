// A worker on a pretended GPU, which it has to share with others of its kind: what a class of them does
// can be looked at where there is no GPU. Kernels run under emulation; what is timed is a pause.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "app/worker/worker_loop.hpp"
#include "kernels/answer.hpp"
#include "kernels/base/simt/emulator/emulated_device.hpp"
#include "kernels/catalog.hpp"

using namespace tilestep;

namespace {

class PretendedGpu final : public simt::emulated::EmulatedDevice {
 public:
  PretendedGpu() : EmulatedDevice(emulated_kernels(), {}), info_(EmulatedDevice::info()) {
    info_.uuid = "GPU-of-a-class";
  }
  const simt::DeviceInfo& info() const override { return info_; }
  bool can_time() const override { return true; }
  std::vector<double> time_ms(const std::function<void()>&, const simt::TimingPlan&) override {
    tell_of_timing();
    const int pause_ms = std::atoi(std::getenv("TILESTEP_PAUSE_MS"));
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    return {static_cast<double>(pause_ms)};
  }

 private:
  simt::DeviceInfo info_;
};

}  // namespace

int main() {
  return app::worker_loop(STDIN_FILENO, STDOUT_FILENO,
                          [](const lab::Request& request, lab::Progress& progress) {
                            lab::Request untimed = request;
                            untimed.backend = "emulated";
                            lab::Report report = answer(untimed, progress);
                            PretendedGpu gpu;
                            const lab::Turn turn(gpu, progress);
                            gpu.time_ms({}, {});
                            gpu.time_ms({}, {});
                            report.turn = turn.times();
                            return report;
                          });
}
