#include <nlohmann/json.hpp>
#include <thread>

#include "app/cli/bench_parts.hpp"
#include "kernels/base/simt/bench.hpp"

namespace tilestep::app {

BenchPart bench_emulator() {
  BenchPart part;
  part.table = {"emulator",
                "CPU emulation on this machine, best of several runs",
                {{"id", "bench", "", -1},
                 {"value", "rate", "", 2},
                 {"unit", "unit", "", -1},
                 {"what", "what ran", "", -1}},
                {}};
  nlohmann::json rates = nlohmann::json::array();
  for (const simt::EmulatorRate& rate : simt::measure_emulator()) {
    part.table.rows.push_back({rate.id, rate.value, rate.unit, rate.what});
    rates.push_back(
        {{"id", rate.id}, {"what", rate.what}, {"value", rate.value}, {"unit", rate.unit}});
  }
  part.json = {{"os_threads", std::thread::hardware_concurrency()}, {"rates", std::move(rates)}};
  return part;
}

}  // namespace tilestep::app
