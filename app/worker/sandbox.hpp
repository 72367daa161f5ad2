#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/worker/lab_address.hpp"
#include "app/worker/lab_client.hpp"

/// Others' kernels run in bubblewrap (bwrap), compiler and all. Of the file system they see the programs and libraries of
/// the system (/usr, and what the loader and the compiler read of /etc), tilestep itself and a scratch folder, which alone
/// can be written; nothing of anybody's home, and no devices: a GPU is none of a sandbox's, what runs there is emulated.
/// No network, no environment but PATH, no capabilities, processes of their own that end with ours, and limits on memory,
/// processes, time and file size.
namespace tilestep::app {

/// Whether bubblewrap works here.
struct SandboxStatus {
  bool available = false;
  std::string reason;  ///< a sentence's end: why not, and what to do; empty when available
};
/// Looks once, by starting a program in it.
const SandboxStatus& sandbox_status();

/// What to put before `program arguments…` so that they run in a sandbox whose one folder that can be written is
/// `scratch`; inside it is /tmp, and the compiler's cache lies there too (TILESTEP_CACHE). `program`: the real path of
/// what is run, which stays in sight wherever it lies.
std::vector<std::string> sandbox_prefix(const std::filesystem::path& scratch,
                                        const std::filesystem::path& program);

/// A lab whose worker runs so. `program` as in ProcessLabOptions.
/// `one_run`: it compiles one kernel, for which no headers are worth precompiling.
LabAddress sandboxed_lab(const std::filesystem::path& scratch, const std::string& program,
                         bool one_run = false);

/// A lab of others' kernels: its worker runs so, in a scratch folder of its own, and what it says is taken as from any
/// worker elsewhere. Of `options` count program, `wake` and the deadlines of edited kernels. Throws Error (unavailable).
std::unique_ptr<LabClient> make_sandbox_lab(const ProcessLabOptions& options);

/// A request with others' kernel as a sandbox takes it: emulated. Throws Error that says why it cannot be asked there,
/// and what to do: times and GPUs are none of a sandbox's.
lab::Request request_for_sandbox(lab::Request request);

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
