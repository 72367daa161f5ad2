#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/worker/lab_address.hpp"

/// Others' kernels run in bubblewrap (bwrap): no network, every file read-only but those of a scratch folder, no
/// capabilities, processes of their own that end with ours, and limits on memory, time and file size.
namespace tilestep::app {

/// Whether bubblewrap works here.
struct SandboxStatus {
  bool available = false;
  std::string reason;  ///< one sentence: why not, and what to do; empty when available
};
/// Looks once, by starting a program in it.
const SandboxStatus& sandbox_status();

/// What to put before `program arguments…` so that they run in a sandbox whose one folder that can be written is
/// `scratch`; inside it is /tmp, and the compiler's cache lies there too (TILESTEP_CACHE). `program`: the real path of what is run,
/// which stays in sight wherever it lies.
std::vector<std::string> sandbox_prefix(const std::filesystem::path& scratch,
                                        const std::filesystem::path& program);

/// A lab whose worker runs so. `program` as in ProcessLabOptions.
LabAddress sandboxed_lab(const std::filesystem::path& scratch, const std::string& program);

/// A folder for one sandbox's files, which is gone with this object.
class ScratchFolder {
 public:
  /// Throws Error (unavailable).
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tilestep::app
