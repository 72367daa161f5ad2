#include "app/worker/sandbox.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <link.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "kernels/base/simt/error.hpp"
#include "kernels/base/workbench/precompiled.hpp"
#include "kernels/base/workbench/program.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBubblewrap = "bwrap";
constexpr const char* kLimiter = "prlimit";  // of util-linux, as is
constexpr const char* kDropper = "setpriv";
constexpr const char* kCompilerVariable = "TILESTEP_CXX";
constexpr std::chrono::seconds kTrialLimit{10};
constexpr const char* kScope = "systemd-run";
constexpr int kProcessorSeconds = 300;  // of each process
// Of all together: what they have in memory, where the system's service manager holds them to it; and what they write.
constexpr long long kMemoryBytes = 8LL << 30;
constexpr long long kWrittenBytes = 512LL << 20;
/// What brings a sandbox about, beside what runs in it.
constexpr int kStarters = 8;
/// Ids that systemd gives to services for as long as they run: no person has one.
constexpr unsigned kFirstId = 61184, kLastId = 65519;
/// Of a run in all, whatever its worker says that it is doing: a compiler has two minutes, a kernel ten seconds.
constexpr std::chrono::seconds kWholeLimit{150};
constexpr std::chrono::seconds kStartLimit{30};
/// No report of a lesson is as long.
constexpr std::size_t kLongestAnswer = std::size_t{64} << 20;

/// Files that a compiler and the dynamic loader read beside those of the system's folders.
constexpr const char* kOfEtc[] = {"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf",
                                  "/etc/ld.so.conf.d"};
/// What a root of its own could change of the machine through it.
constexpr const char* kOfProc[] = {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"};
/// Programs and libraries of the system, the same for all users.
constexpr const char* kSystem[] = {"/usr",   "/bin",    "/sbin",      "/lib",      "/lib64",
                                   "/lib32", "/libx32", "/nix/store", "/gnu/store"};

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [of_folder, of_path] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return of_folder == folder.end();
}

bool is_of_system(const fs::path& path) {
  return std::any_of(std::begin(kSystem), std::end(kSystem),
                     [&](const char* folder) { return is_below(path, folder); });
}

/// The user's PATH as far as it is in sight: the same compiler is found there, and nobody's home is named.
std::string path_of_system() {
  const char* all = std::getenv("PATH");
  std::istringstream folders(all == nullptr ? "" : all);
  std::string path;
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (is_of_system(fs::path(folder).lexically_normal())) path += folder + ":";
  }
  return path + "/usr/bin:/bin";
}

void add(std::vector<std::string>& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

/// The system's folders, as links where they are links.
void add_system(std::vector<std::string>& words) {
  std::error_code error;
  for (const char* folder : kSystem) {
    if (fs::is_symlink(folder, error)) {
      add(words, {"--symlink", fs::read_symlink(folder, error).string(), folder});
    } else if (fs::is_directory(folder, error)) {
      add(words, {"--ro-bind", folder, folder});
    }
  }
  for (const char* file : kOfEtc) {
    if (fs::exists(file, error)) add(words, {"--ro-bind", file, file});
  }
  const char* home = std::getenv("HOME");
  if (home != nullptr && is_of_system(fs::path(home).lexically_normal())) {
    add(words, {"--tmpfs", home});
  }
}

/// Libraries of this program that lie elsewhere, as those of a package manager in somebody's home: by themselves.
std::vector<std::string> own_libraries() {
  std::vector<std::string> paths;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const fs::path path = info->dlpi_name;
        if (path.is_absolute() && !is_of_system(path.lexically_normal())) {
          static_cast<std::vector<std::string>*>(found)->push_back(path.string());
        }
        return 0;
      },
      &paths);
  return paths;
}

int cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Processes and threads of all together: on each core a compiler with what it starts, or an emulator's.
int most_tasks() {
  return 16 + 8 * cores();
}

/// Addresses of each process. The compiler may take 4 GiB; an emulator reserves a stack for every thread that runs at once.
long long most_addresses() {
  return (4LL << 30) + cores() * (256LL << 20);
}

std::vector<std::string> limits() {
  return {kLimiter,
          fmt::format("--as={}", most_addresses()),
          fmt::format("--fsize={}", kWrittenBytes),
          fmt::format("--cpu={}", kProcessorSeconds),
          fmt::format("--nproc={}", most_tasks()),
          "--core=0",
          "--"};
}

