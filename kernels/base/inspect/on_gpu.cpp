#include "kernels/base/inspect/on_gpu.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/workbench/compute_sanitizer.hpp"
#include "kernels/base/workbench/cuda_words.hpp"
#include "kernels/base/workbench/folders.hpp"
#include "kernels/base/workbench/program.hpp"

namespace tilestep::inspect {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTimesVariable = "TILESTEP_TIMES";
constexpr double kTolerance = 1e-3;
constexpr std::chrono::seconds kProfilerLimit{120};

// Names of Nsight Compute's ("Metrics Reference").
constexpr const char *kTime = "gpu__time_duration.sum",
                     *kLoads = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                     *kStores = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                     *kDramRead = "dram__bytes_read.sum", *kDramWritten = "dram__bytes_write.sum",
                     *kActiveLanes = "smsp__thread_inst_executed_per_inst_executed.ratio",
                     *kWarps = "sm__warps_active.avg.pct_of_peak_sustained_active",
                     *kAdd = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
                     *kMultiply = "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
                     *kFma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
                     *kAdd64 = "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum",
                     *kMultiply64 = "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum",
                     *kFma64 = "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum";

/// By the driver alone: this program may have been built without CUDA. ("CUDA Driver API", cuInit, cuDeviceGetCount)
void require_gpu() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr)
    throw Error("--backend cuda: no NVIDIA driver is installed here (libcuda.so.1 was not found)",
                ExitCode::unavailable);
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(::dlsym(driver, "cuDeviceGetCount"));
  int devices = 0;
  if (init == nullptr || count == nullptr || init(0) != 0 || count(&devices) != 0 || devices == 0)
    throw Error("--backend cuda: the NVIDIA driver sees no GPU (nvidia-smi lists them)",
                ExitCode::unavailable);
}

double number_in(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != ',') digits += c;
  }
  return std::strtod(digits.c_str(), nullptr);
}

/// The fields of a line of CSV with quotes.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

/// In the units that its column is named by.
double in_base_unit(double value, std::string_view unit) {
  if (unit == "us" || unit == "usecond") return value * 1e3;
  if (unit == "ms" || unit == "msecond") return value * 1e6;
  if (unit == "s" || unit == "second") return value * 1e9;
  if (unit == "Kbyte") return value * 1e3;
  if (unit == "Mbyte") return value * 1e6;
  if (unit == "Gbyte") return value * 1e9;
  return value;
}

fs::path compiled(const workbench::OwnFolder& folder, const fs::path& path, std::string_view text,
                  const workbench::CompileWatch& watch) {
  const workbench::Compiler nvcc = workbench::gpu_compiler();
  const fs::path source = folder.path() / path.filename(), program = folder.path() / "program";
  const fs::path own = fs::absolute(path).parent_path();
  workbench::write_whole(source, workbench::for_emulation(text, workbench::Written::timed));
  std::vector<std::string> words = {
      nvcc.program,
      "-std=c++17",
      "-arch=native",
      "-lineinfo",
      "-w",
      "-include",
      (workbench::header_folder() / "kernels/base/inspect/timed.hpp").string(),
      "-I",
      own.string(),
      source.string(),
      "-o",
      program.string()};
  if (text.find("cublas") != text.npos) words.emplace_back("-lcublas");
  const workbench::Ran ran =
      workbench::run_program(words, std::chrono::seconds(120), 0, watch.stop);
  if (ran.status != 0) {
    throw Error(fmt::format("nvcc does not compile {} for this GPU: {}", path.filename().string(),
                            lab::shown(ran.output.substr(0, 600))),
                ExitCode::check_failed);
  }
  return program;
}

/// The times that one run left, one for each launch; nothing for a launch that was refused.
std::vector<std::optional<double>> read_times(const fs::path& file, GpuRun& run) {
  std::vector<std::optional<double>> times;
  std::istringstream lines(workbench::read_whole(file));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "device") {
      words >> run.compute_capability >> run.multiprocessors;
      std::getline(words >> std::ws, run.device);
    } else if (what == "copy") {
      words >> run.copy_bytes_s;
    } else if (what == "launch") {
      double milliseconds = 0;
      times.push_back(words >> milliseconds ? std::optional(milliseconds) : std::nullopt);
    }
  }
  return times;
}

std::string tool(const char* variable, std::vector<std::string> names) {
  const char* asked = std::getenv(variable);
  if (asked != nullptr && *asked != '\0') names = {asked};
  for (const std::string& name : names) {
    if (std::string program = workbench::find_program(name); !program.empty()) return program;
  }
  return {};
}

