#include "kernels/base/simt/cuda/cupti_counters.hpp"

#if __has_include(<cupti_range_profiler.h>)
#define TILESTEP_HAS_CUPTI 1
#endif

#if defined(TILESTEP_HAS_CUPTI)
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>
#include <dlfcn.h>

#include "kernels/base/simt/counters.hpp"
#include "kernels/base/simt/cuda/cupti_library.hpp"
#endif

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

namespace tilestep::simt::cuda {

#if defined(TILESTEP_HAS_CUPTI)

/// CUPTI's functions that are used here.
struct CuptiCounters::Library {
  void* handle = nullptr;
  decltype(&cuptiProfilerInitialize) profiler_initialize = nullptr;
  decltype(&cuptiDeviceGetChipName) device_chip_name = nullptr;
  decltype(&cuptiProfilerHostInitialize) host_initialize = nullptr;
  decltype(&cuptiProfilerHostDeinitialize) host_deinitialize = nullptr;
  decltype(&cuptiProfilerHostConfigAddMetrics) host_add_metrics = nullptr;
  decltype(&cuptiProfilerHostGetConfigImageSize) host_config_size = nullptr;
  decltype(&cuptiProfilerHostGetConfigImage) host_config = nullptr;
  decltype(&cuptiProfilerHostEvaluateToGpuValues) host_evaluate = nullptr;
  decltype(&cuptiRangeProfilerEnable) enable = nullptr;
  decltype(&cuptiRangeProfilerDisable) disable = nullptr;
  decltype(&cuptiRangeProfilerSetConfig) set_config = nullptr;
  decltype(&cuptiRangeProfilerStart) start = nullptr;
  decltype(&cuptiRangeProfilerStop) stop = nullptr;
  decltype(&cuptiRangeProfilerPushRange) push_range = nullptr;
  decltype(&cuptiRangeProfilerPopRange) pop_range = nullptr;
  decltype(&cuptiRangeProfilerDecodeData) decode = nullptr;
  decltype(&cuptiRangeProfilerGetCounterDataSize) data_size = nullptr;
  decltype(&cuptiRangeProfilerCounterDataImageInitialize) data_initialize = nullptr;
  decltype(&cuptiRangeProfilerGetCounterDataInfo) data_info = nullptr;
  decltype(&cuptiRangeProfilerCounterDataGetRangeInfo) range_info = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;

  Library();

 private:
  template <class Function>
  void resolve(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function == nullptr) {
      throw Error(
          std::string("hardware counters need CUPTI 12.6 or newer; the one found lacks ") + name,
          ExitCode::unavailable);
    }
  }
};

CuptiCounters::Library::Library() : handle(open_cupti()) {
  resolve(profiler_initialize, "cuptiProfilerInitialize");
  resolve(device_chip_name, "cuptiDeviceGetChipName");
  resolve(host_initialize, "cuptiProfilerHostInitialize");
  resolve(host_deinitialize, "cuptiProfilerHostDeinitialize");
  resolve(host_add_metrics, "cuptiProfilerHostConfigAddMetrics");
  resolve(host_config_size, "cuptiProfilerHostGetConfigImageSize");
  resolve(host_config, "cuptiProfilerHostGetConfigImage");
  resolve(host_evaluate, "cuptiProfilerHostEvaluateToGpuValues");
  resolve(enable, "cuptiRangeProfilerEnable");
  resolve(disable, "cuptiRangeProfilerDisable");
  resolve(set_config, "cuptiRangeProfilerSetConfig");
  resolve(start, "cuptiRangeProfilerStart");
  resolve(stop, "cuptiRangeProfilerStop");
  resolve(push_range, "cuptiRangeProfilerPushRange");
  resolve(pop_range, "cuptiRangeProfilerPopRange");
  resolve(decode, "cuptiRangeProfilerDecodeData");
  resolve(data_size, "cuptiRangeProfilerGetCounterDataSize");
  resolve(data_initialize, "cuptiRangeProfilerCounterDataImageInitialize");
  resolve(data_info, "cuptiRangeProfilerGetCounterDataInfo");
  resolve(range_info, "cuptiRangeProfilerCounterDataGetRangeInfo");
  resolve(result_string, "cuptiGetResultString");
}

