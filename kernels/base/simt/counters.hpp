#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/base/simt/device.hpp"

/// Hardware counters for lessons: what a launch asked of the memory system, as the GPU counted it.
namespace tilestep::simt {

/// Metric names, as NVIDIA's profilers spell them (Nsight Compute, "Metrics Reference").
namespace metric {
inline constexpr const char* kLoadSectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
inline constexpr const char* kLoadRequests = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
inline constexpr const char* kStoreSectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum";
inline constexpr const char* kStoreRequests = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum";
inline constexpr const char* kDramBytesRead = "dram__bytes_read.sum";
inline constexpr const char* kDramBytesWritten = "dram__bytes_write.sum";
inline constexpr const char* kTensorPipe =
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";
inline constexpr const char* kTensorInstructions = "sm__inst_executed_pipe_tensor.sum";
inline constexpr const char* kSharedBankConflicts =
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
/// Cycles of the multiprocessors' data pipe, each of up to 128 bytes: for shared memory, and for
/// shared and global memory together.
inline constexpr const char* kSharedWavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
inline constexpr const char* kDataWavefronts = "l1tex__data_pipe_lsu_wavefronts.sum";
/// The same as a share of all cycles, in percent.
inline constexpr const char* kSharedWavefrontsPercent =
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed";
inline constexpr const char* kDataWavefrontsPercent =
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed";
}  // namespace metric

/// Requests of warps to global memory and the 32-byte sectors that they touch.
struct GlobalTraffic {
  double load_requests = 0, load_sectors = 0;
  double store_requests = 0, store_sectors = 0;
  double dram_bytes_read = 0, dram_bytes_written = 0;  ///< 0 unless asked for

  /// Sectors for each request; 0 without requests.
  double load_sectors_per_request() const {
    return load_requests > 0 ? load_sectors / load_requests : 0;
  }
  double store_sectors_per_request() const {
    return store_requests > 0 ? store_sectors / store_requests : 0;
  }
};

/// Thrown when another program reads the counters, which serve one at a time.
class CountersBusy : public Error {
 public:
  CountersBusy()
      : Error("another program is reading the GPU's hardware counters, which serve one at a time",
              ExitCode::unavailable) {}
};

/// What the hardware counted during `work`: one value for each metric. Throws Error as
/// `Device::count` does.
std::map<std::string, double> count(Device& device, const std::vector<std::string>& metrics,
                                    const std::function<void()>& work);

/// The global memory traffic of each of `works`; what goes to DRAM only if `dram` (it takes more
/// passes). Throws Error as `Device::count` does.
std::vector<GlobalTraffic> count_global_traffic(Device& device,
                                                const std::vector<std::function<void()>>& works,
                                                bool dram);

/// The global memory traffic of `work` alone, DRAM's too. The counters see what other programs do on
/// the GPU meanwhile, which only ever adds: counts until two counts agree, and takes the least. Throws
/// Error as `Device::count` does.
GlobalTraffic count_global_traffic(Device& device, const std::function<void()>& work);

}  // namespace tilestep::simt