void count(GpuRun& run, const workbench::OwnFolder& folder, const std::vector<std::string>& command,
           const workbench::CompileWatch& watch) {
  const std::string ncu = tool("TILESTEP_NCU", {"ncu", "/usr/local/cuda/bin/ncu"});
  if (ncu.empty()) {
    run.not_counted = "Nsight Compute's ncu is not here";
    return;
  }
  const fs::path file = folder.path() / "counted.csv";
  std::string metrics;
  for (const char* each : {kTime, kLoads, kStores, kDramRead, kDramWritten, kActiveLanes, kWarps,
                           kAdd, kMultiply, kFma, kAdd64, kMultiply64, kFma64})
    metrics += (metrics.empty() ? "" : ",") + std::string(each);
  std::vector<std::string> words = {ncu,           "--csv",     "--log-file",
                                    file.string(), "--metrics", metrics};
  words.insert(words.end(), command.begin(), command.end());
  const workbench::Ran ran = workbench::run_program(words, kProfilerLimit, 0, watch.stop);
  std::error_code error;
  if (fs::exists(file, error)) run.counted = read_counted(workbench::read_whole(file));
  if (run.counted.empty())
    run.not_counted =
        ran.output.find("ERR_NVGPUCTRPERM") != std::string::npos ||
                (fs::exists(file, error) &&
                 workbench::read_whole(file).find("ERR_NVGPUCTRPERM") != std::string::npos)
            ? "this user may not read the GPU's counters (NVIDIA, ERR_NVGPUCTRPERM)"
            : "ncu counted nothing";
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

/// A cell of a table by its column's name.
std::optional<double> number_of(const lab::Table& table, std::size_t row, std::string_view id) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].id != id) continue;
    const auto* value = std::get_if<double>(&table.rows[row].at(i));
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  return std::nullopt;
}

}  // namespace

