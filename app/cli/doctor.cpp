#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "app/cli/terminal.hpp"
#include "app/window/window.hpp"
#include "app/worker/sandbox.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/base/simt/backends.hpp"
#include "kernels/base/workbench/compiler.hpp"
#include "kernels/base/workbench/compute_sanitizer.hpp"
#include "kernels/catalog.hpp"
#include "scenes/ui/fonts.hpp"

namespace tilestep::app {
namespace {

struct Finding {
  std::string id;
  bool ok = false;
  std::string what;
  std::string to_do;  ///< empty if there is nothing to do
};

Finding cuda_finding() {
  const simt::CudaStatus status = simt::cuda_status();
  if (!status.available) {
    return {"cuda", false, status.reason,
            "nothing is needed: kernels run under CPU emulation, and measured numbers come from "
            "recordings"};
  }
  const simt::DeviceInfo& device = status.device;
  return {"cuda", true,
          fmt::format("{}, compute capability {}.{}, {} SMs, {:.0f} GiB, driver {}, toolkit {}",
                      device.name, device.compute_capability / 10, device.compute_capability % 10,
                      device.multiprocessors,
                      static_cast<double>(device.memory_bytes) / (1024.0 * 1024.0 * 1024.0),
                      device.driver, device.toolkit),
          ""};
}

Finding emulator_finding() {
  const simt::DeviceInfo device = simt::make_emulated_device(emulated_kernels())->info();
  return {"emulator", true,
          fmt::format("{}, {} OS thread{}", device.name, device.multiprocessors,
                      device.multiprocessors == 1 ? "" : "s"),
          ""};
}

/// CUPTI belongs to the CUDA Toolkit; it is looked for where the system and the toolkit put it.
Finding counters_finding() {
  std::vector<std::string> names = {"libcupti.so"};
  for (const char* version : {"13", "12"}) names.push_back(fmt::format("libcupti.so.{}", version));
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) {
      names.push_back(std::string(home) + "/extras/CUPTI/lib64/libcupti.so");
      names.push_back(std::string(home) + "/lib64/libcupti.so");
    }
  }
  names.emplace_back("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so");
  names.emplace_back("/usr/local/cuda/lib64/libcupti.so");
  for (const std::string& name : names) {
    if (void* library = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
      ::dlclose(library);
      return {"counters", true, fmt::format("CUPTI can be loaded ({})", name), ""};
    }
  }
  return {"counters", false, "CUPTI, the library for hardware counters, cannot be loaded",
          "needed only for hardware counters; it comes with the CUDA Toolkit"};
}

std::vector<Finding> display_findings() {
  const DisplayStatus status = display_status();
  return {{"window", status.window,
           status.window
               ? (status.window_reason.empty() ? "a window can be opened" : status.window_reason)
               : status.window_reason,
           status.window ? "" : "use `tilestep site --out course` for the course in a browser"},
          {"pictures", status.offscreen,
           status.offscreen ? fmt::format("drawn without a display, by {}", status.offscreen_reason)
                            : status.offscreen_reason,
           status.offscreen ? "" : "install libegl1 and libegl-mesa0, or the GPU's own driver"}};
}

std::vector<Finding> font_findings() {
  std::vector<Finding> findings;
  for (const ui::FontSource& font : ui::font_sources()) {
    std::string what = font.path.empty()
                           ? fmt::format("{}, built in (SIL Open Font License 1.1)", font.family)
                           : fmt::format("{}: {}", font.family, font.path);
    if (!font.refused.empty()) what += fmt::format("; {}", font.refused);
    findings.push_back({"font", font.refused.empty(), what,
                        font.refused.empty() ? "" : "put a font there, or unset TILESTEP_FONTS"});
  }
  return findings;
}

std::vector<Finding> data_findings() {
  std::map<std::string, std::set<std::string>> days;
  std::map<std::string, int> counts;
  for (const lab::Recording* recording : lab::recordings()) {
    days[recording->bench.device.name].insert(recording->recorded_at);
    ++counts[recording->bench.device.name];
  }
  std::string devices;
  for (const auto& [name, when] : days) {
    devices += fmt::format("{}{} on {}, {}{}", devices.empty() ? "" : "; ",
                           lab::plural(counts[name], "lesson", "lessons"), name, *when.begin(),
                           when.size() > 1 ? " to " + *when.rbegin() : "");
  }
  return {{"recordings", !devices.empty(), devices.empty() ? "none built in" : devices,
           devices.empty() ? "make some with `tilestep record --out assets/recordings` on a "
                             "machine with a GPU, then rebuild"
                           : ""}};
}

Finding compiler_finding(const char* id, workbench::Compiler (*find)(), std::string_view use) {
  try {
    const workbench::Compiler compiler = find();
    return {id, true,
            fmt::format("{} compiles edited kernels {} ({})", compiler.name, use, compiler.program),
            ""};
  } catch (const Error& error) {
    const std::string_view sentence = error.what();
    const std::size_t what_to_do = sentence.find("; ");
    return {id, false, std::string(sentence.substr(0, what_to_do)),
            what_to_do == sentence.npos ? "" : std::string(sentence.substr(what_to_do + 2))};
  }
}

std::vector<Finding> compiler_findings() {
  return {compiler_finding("compiler", workbench::host_compiler, "for the emulation"),
          compiler_finding("nvcc", workbench::gpu_compiler, "for a GPU")};
}

std::vector<Finding> workbench_findings() {
  const SandboxStatus& sandbox = sandbox_status();
  const std::string sanitizer = workbench::compute_sanitizer();
  return {
      {"sandbox", sandbox.available,
       sandbox.available ? "others' kernels run in bubblewrap" : sandbox.reason,
       sandbox.available ? "" : "until that works, others' kernels run only with --trust"},
      {"sanitizer", !sanitizer.empty(),
       sanitizer.empty() ? "there is no compute-sanitizer here"
                         : fmt::format("finds faulting lines on a GPU ({})", sanitizer),
       sanitizer.empty() ? "it comes with the CUDA Toolkit; the emulation finds most lines" : ""}};
}

std::vector<Finding> findings() {
  std::vector<Finding> all = {cuda_finding(), emulator_finding(), counters_finding()};
  for (const auto& part : {compiler_findings(), workbench_findings(), display_findings(),
                           font_findings(), data_findings()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

int doctor(bool as_json) {
  nlohmann::json parts = nlohmann::json::array();
  std::string text = "tilestep " TILESTEP_VERSION "\n";
  for (const Finding& finding : findings()) {
    parts.push_back({{"id", finding.id},
                     {"ok", finding.ok},
                     {"what", finding.what},
                     {"to_do", finding.to_do.empty() ? nlohmann::json(nullptr)
                                                     : nlohmann::json(finding.to_do)}});
    constexpr std::size_t kIndent = 18;
    text += fmt::format("  {}  {:<11} {}", finding.ok ? "ok" : "— ", finding.id,
                        for_reader(finding.what, kIndent));
    if (!finding.to_do.empty()) {
      text += fmt::format("{:{}}{}", "", kIndent, for_reader("→ " + finding.to_do, kIndent));
    }
  }
  print(as_json ? json_text({{"version", TILESTEP_VERSION}, {"parts", std::move(parts)}}) : text);
  return static_cast<int>(ExitCode::good);
}

}  // namespace

void add_doctor(CLI::App& app, Invocation& invocation) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("doctor", "Report what works on this machine and how to fix the rest");
  command->add_flag("--json", *as_json, "As JSON");
  command->callback(
      [as_json, &invocation] { invocation.action = [as_json] { return doctor(*as_json); }; });
}

}  // namespace tilestep::app