namespace {

// Every parameter block starts with its size, by which CUPTI knows the version of its caller.
#define TILESTEP_CUPTI_PARAMS(type, name) \
  type name{};                            \
  name.structSize = type##_STRUCT_SIZE

/// Turns CUPTI's answer into an Error that says what to do.
template <class Library>
void require(const Library& cupti, CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
      result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES) {
    throw Error(
        "the driver restricts hardware counters to administrators; run tilestep as root, or load "
        "the nvidia module with NVreg_RestrictProfilingToAdminUsers=0",
        ExitCode::unavailable);
  }
  if (result == CUPTI_ERROR_HARDWARE_BUSY) throw CountersBusy();
  const char* text = nullptr;
  cupti.result_string(result, &text);
  throw Error(std::string("hardware counters: ") + what + ": " +
                  (text != nullptr ? text : "unknown CUPTI error"),
              ExitCode::unavailable);
}

/// The context that the CUDA runtime uses in this thread, made if there is none yet.
CUcontext current_context() {
  if (cudaFree(nullptr) != cudaSuccess) {
    throw Error("hardware counters: CUDA has no device to count on", ExitCode::unavailable);
  }
  // The module links the runtime alone; the driver's library is loaded by it already.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  using GetCurrent = CUresult (*)(CUcontext*);
  const auto get_current =
      driver == nullptr ? nullptr : reinterpret_cast<GetCurrent>(dlsym(driver, "cuCtxGetCurrent"));
  CUcontext context = nullptr;
  if (get_current == nullptr || get_current(&context) != CUDA_SUCCESS || context == nullptr) {
    throw Error("hardware counters: the CUDA driver gives no context", ExitCode::unavailable);
  }
  return context;
}

/// The plan of which counters are read in which pass, and the sums that metrics are made of.
template <class Library>
class MetricPlan {
 public:
  MetricPlan(const Library& cupti, const std::vector<std::string>& metrics)
      : cupti_(cupti), metrics_(metrics) {
    for (const std::string& metric : metrics_) names_.push_back(metric.c_str());
    TILESTEP_CUPTI_PARAMS(CUpti_Device_GetChipName_Params, chip);
    int device = 0;
    cudaGetDevice(&device);
    chip.deviceIndex = static_cast<std::size_t>(device);
    require(cupti_, cupti_.device_chip_name(&chip), "asking for the name of the chip");
    TILESTEP_CUPTI_PARAMS(CUpti_Profiler_Host_Initialize_Params, host);
    host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    host.pChipName = chip.pChipName;
    require(cupti_, cupti_.host_initialize(&host), "preparing the metrics of this chip");
    host_ = host.pHostObject;
    try {
      make_image(chip.pChipName);
    } catch (...) {
      release();
      throw;
    }
  }
  ~MetricPlan() { release(); }
  MetricPlan(const MetricPlan&) = delete;
  MetricPlan& operator=(const MetricPlan&) = delete;

  std::vector<const char*>& names() { return names_; }
  const std::vector<std::uint8_t>& image() const { return image_; }

  /// The metrics of range `range` of a data image.
  std::map<std::string, double> values(const std::vector<std::uint8_t>& data, std::size_t range) {
    std::vector<double> numbers(names_.size(), 0.0);
    TILESTEP_CUPTI_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, evaluate);
    evaluate.pHostObject = host_;
    evaluate.pCounterDataImage = data.data();
    evaluate.counterDataImageSize = data.size();
    evaluate.rangeIndex = range;
    evaluate.ppMetricNames = names_.data();
    evaluate.numMetrics = names_.size();
    evaluate.pMetricValues = numbers.data();
    require(cupti_, cupti_.host_evaluate(&evaluate), "evaluating the metrics");
    std::map<std::string, double> named;
    for (std::size_t i = 0; i < metrics_.size(); ++i) named[metrics_[i]] = numbers[i];
    return named;
  }

 private:
  void make_image(const char* chip) {
    TILESTEP_CUPTI_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, add);
    add.pHostObject = host_;
    add.ppMetricNames = names_.data();
    add.numMetrics = names_.size();
    if (cupti_.host_add_metrics(&add) != CUPTI_SUCCESS) {
      std::string all;
      for (const std::string& metric : metrics_) all += (all.empty() ? "" : ", ") + metric;
      throw Error("hardware counters: chip " + std::string(chip) + " does not have all of " + all);
    }
    TILESTEP_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
    size.pHostObject = host_;
    require(cupti_, cupti_.host_config_size(&size), "sizing the plan of passes");
    image_.resize(size.configImageSize);
    TILESTEP_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, config);
    config.pHostObject = host_;
    config.configImageSize = image_.size();
    config.pConfigImage = image_.data();
    require(cupti_, cupti_.host_config(&config), "making the plan of passes");
  }

  void release() {
    TILESTEP_CUPTI_PARAMS(CUpti_Profiler_Host_Deinitialize_Params, end);
    end.pHostObject = host_;
    cupti_.host_deinitialize(&end);
  }

  const Library& cupti_;
  std::vector<std::string> metrics_;
  std::vector<const char*> names_;
  std::vector<std::uint8_t> image_;
  CUpti_Profiler_Host_Object* host_ = nullptr;
};