bool agree(std::string_view a, std::string_view b, double tolerance) {
  const auto number_at = [](std::string_view text, double& value) -> std::size_t {
    if (text.empty() || (std::isdigit(static_cast<unsigned char>(text[0])) == 0 && text[0] != '-'))
      return 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() ? static_cast<std::size_t>(end - text.data()) : 0;
  };
  while (!a.empty() && !b.empty()) {
    double one = 0, other = 0;
    const std::size_t of_one = number_at(a, one), of_other = number_at(b, other);
    if (of_one > 0 && of_other > 0) {
      const double most = std::max({1.0, std::abs(one), std::abs(other)});
      if (!(std::abs(one - other) <= tolerance * most)) return false;
      a.remove_prefix(of_one);
      b.remove_prefix(of_other);
    } else {
      if (a[0] != b[0]) return false;
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() && b.empty();
}

std::vector<std::map<std::string, double>> read_counted(std::string_view csv) {
  std::vector<std::map<std::string, double>> launches;
  std::vector<std::string> names;
  std::istringstream lines{std::string(csv)};
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields[0] == "ID") {
      names = fields;
      continue;
    }
    if (names.empty() || fields.size() != names.size()) continue;
    std::map<std::string, std::string> of;
    for (std::size_t i = 0; i < names.size(); ++i) of[names[i]] = fields[i];
    const auto launch = static_cast<std::size_t>(number_in(of["ID"]));
    if (launch > 100'000) continue;
    if (launch >= launches.size()) launches.resize(launch + 1);
    launches[launch][of["Metric Name"]] =
        in_base_unit(number_in(of["Metric Value"]), of["Metric Unit"]);
  }
  return launches;
}

GpuRun run_on_gpu(const fs::path& path, std::string_view text,
                  const std::vector<std::string>& arguments, std::chrono::seconds limit,
                  const workbench::CompileWatch& watch) {
  require_gpu();
  const workbench::OwnFolder folder("on_gpu");
  const fs::path program = compiled(folder, path, text, watch);
  const fs::path times = folder.path() / "times.txt";
  std::vector<std::string> command = {program.string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  GpuRun run;
  for (int i = 0; i < GpuRun::kRuns; ++i) {
    std::error_code error;
    fs::remove(times, error);
    // A kernel that is loaded at its first launch would count as a part of it.
    std::vector<std::string> words = {"env", fmt::format("{}={}", kTimesVariable, times.string()),
                                      "CUDA_MODULE_LOADING=EAGER"};
    words.insert(words.end(), command.begin(), command.end());
    const workbench::Ran ran = workbench::run_program(words, limit, 0, watch.stop);
    if (ran.timed_out)
      throw Error(
          fmt::format("on the GPU the program did not end within {} seconds", limit.count()),
          ExitCode::check_failed);
    run.status = ran.status;
    run.printed = ran.output;
    if (!fs::exists(times, error)) continue;  // no launch of its own
    const auto ms = read_times(times, run);
    run.launch_ms.resize(std::max(run.launch_ms.size(), ms.size()));
    for (std::size_t launch = 0; launch < ms.size(); ++launch) {
      if (ms[launch]) run.launch_ms[launch].push_back(*ms[launch]);
    }
  }
  count(run, folder, command, watch);
  if (const std::string sanitizer = workbench::compute_sanitizer(); !sanitizer.empty()) {
    std::vector<std::string> words = {sanitizer};
    words.insert(words.end(), command.begin(), command.end());
    const workbench::Ran ran = workbench::run_program(words, kProfilerLimit, 0, watch.stop);
    constexpr std::string_view kSummary = "ERROR SUMMARY: ";
    if (const std::size_t at = ran.output.find(kSummary); at != std::string::npos)
      run.sanitizer_errors = std::atoi(ran.output.c_str() + at + kSummary.size());
  }
  return run;
}

void add_gpu_run(lab::Report& report, const GpuRun& run) {
  const lab::Table* launches = report.table("launches");
  const lab::Table* accesses = report.table("accesses");
  if (launches == nullptr || accesses == nullptr) return;
  std::map<int, double> loads, stores;
  for (std::size_t row = 0; row < accesses->rows.size(); ++row) {
    if (accesses->text(row, 3) != "global") continue;
    const double sectors = number_of(*accesses, row, "requests").value_or(0) *
                           number_of(*accesses, row, "per_request").value_or(0);
    const int launch = static_cast<int>(number_of(*accesses, row, "launch").value_or(0));
    (accesses->text(row, 4) == "store" ? stores : loads)[launch] += sectors;
  }
  lab::Table measured{
      "measured",
      fmt::format("Measured on an {}", run.device),
      {lab::whole("launch"), lab::column("kernel", "kernel"), lab::real("us", "time", "µs", 2),
       lab::real("p10", "10 %", "µs", 2), lab::real("p90", "90 %", "µs", 2),
       lab::real("gb_s", "unique bytes", "GB/s", 0),
       lab::real("of_copy", "of copy bandwidth", "%", 1),
       lab::real("gflop_s", "operations", "GFLOP/s", 0)}};
  lab::Table counted{
      "counted",
      "Traced, and counted by the GPU",
      {lab::whole("launch"), lab::column("kernel", "kernel"),
       lab::whole("loads", "sectors loaded, traced"), lab::whole("loads_counted", "counted"),
       lab::whole("stores", "sectors stored, traced"), lab::whole("stores_counted", "counted"),
       lab::whole("flop", "operations, derived", "FLOP"),
       lab::whole("flop_counted", "counted", "FLOP"),
       lab::whole("dram", "DRAM bytes, counted", "B"),
       lab::real("lanes", "active lanes, traced", "", 1),
       lab::real("lanes_counted", "counted", "", 1),
       lab::real("occupancy", "achieved occupancy", "%", 1),
       lab::real("us", "time by ncu", "µs", 2)}};
  std::size_t profiled = 0;  // refused launches have no row of ncu's
  for (std::size_t i = 0; i < launches->rows.size() && i < run.launch_ms.size(); ++i) {
    const std::vector<double>& ms = run.launch_ms[i];
    if (ms.empty()) continue;
    const int launch = static_cast<int>(i) + 1;
    const std::string kernel = launches->text(i, 1);
    const double us = 1e3 * quantile(ms, 0.5);
    const auto once = number_of(*launches, i, "once"), fp32 = number_of(*launches, i, "fp32"),
               fp64 = number_of(*launches, i, "fp64");
    measured.add({launch, kernel, us, 1e3 * quantile(ms, 0.1), 1e3 * quantile(ms, 0.9),
                  once ? lab::Cell(*once / us * 1e-3) : lab::Cell(),
                  once && run.copy_bytes_s > 0
                      ? lab::Cell(100 * *once / (us * 1e-6) / run.copy_bytes_s)
                      : lab::Cell(),
                  fp32 && fp64 ? lab::Cell((*fp32 + *fp64) / us * 1e-3) : lab::Cell()});
    if (profiled >= run.counted.size()) continue;
    const auto& of = run.counted[profiled++];
    const auto value = [&](const char* metric) {
      const auto found = of.find(metric);
      return found == of.end() ? 0.0 : found->second;
    };
    counted.add({launch, kernel, loads[launch], value(kLoads), stores[launch], value(kStores),
                 fp32 && fp64 ? lab::Cell(*fp32 + *fp64) : lab::Cell(),
                 value(kAdd) + value(kMultiply) + 2 * value(kFma) + value(kAdd64) +
                     value(kMultiply64) + 2 * value(kFma64),
                 value(kDramRead) + value(kDramWritten),
                 number_of(*launches, i, "lanes") ? lab::Cell(*number_of(*launches, i, "lanes"))
                                                  : lab::Cell(),
                 value(kActiveLanes), value(kWarps), value(kTime) * 1e-3});
  }
  if (!measured.rows.empty()) report.add(std::move(measured));
  if (!run.counted.empty()) report.add(std::move(counted));
  const auto printed = report.trace->find("printed");
  const bool same = printed != report.trace->end() && printed->is_string() &&
                    agree(printed->get<std::string>(), run.printed, kTolerance);
  report.add(lab::none_wrong("prints the same on the GPU", same ? 0 : 1,
                             fmt::format("what the program prints on an {} and under emulation, "
                                         "numbers to a thousandth",
                                         run.device)));
  report.add(lab::equal("exit status on the GPU", run.status, 0, "of its main"));
  if (run.sanitizer_errors >= 0)
    report.add(lab::none_wrong("compute-sanitizer", run.sanitizer_errors, "errors of memcheck"));
  (*report.trace)["device"] = {{"name", run.device},
                               {"multiprocessors", run.multiprocessors},
                               {"copy_gb_s", run.copy_bytes_s * 1e-9},
                               {"printed", lab::printable(run.printed)},
                               {"not_counted", run.not_counted}};
}

}  // namespace tilestep::inspect
