#include "kernels/base/workbench/guarded.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <new>

#include "kernels/base/simt/emulator/fault_guard.hpp"
#include "kernels/base/simt/sanitizers.hpp"

namespace tilestep::workbench {
namespace {

/// Bytes of data and stacks that this process has mapped; 0 where the system does not say.
[[maybe_unused]] std::size_t bytes_of_data() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0, resident = 0, shared = 0, code = 0, library = 0, data = 0;
  if (!(statm >> all >> resident >> shared >> code >> library >> data)) return 0;
  return data * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// For as long as it lives, this process gets at most so many more bytes for data.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes) {
#if defined(TILESTEP_ASAN) || defined(TILESTEP_TSAN)
    (void)bytes;  // their shadow is larger than any limit
#else
    const std::size_t used = bytes_of_data();
    if (used == 0 || ::getrlimit(RLIMIT_DATA, &before_) != 0) return;
    rlimit limit = before_;
    limit.rlim_cur = std::min<rlim_t>(before_.rlim_cur, used + bytes);
    set_ = ::setrlimit(RLIMIT_DATA, &limit) == 0;
#endif
  }
  ~MemoryLimit() {
    if (set_) ::setrlimit(RLIMIT_DATA, &before_);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
  bool set_ = false;
};

std::string in_line(int line) {
  return line == 0 ? std::string() : fmt::format(" in line {}", line);
}

/// What the guard has seen of memory, as one sentence each.
struct Told {
  std::string check;
  lab::Diagnostic diagnostic;
};
std::vector<Told> memory_faults(const EditedModule& module) {
  std::vector<Told> all;
  for (const simt::MemoryFault& fault : simt::FaultGuard::faults()) {
    const int here = line_of({fault.here, {}, 0}, module);
    std::string text = fmt::format("{} {}{}", fault.who, fault.does, in_line(here));
    if (fault.other.empty()) {
      text += fault.why;
    } else {
      const int there = line_of({fault.there, {}, 0}, module);
      text += fmt::format(", which {} {}{}; {}", fault.other, fault.did, in_line(there), fault.why);
    }
    all.push_back({fault.check, {here, 0, lab::Severity::error, std::move(text)}});
  }
  return all;
}

void add_faults(lab::Report& report, const EditedModule& module) {
  const std::vector<Told> all = memory_faults(module);
  for (const Told& each : all) {
    const bool known = std::any_of(report.checks.begin(), report.checks.end(),
                                   [&](const lab::Check& check) { return check.id == each.check; });
    if (!known) report.checks.push_back({each.check, false, 0, 0, each.diagnostic.text});
  }
  if (!report.kernel) return;
  auto& said = report.kernel->diagnostics;
  for (std::size_t i = 0; i < all.size(); ++i) {
    said.insert(said.begin() + static_cast<std::ptrdiff_t>(i), all[i].diagnostic);
  }
}

lab::Report limited(const EditedModule& module, const std::function<lab::Report()>& run,
                    const RunLimits& limits) {
  try {
    const MemoryLimit limit(limits.memory_bytes);
    const simt::FaultGuard guard(limits.deadline);
    lab::Report report = run();
    add_faults(report, module);
    return report;
  } catch (const std::bad_alloc&) {
    throw Error(fmt::format("there is not enough memory for this run: with an edited kernel it may "
                            "take {:.3g} GB; choose smaller values",
                            static_cast<double>(limits.memory_bytes) / 1e9),
                ExitCode::unavailable);
  }
}

}  // namespace

bool ended_by_deadline(std::string_view sentence) {
  // Of a thread that was stopped, and of a run whose next launch came too late.
  return sentence.find("still runs after") != sentence.npos ||
         sentence.find("was ended: the run has taken") != sentence.npos;
}

lab::Report guarded(const EditedModule& module, const std::function<lab::Report()>& run,
                    const RunLimits& limits) {
  try {
    return limited(module, run, limits);
  } catch (const simt::KernelFault& fault) {
    lab::SourceError error = located(fault, module);
    if (const auto before = memory_faults(module); !before.empty()) {  // perhaps what it comes from
      std::vector<lab::Diagnostic> all = error.diagnostics();
      for (const Told& each : before) all.push_back(each.diagnostic);
      error = {error.what(), std::move(all), error.code()};
    }
    if (fault.ends_process()) throw KernelStopped(error);
    throw error;
  }
}

}  // namespace tilestep::workbench