bool is_root() {
  return ::geteuid() == 0;
}

/// An id that no user and no group has.
unsigned free_id() {
  const unsigned count = kLastId - kFirstId + 1, begin = static_cast<unsigned>(::getpid()) % count;
  for (unsigned i = 0; i < count; ++i) {
    const unsigned id = kFirstId + (begin + i) % count;
    if (::getpwuid(id) == nullptr && ::getgrgid(id) == nullptr) return id;
  }
  throw Error("no user id is left to run others' kernels as", ExitCode::unavailable);
}

/// What goes before a command so that the service manager limits all of its processes together; empty where none answers.
const std::vector<std::string>& scope() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all = {kScope, "--scope", "--quiet", "--collect"};
    if (!is_root()) all.emplace_back("--user");
    for (const std::string& limit :
         {fmt::format("MemoryMax={}", kMemoryBytes), std::string("MemorySwapMax=0"),
          fmt::format("TasksMax={}", most_tasks() + kStarters)}) {
      add(all, {"-p", limit});
    }
    all.emplace_back("--");
    if (workbench::find_program(kScope).empty()) return std::vector<std::string>();
    std::vector<std::string> trial = all;
    trial.emplace_back("/bin/true");
    try {
      if (workbench::run_program(trial, kTrialLimit).status == 0) return all;
    } catch (const Error&) {  // it cannot be started
    }
    return std::vector<std::string>();
  }();
  return words;
}

/// Whether this bubblewrap has an option.
bool knows(std::string_view option) {
  static const std::string help = [] {
    const std::string program = workbench::find_program(kBubblewrap);
    return program.empty() ? "" : workbench::run_program({program, "--help"}, kTrialLimit).output;
  }();
  return help.find(option) != std::string::npos;
}

SandboxStatus look() {
  if (workbench::find_program(kBubblewrap).empty()) {
    return {false, "bubblewrap is not installed (Debian: apt-get install bubblewrap)"};
  }
  if (workbench::find_program(kLimiter).empty()) {
    return {false, "prlimit is not installed (Debian: apt-get install util-linux)"};
  }
  if (is_root() && workbench::find_program(kDropper).empty()) {
    return {false, "setpriv is not installed (Debian: apt-get install util-linux)"};
  }
  try {
    std::vector<std::string> words = sandbox_prefix(fs::canonical("/proc/self/exe"));
    words.push_back("/bin/true");
    const workbench::Ran ran = workbench::run_program(words, kTrialLimit);
    if (ran.status == 0) return {true, ""};
    return {false, fmt::format("bubblewrap cannot make a sandbox here: {}",
                               ran.output.substr(0, ran.output.find('\n')))};
  } catch (const Error& error) {
    return {false, fmt::format("bubblewrap cannot make a sandbox here: {}", error.what())};
  }
}

}  // namespace

const SandboxStatus& sandbox_status() {
  static const SandboxStatus status = look();
  return status;
}