/// The profiler switched on for the current context, and off again at the end.
template <class Library>
class RangeSession {
 public:
  explicit RangeSession(const Library& cupti) : cupti_(cupti) {
    TILESTEP_CUPTI_PARAMS(CUpti_RangeProfiler_Enable_Params, enable);
    enable.ctx = current_context();
    require(cupti_, cupti_.enable(&enable), "switching the profiler on");
    profiler_ = enable.pRangeProfilerObject;
  }
  ~RangeSession() {
    TILESTEP_CUPTI_PARAMS(CUpti_RangeProfiler_Disable_Params, disable);
    disable.pRangeProfilerObject = profiler_;
    cupti_.disable(&disable);
  }
  RangeSession(const RangeSession&) = delete;
  RangeSession& operator=(const RangeSession&) = delete;

  /// Room for what `ranges` ranges will count.
  std::vector<std::uint8_t> make_data(std::vector<const char*>& metrics, std::size_t ranges) {
    TILESTEP_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params, size);
    size.pRangeProfilerObject = profiler_;
    size.pMetricNames = metrics.data();
    size.numMetrics = metrics.size();
    size.maxNumOfRanges = ranges;
    size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(ranges);
    require(cupti_, cupti_.data_size(&size), "sizing the counter data");
    std::vector<std::uint8_t> data(size.counterDataSize);
    TILESTEP_CUPTI_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, initialize);
    initialize.pRangeProfilerObject = profiler_;
    initialize.counterDataSize = data.size();
    initialize.pCounterData = data.data();
    require(cupti_, cupti_.data_initialize(&initialize), "preparing the counter data");
    return data;
  }

  /// Runs all works once a pass until every counter was read, and decodes into `data`.
  void collect(const std::vector<std::uint8_t>& plan, std::vector<std::uint8_t>& data,
               const std::vector<std::function<void()>>& works) {
    TILESTEP_CUPTI_PARAMS(CUpti_RangeProfiler_SetConfig_Params, config);
    config.pRangeProfilerObject = profiler_;
    config.configSize = plan.size();
    config.pConfig = plan.data();
    config.counterDataImageSize = data.size();
    config.pCounterDataImage = data.data();
    config.range = CUPTI_UserRange;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = works.size();
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.passIndex = 0;
    config.targetNestingLevel = 1;
    require(cupti_, cupti_.set_config(&config), "configuring the passes");
    while (!run_pass(works)) {
    }
    TILESTEP_CUPTI_PARAMS(CUpti_RangeProfiler_DecodeData_Params, decode);
    decode.pRangeProfilerObject = profiler_;
    require(cupti_, cupti_.decode(&decode), "decoding the counters");
    if (decode.numOfRangeDropped > 0) {
      throw Error("hardware counters: the profiler dropped some of the runs",
                  ExitCode::unavailable);
    }
  }

 private:
  /// True when this was the last pass.
  bool run_pass(const std::vector<std::function<void()>>& works) {
    TILESTEP_CUPTI_PARAMS(CUpti_RangeProfiler_Start_Params, start);
    start.pRangeProfilerObject = profiler_;
    start_when_free(start);
    for (std::size_t i = 0; i < works.size(); ++i) {
      const std::string name = std::to_string(i);
      TILESTEP_CUPTI_PARAMS(CUpti_RangeProfiler_PushRange_Params, push);
      push.pRangeProfilerObject = profiler_;
      push.pRangeName = name.c_str();
      require(cupti_, cupti_.push_range(&push), "opening a range");
      works[i]();
      if (cudaDeviceSynchronize() != cudaSuccess) {
        throw Error(std::string("a kernel failed while it was counted: ") +
                        cudaGetErrorString(cudaGetLastError()),
                    ExitCode::unavailable);
      }
      TILESTEP_CUPTI_PARAMS(CUpti_RangeProfiler_PopRange_Params, pop);
      pop.pRangeProfilerObject = profiler_;
      require(cupti_, cupti_.pop_range(&pop), "closing a range");
    }
    TILESTEP_CUPTI_PARAMS(CUpti_RangeProfiler_Stop_Params, stop);
    stop.pRangeProfilerObject = profiler_;
    require(cupti_, cupti_.stop(&stop), "ending a pass");
    return stop.isAllPassSubmitted != 0;
  }

  /// The counters serve one process at a time, and another one's launch is counted in milliseconds.
  void start_when_free(CUpti_RangeProfiler_Start_Params& start) {
    constexpr std::chrono::milliseconds kPause(10), kPatience(5000);
    const auto give_up = std::chrono::steady_clock::now() + kPatience;
    CUptiResult result = cupti_.start(&start);
    while (result == CUPTI_ERROR_HARDWARE_BUSY && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(kPause);
      result = cupti_.start(&start);
    }
    require(cupti_, result, "starting a pass");
  }

  const Library& cupti_;
  CUpti_RangeProfiler_Object* profiler_ = nullptr;
};

