#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/worker/lab_address.hpp"
#include "app/worker/lab_client.hpp"

/// Others' kernels run in bubblewrap (bwrap), compiler and all. Of the file system they see the programs and libraries of
/// the system (/usr, and what the loader and the compiler read of /etc) and tilestep itself; nothing of anybody's home, and
/// no devices: a GPU is none of a sandbox's, what runs there is emulated. What they write lies in memory, in a /tmp of a
/// stated size that ends with the sandbox, so that nothing of it is ever on a disk. No network, no environment but PATH,
/// no capabilities, processes of their own that end with ours, and limits on memory, processes and time: of all
/// together where systemd runs them in a scope, else of each process, and of their number. Where root
/// checks, all of it runs as a user that nobody is: bubblewrap alone leaves much of /proc to root.
namespace tilestep::app {

/// Whether bubblewrap works here.
struct SandboxStatus {
  bool available = false;
  std::string reason;  ///< a sentence's end: why not, and what to do; empty when available
};
/// Looks once, by starting a program in it.
const SandboxStatus& sandbox_status();

/// What to put before `program arguments…` so that they run in a sandbox. `program`: the real path of what is run, which is
/// in sight there wherever it lies. `more`: for its environment, "NAME=value".
/// `module`: another file that is in sight there, as kModuleInSandbox; none if empty.
std::vector<std::string> sandbox_prefix(const std::filesystem::path& program,
                                        const std::vector<std::string>& more = {},
                                        const std::filesystem::path& module = {});
inline constexpr const char* kModuleInSandbox = "/tmp/program.so";
/// In the environment of a worker that is in a sandbox.
inline constexpr const char* kInSandbox = "TILESTEP_SANDBOXED";
/// What a worker in a sandbox does first, in its own process and so in those that it starts: it gives up what neither a
/// kernel nor a compiler needs of the system (sockets, memory that outlives its process, namespaces, other processes). It
/// does nothing elsewhere, or where this program was built without libseccomp.
void give_up_system_calls();

/// A lab whose worker runs so. `program` as in ProcessLabOptions.
/// `one_run`: it compiles one kernel, for which no headers are worth precompiling.
LabAddress sandboxed_lab(const std::string& program, bool one_run = false);

/// A lab of others' kernels: its worker runs so, and what it says is taken as from any
/// worker elsewhere. Of `options` count program, `wake` and the deadlines of edited kernels. Throws Error (unavailable).
std::unique_ptr<LabClient> make_sandbox_lab(const ProcessLabOptions& options);

/// A request with others' kernel as a sandbox takes it: emulated. Throws Error that says why it cannot be asked there,
/// and what to do: times and GPUs are none of a sandbox's.
lab::Request request_for_sandbox(lab::Request request);

}  // namespace tilestep::app
