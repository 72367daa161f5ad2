#include "app/worker/sandbox.hpp"

#ifdef TILESTEP_SECCOMP
#include <fmt/format.h>
#include <seccomp.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "kernels/base/simt/error.hpp"
#endif

namespace tilestep::app {

#ifdef TILESTEP_SECCOMP
namespace {

/// By name, since which of them there are is up to libseccomp's version.
constexpr const char* kGivenUp[] = {
    // A network, whatever its family.
    "socket", "socketpair",
    // Memory that no limit of a process counts.
    "memfd_create", "memfd_secret", "shmget", "shmat", "msgget", "semget", "mq_open",
    // Other processes.
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise",
    // Namespaces and file systems.
    "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "fsopen", "fsmount",
    "move_mount", "open_tree", "mount_setattr", "name_to_handle_at", "open_by_handle_at",
    "fanotify_init", "quotactl",
    // Parts of the kernel that few programs need and many faults were found in.
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "add_key", "keyctl", "request_key", "init_module", "finit_module",
    "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct"};

class Filter {
 public:
  Filter() : context_(::seccomp_init(SCMP_ACT_ALLOW)) {
    if (context_ == nullptr) fail(ENOMEM);
  }
  ~Filter() { ::seccomp_release(context_); }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  void refuse(const char* name, int error) {
    const int number = ::seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR) return;
    const int failed =
        ::seccomp_rule_add(context_, SCMP_ACT_ERRNO(static_cast<unsigned>(error)), number, 0);
    if (failed != 0 && failed != -EDOM) fail(-failed);  // not of this machine
  }
  void load() {
    if (const int failed = ::seccomp_load(context_); failed != 0) fail(-failed);
  }

 private:
  [[noreturn]] static void fail(int error) {
    throw Error(
        fmt::format("the sandbox's worker cannot give up system calls: {}", std::strerror(error)),
        ExitCode::unavailable);
  }

  scmp_filter_ctx context_;
};

}  // namespace

void give_up_system_calls() {
  if (std::getenv(kInSandbox) == nullptr) return;
  Filter filter;
  for (const char* name : kGivenUp) filter.refuse(name, EPERM);
  filter.refuse("clone3",
                ENOSYS);  // what it is asked for lies in memory; the C library has another way
  filter.load();
}

#else

void give_up_system_calls() {}

#endif

}  // namespace tilestep::app
