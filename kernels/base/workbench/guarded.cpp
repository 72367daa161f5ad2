#include "kernels/base/workbench/guarded.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <new>

#include "kernels/base/simt/fault_guard.hpp"
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

/// What the guard has seen of shared memory, by line.
std::vector<lab::Diagnostic> races(const EditedModule& module) {
  std::vector<lab::Diagnostic> all;
  for (const simt::SharedRace& race : simt::FaultGuard::races()) {
    const int here = line_of({race.here, {}, 0}, module);
    const int there = line_of({race.there, {}, 0}, module);
    all.push_back({here, 0, lab::Severity::error,
                   fmt::format("{} {} {}{}, which {} {}{}; {}", race.who, race.does, race.what,
                               in_line(here), race.other, race.did, in_line(there), race.missing)});
  }
  return all;
}

void add_races(lab::Report& report, const EditedModule& module) {
  const std::vector<lab::Diagnostic> all = races(module);
  if (all.empty()) return;
  report.checks.push_back({"shared_memory", false, 0, 0, all.front().text});
  if (!report.kernel) return;
  auto& said = report.kernel->diagnostics;
  said.insert(said.begin(), all.begin(), all.end());
}

lab::Report limited(const EditedModule& module, const std::function<lab::Report()>& run,
                    const RunLimits& limits) {
  try {
    const MemoryLimit limit(limits.memory_bytes);
    const simt::FaultGuard guard(limits.deadline);
    lab::Report report = run();
    add_races(report, module);
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
    if (const auto before = races(module); !before.empty()) {  // perhaps what it comes from
      std::vector<lab::Diagnostic> all = error.diagnostics();
      all.insert(all.end(), before.begin(), before.end());
      error = {error.what(), std::move(all), error.code()};
    }
    if (fault.ends_process()) throw KernelStopped(error);
    throw error;
  }
}

}  // namespace tilestep::workbench