/// Which of the works the range is that stands at `range` in the data.
template <class Library>
std::size_t work_of(const Library& cupti, const std::vector<std::uint8_t>& data,
                    std::size_t range) {
  TILESTEP_CUPTI_PARAMS(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, info);
  info.pCounterDataImage = data.data();
  info.counterDataImageSize = data.size();
  info.rangeIndex = range;
  info.rangeDelimiter = "/";
  require(cupti, cupti.range_info(&info), "reading the name of a range");
  return static_cast<std::size_t>(std::stoul(info.rangeName));
}

template <class Library>
std::vector<std::map<std::string, double>> count_with(
    const Library& cupti, const std::vector<std::string>& metrics,
    const std::vector<std::function<void()>>& works) {
  current_context();  // the profiler wants one before anything else
  TILESTEP_CUPTI_PARAMS(CUpti_Profiler_Initialize_Params, initialize);
  require(cupti, cupti.profiler_initialize(&initialize), "starting the profiler");
  MetricPlan<Library> plan(cupti, metrics);
  RangeSession<Library> session(cupti);
  std::vector<std::uint8_t> data = session.make_data(plan.names(), works.size());
  session.collect(plan.image(), data, works);
  TILESTEP_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo_Params, info);
  info.pCounterDataImage = data.data();
  info.counterDataImageSize = data.size();
  require(cupti, cupti.data_info(&info), "asking how many ranges were counted");
  if (info.numTotalRanges != works.size()) {
    throw Error("hardware counters: the profiler counted " + std::to_string(info.numTotalRanges) +
                    " of " + std::to_string(works.size()) + " runs",
                ExitCode::unavailable);
  }
  std::vector<std::map<std::string, double>> counted(works.size());
  for (std::size_t range = 0; range < works.size(); ++range) {
    counted.at(work_of(cupti, data, range)) = plan.values(data, range);
  }
  return counted;
}

#undef TILESTEP_CUPTI_PARAMS

}  // namespace

std::vector<std::map<std::string, double>> CuptiCounters::count(
    const std::vector<std::string>& metrics, const std::vector<std::function<void()>>& works) {
  if (works.empty()) return {};
  if (library_ == nullptr) library_ = std::make_unique<Library>();
  return count_with(*library_, metrics, works);
}

#else

struct CuptiCounters::Library {};

std::vector<std::map<std::string, double>> CuptiCounters::count(
    const std::vector<std::string>&, const std::vector<std::function<void()>>&) {
  throw Error(
      "tilestep was built without CUPTI's headers (extras/CUPTI of the CUDA Toolkit 12.6 or "
      "newer), so it cannot read hardware counters",
      ExitCode::unavailable);
}

#endif

CuptiCounters::CuptiCounters() = default;
CuptiCounters::~CuptiCounters() = default;

CounterStatus CuptiCounters::status() {
  if (status_ == nullptr) {
    CounterStatus status;
    try {
      count({"dram__bytes_read.sum"}, {[] {}});
      status.available = true;
    } catch (const Error& error) {
      status.reason = error.what();
    }
    status_ = std::make_unique<CounterStatus>(std::move(status));
  }
  return *status_;
}

}  // namespace tilestep::simt::cuda