std::vector<std::string> sandbox_prefix(const fs::path& program,
                                        const std::vector<std::string>& more,
                                        const fs::path& module) {
  std::vector<std::string> words = scope();
  if (is_root()) {
    // Nobody's user may not read a program in somebody's home: it is handed over open.
    const std::string id = std::to_string(free_id());
    add(words, {"/bin/sh", "-c", "exec 9<\"$0\" 8<\"$1\" && shift && exec \"$@\"", program.string(),
                module.empty() ? "/dev/null" : module.string(), kDropper, "--reuid=" + id,
                "--regid=" + id, "--clear-groups", "--no-new-privs"});
  }
  // Of the environment nothing goes in: it may hold passwords.
  add(words, {"env", "-i", "PATH=" + path_of_system(), "HOME=/tmp", "TMPDIR=/tmp",
              "TILESTEP_CACHE=/tmp/cache", fmt::format("{}=yes", kInSandbox)});
  words.insert(words.end(), more.begin(), more.end());
  if (const char* compiler = std::getenv(kCompilerVariable);
      compiler != nullptr && is_of_system(workbench::find_program(compiler))) {
    words.push_back(fmt::format("{}={}", kCompilerVariable, compiler));
  }
  const std::string bubblewrap = workbench::find_program(kBubblewrap);
  add(words, {bubblewrap.empty() ? kBubblewrap : bubblewrap, "--unshare-all", "--unshare-user",
              "--die-with-parent", "--new-session", "--cap-drop", "ALL"});
  if (knows("--disable-userns")) add(words, {"--disable-userns"});
  add_system(words);
  add(words, {"--dev", "/dev", "--proc", "/proc"});
  std::error_code error;
  for (const char* file : kOfProc) {
    if (fs::exists(file, error)) add(words, {"--ro-bind", file, file});
  }
  if (knows("--size")) add(words, {"--size", std::to_string(kWrittenBytes)});
  add(words, {"--tmpfs", "/tmp"});
  for (const std::string& library : own_libraries()) {
    add(words, {"--ro-bind", library, library});
  }
  if (is_root()) {
    add(words, {"--perms", "0555", "--ro-bind-data", "9", program.string()});
  } else if (!is_of_system(program)) {
    add(words, {"--ro-bind", program.string(), program.string()});
  }
  if (!module.empty()) {
    if (is_root()) {
      add(words, {"--perms", "0444", "--ro-bind-data", "8", kModuleInSandbox});
    } else {
      add(words, {"--ro-bind", module.string(), kModuleInSandbox});
    }
  }
  // What holds all this is memory, and no room of anybody's.
  add(words, {"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--"});
  const auto limiting = limits();
  words.insert(words.end(), limiting.begin(), limiting.end());
  return words;
}

LabAddress sandboxed_lab(const std::string& program, bool one_run) {
  std::error_code error;
  const fs::path real = fs::canonical(program, error);
  const fs::path whole = error ? fs::path(program) : real;
  std::vector<std::string> more;
  if (one_run) more.push_back(fmt::format("{}=no", workbench::kPrecompiledVariable));
  LabAddress lab{LabAddress::Kind::command, "the sandbox", {}, sandbox_prefix(whole, more)};
  lab.arguments.push_back(whole.string());
  lab.arguments.emplace_back("worker");
  return lab;
}

namespace {

class SandboxLab final : public LabClient {
 public:
  explicit SandboxLab(const ProcessLabOptions& given) {
    ProcessLabOptions options;
    options.program = given.program;
    options.wake = given.wake;
    options.edited_deadline = given.edited_deadline;
    options.compile_deadline = given.compile_deadline;
    options.address = sandboxed_lab(given.program);
    options.command_deadline = kStartLimit;
    options.whole_deadline = kWholeLimit;
    options.longest_message = kLongestAnswer;
    lab_ = make_process_lab(std::move(options));
  }
  Ticket submit(const lab::Request& request) override {
    return lab_->submit(request_for_sandbox(request));
  }
  Ticket submit_assembly(std::size_t, const workbench::AssemblyRequest&) override {
    throw Error(
        "assembly is not made in a sandbox, which has no GPU's compiler; trust the kernel first",
        ExitCode::unavailable);
  }
  std::optional<LabUpdate> poll() override { return lab_->poll(); }
  void cancel(Ticket ticket) override { lab_->cancel(ticket); }
  bool busy() const override { return lab_->busy(); }

 private:
  std::unique_ptr<LabClient> lab_;
};

}  // namespace

std::unique_ptr<LabClient> make_sandbox_lab(const ProcessLabOptions& options) {
  return std::make_unique<SandboxLab>(options);
}

lab::Request request_for_sandbox(lab::Request request) {
  constexpr const char* kInstead = "choose CPU emulation, or trust the kernel";
  if (request.action == lab::Request::Action::bench) {
    throw Error(
        "Others' kernels run in a sandbox, which has no GPU to be timed on: go back to the "
        "original, or trust the kernel.",
        ExitCode::unavailable);
  }
  if (request.backend == "cuda") {
    throw Error(fmt::format("Others' kernels run in a sandbox, which has no GPU: {}.", kInstead),
                ExitCode::unavailable);
  }
  if (request.backend == "recorded") {
    throw Error(fmt::format("There is no recording of an edited kernel: {}.", kInstead),
                ExitCode::unavailable);
  }
  request.backend = "emulated";
  return request;
}

}  // namespace tilestep::app
