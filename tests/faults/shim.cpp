// A library that is loaded before all others (LD_PRELOAD) and makes calls of the C library fail, as a
// user's machine can: the program under test has no hook of its own for it.
//
// TILESTEP_FAULTS holds rules, apart by ';', of three or four words apart by ',':
//   CALL,N,WHAT[,WHERE]
// CALL   write read open close fsync rename mkdir thread new ownnew malloc mmap spawn pipe eventfd poll clock random
// N      which of these calls: 3 the third alone, 3+ all from the third on
// WHAT   a number of errno; `short` (half of it is taken); `ahead` or `back` (clocks, by 10 years); `soon` (a
//        poll ends after 20 ms at the latest); for spawn the path of a program that is started in place of
//        the one asked for
// WHERE  calls that concern a path with these words in it ("pipe:" for pipes); `in:WORD` rules hold in the
//        process whose first argument is WORD (a window and its worker share the environment), `if:PATH`
//        ones while that file is there, `aside` ones in all threads but the first. Path words stand last.
// TILESTEP_FAULTS_SEEN names a file of 24 bytes, where it is counted how many such calls came and how many
// of them failed, and for how many nanoseconds a window did not look for events at the most.
//
// Only what tilestep itself asks for fails, or the C++ library for it: a driver of the system that does not
// survive this is not under test. No C++ library here: this is loaded into programs that have none.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

enum What { kFails, kShort, kAhead, kBack, kSoon, kInstead };

struct Rule {
  char call[12] = {};
  long first = 0;
  bool on = false;  // all from the first on
  What what = kFails;
  int error = 0;
  char where[64] = {};
  char instead[128] = {};
  char only_if[128] = {};
  bool aside = false;
};

constexpr int kMostRules = 8;
constinit Rule rules[kMostRules];  // constructors of this library run after `begin`
long met[kMostRules];              // how often each was asked, in this process
int rule_count = 0;
long own_counts[3];
long* counts = own_counts;  // calls, failures, longest turn of a window

struct Range {
  unsigned long begin, end;
};
Range ours[2];  // the program and the C++ library
int range_count = 0;

int note_object(dl_phdr_info* info, size_t, void*) {
  const bool program = info->dlpi_name[0] == '\0' && range_count == 0;
  if (!program && strstr(info->dlpi_name, "libstdc++") == nullptr) return 0;
  Range range{~0UL, 0};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const unsigned long begin = info->dlpi_addr + part.p_vaddr;
    if (begin < range.begin) range.begin = begin;
    if (begin + part.p_memsz > range.end) range.end = begin + part.p_memsz;
  }
  if (range_count < 2) ours[range_count++] = range;
  return 0;
}

bool is_ours(const void* caller, int ranges) {
  const auto at = reinterpret_cast<unsigned long>(caller);
  for (int i = 0; i < range_count && i < ranges; ++i) {
    if (at >= ours[i].begin && at < ours[i].end) return true;
  }
  return false;
}

/// The first argument of this process.
bool is_process(const char* word) {
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[4096];
  const ssize_t count = read(fd, text, sizeof text - 1);
  close(fd);
  if (count <= 0) return false;
  text[count] = '\0';
  const char* argument = text + strlen(text) + 1;
  return argument < text + count && strcmp(argument, word) == 0;
}

void take_rule(char* text) {
  Rule& rule = rules[rule_count];
  char* rest = nullptr;
  const char* call = strtok_r(text, ",", &rest);
  const char* first = strtok_r(nullptr, ",", &rest);
  const char* what = strtok_r(nullptr, ",", &rest);
  const char* where = strtok_r(nullptr, ",", &rest);
  if (what == nullptr || rule_count == kMostRules) return;
  for (; where != nullptr; where = strtok_r(nullptr, ",", &rest)) {
    if (strncmp(where, "if:", 3) == 0) {
      strncpy(rule.only_if, where + 3, sizeof rule.only_if - 1);
    } else if (strcmp(where, "aside") == 0) {
      rule.aside = true;
    } else if (strncmp(where, "in:", 3) != 0) {
      break;
    } else if (!is_process(where + 3)) {
      rule = Rule();
      return;
    }
  }
  strncpy(rule.call, call, sizeof rule.call - 1);
  rule.first = atol(first);
  rule.on = strchr(first, '+') != nullptr;
  rule.error = atoi(what);
  if (strcmp(what, "short") == 0) rule.what = kShort;
  if (strcmp(what, "ahead") == 0) rule.what = kAhead;
  if (strcmp(what, "back") == 0) rule.what = kBack;
  if (strcmp(what, "soon") == 0) rule.what = kSoon;
  if (what[0] == '/') {
    rule.what = kInstead;
    strncpy(rule.instead, what, sizeof rule.instead - 1);
  }
  if (where != nullptr) strncpy(rule.where, where, sizeof rule.where - 1);
  ++rule_count;
}

__attribute__((constructor)) void begin() {
  dl_iterate_phdr(note_object, nullptr);
  const char* set = getenv("TILESTEP_FAULTS");
  if (set == nullptr) return;
  if (const char* seen = getenv("TILESTEP_FAULTS_SEEN")) {
    const int fd = open(seen, O_RDWR | O_CLOEXEC);
    void* shared =
        fd < 0 ? MAP_FAILED
               : mmap(nullptr, sizeof own_counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED) counts = static_cast<long*>(shared);
    if (fd >= 0) close(fd);
  }
  char text[1024] = {};
  strncpy(text, set, sizeof text - 1);
  char* rest = nullptr;
  for (char* one = strtok_r(text, ";", &rest); one != nullptr;
       one = strtok_r(nullptr, ";", &rest)) {
    take_rule(one);
  }
  // What a worker starts, a compiler say, need not bear with what is put before its calls.
  if (rule_count == 0 && is_process("worker")) unsetenv("LD_PRELOAD");
}

bool path_of(int fd, char* path, size_t size) {
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t count = readlink(link, path, size - 1);
  if (count < 0) return false;
  path[count] = '\0';
  return true;
}

/// The rule by which this call is to fail; none for most.
const Rule* fails(const char* call, const void* caller, int fd, const char* path, int ranges = 2) {
  for (int i = 0; i < rule_count; ++i) {
    const Rule& rule = rules[i];
    if (strcmp(rule.call, call) != 0 || !is_ours(caller, ranges)) continue;
    if (rule.aside && gettid() == getpid()) continue;
    if (rule.only_if[0] != '\0' && access(rule.only_if, F_OK) != 0) continue;
    if (rule.where[0] != '\0') {
      char named[512] = {};
      if (path == nullptr && path_of(fd, named, sizeof named)) path = named;
      if (path == nullptr || strstr(path, rule.where) == nullptr) continue;
    }
    __atomic_add_fetch(&counts[0], 1, __ATOMIC_RELAXED);
    const long nth = __atomic_add_fetch(&met[i], 1, __ATOMIC_RELAXED);
    if (nth != rule.first && !(rule.on && nth > rule.first)) continue;
    __atomic_add_fetch(&counts[1], 1, __ATOMIC_RELAXED);
    if (rule.what == kFails) errno = rule.error;
    return &rule;
  }
  return nullptr;
}

template <class F>
F* next(F*, const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

/// `new` is what the C++ library asks for as well (strings), `ownnew` and `malloc` the program alone: a driver
/// asks through the C++ library, too.
bool fails_new(const void* caller) {
  return fails("new", caller, -1, nullptr) != nullptr ||
         fails("ownnew", caller, -1, nullptr, 1) != nullptr;
}
constexpr size_t kEnormous = ~size_t{0} >> 1;

constexpr long kYears10 = 10L * 365 * 24 * 3600;

long shift_of(const Rule* rule) {
  if (rule == nullptr) return 0;
  return rule->what == kAhead ? kYears10 : rule->what == kBack ? -kYears10 : 0;
}

}  // namespace

#define CALLER __builtin_return_address(0)
#define REAL(name) static auto* const real = next(&name, #name)

extern "C" {

// ---- files -----------------------------------------------------------------------------------------

ssize_t write(int fd, const void* bytes, size_t count) {
  REAL(write);
  const Rule* rule = rule_count > 0 ? fails("write", CALLER, fd, nullptr) : nullptr;
  if (rule == nullptr) return real(fd, bytes, count);
  if (rule->what == kShort && count > 1) return real(fd, bytes, count / 2);
  return rule->what == kShort ? real(fd, bytes, count) : -1;
}

ssize_t writev(int fd, const iovec* parts, int count) {
  REAL(writev);
  if (rule_count > 0 && fails("write", CALLER, fd, nullptr) != nullptr) return -1;
  return real(fd, parts, count);
}

ssize_t read(int fd, void* bytes, size_t count) {
  REAL(read);
  const Rule* rule = rule_count > 0 ? fails("read", CALLER, fd, nullptr) : nullptr;
  if (rule == nullptr) return real(fd, bytes, count);
  return rule->what == kShort ? real(fd, bytes, count > 1 ? 1 : count) : -1;
}

int open(const char* path, int flags, ...) {
  REAL(open);
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (rule_count > 0 && fails("open", CALLER, -1, path) != nullptr) return -1;
  return real(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  REAL(open64);
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (rule_count > 0 && fails("open", CALLER, -1, path) != nullptr) return -1;
  return real(path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  REAL(fopen);
  if (rule_count > 0 && fails("open", CALLER, -1, path) != nullptr) return nullptr;
  return real(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  REAL(fopen64);
  if (rule_count > 0 && fails("open", CALLER, -1, path) != nullptr) return nullptr;
  return real(path, mode);
}

int close(int fd) {
  REAL(close);
  const bool failing = rule_count > 0 && fails("close", CALLER, fd, nullptr) != nullptr;
  const int error = errno;
  const int closed = real(fd);  // as the system does: it is closed all the same
  if (!failing) return closed;
  errno = error;
  return -1;
}

int fsync(int fd) {
  REAL(fsync);
  if (rule_count > 0 && fails("fsync", CALLER, fd, nullptr) != nullptr) return -1;
  return real(fd);
}

int rename(const char* from, const char* to) noexcept {
  REAL(rename);
  if (rule_count > 0 && fails("rename", CALLER, -1, to) != nullptr) return -1;
  return real(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  REAL(mkdir);
  if (rule_count > 0 && fails("mkdir", CALLER, -1, path) != nullptr) return -1;
  return real(path, mode);
}

// ---- memory ----------------------------------------------------------------------------------------

void* malloc(size_t bytes) {
  if (rule_count > 0 && fails("malloc", CALLER, -1, nullptr, 1) != nullptr) return nullptr;
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  if (rule_count > 0 && fails("malloc", CALLER, -1, nullptr, 1) != nullptr) return nullptr;
  return __libc_calloc(count, bytes);
}

void* realloc(void* memory, size_t bytes) {
  if (rule_count > 0 && fails("malloc", CALLER, -1, nullptr, 1) != nullptr) return nullptr;
  return __libc_realloc(memory, bytes);
}

void* mmap(void* at, size_t bytes, int access, int flags, int fd, off_t from) noexcept {
  REAL(mmap);
  if (rule_count > 0 && fails("mmap", CALLER, -1, nullptr) != nullptr) return MAP_FAILED;
  return real(at, bytes, access, flags, fd, from);
}

// `operator new` by its names. The real one throws for what no machine has, which is how one fails here.
#define TILESTEP_NEW(name, parameters, arguments, failed)                                    \
  void* name parameters {                                                                    \
    static auto* const real = reinterpret_cast<void*(*)parameters>(dlsym(RTLD_NEXT, #name)); \
    if (rule_count > 0 && fails_new(CALLER)) failed;                                         \
    return real arguments;                                                                   \
  }
TILESTEP_NEW(_Znwm, (size_t n), (n), return real(kEnormous))
TILESTEP_NEW(_Znam, (size_t n), (n), return real(kEnormous))
TILESTEP_NEW(_ZnwmSt11align_val_t, (size_t n, size_t to), (n, to), return real(kEnormous, to))
TILESTEP_NEW(_ZnamSt11align_val_t, (size_t n, size_t to), (n, to), return real(kEnormous, to))
TILESTEP_NEW(_ZnwmRKSt9nothrow_t, (size_t n, void* tag), (n, tag), return nullptr)
TILESTEP_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t n, size_t to, void* tag), (n, to, tag),
             return nullptr)

// ---- threads, processes, pipes -------------------------------------------------------------------------

int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*what)(void*),
                   void* with) noexcept {
  REAL(pthread_create);
  if (rule_count > 0 && fails("thread", CALLER, -1, nullptr) != nullptr) return errno;
  return real(thread, how, what, with);
}

int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* files,
                const posix_spawnattr_t* how, char* const* words,
                char* const* environment) noexcept {
  REAL(posix_spawn);
  const Rule* rule = rule_count > 0 ? fails("spawn", CALLER, -1, path) : nullptr;
  if (rule != nullptr && rule->what != kInstead) return errno;
  return real(pid, rule == nullptr ? path : rule->instead, files, how, words, environment);
}

int posix_spawnp(pid_t* pid, const char* path, const posix_spawn_file_actions_t* files,
                 const posix_spawnattr_t* how, char* const* words,
                 char* const* environment) noexcept {
  REAL(posix_spawnp);
  const Rule* rule = rule_count > 0 ? fails("spawn", CALLER, -1, path) : nullptr;
  if (rule != nullptr && rule->what != kInstead) return errno;
  return real(pid, rule == nullptr ? path : rule->instead, files, how, words, environment);
}

int execve(const char* path, char* const* words, char* const* environment) noexcept {
  REAL(execve);
  const Rule* rule = rule_count > 0 ? fails("spawn", CALLER, -1, path) : nullptr;
  if (rule != nullptr && rule->what != kInstead) return -1;
  return real(rule == nullptr ? path : rule->instead, words, environment);
}

int pipe2(int* ends, int flags) noexcept {
  REAL(pipe2);
  if (rule_count > 0 && fails("pipe", CALLER, -1, nullptr) != nullptr) return -1;
  return real(ends, flags);
}

int eventfd(unsigned value, int flags) noexcept {
  static auto* const real = reinterpret_cast<int (*)(unsigned, int)>(dlsym(RTLD_NEXT, "eventfd"));
  if (rule_count > 0 && fails("eventfd", CALLER, -1, nullptr) != nullptr) return -1;
  return real(value, flags);
}

int poll(pollfd* watched, nfds_t count, int timeout) {
  REAL(poll);
  const Rule* rule = rule_count > 0 ? fails("poll", CALLER, -1, nullptr) : nullptr;
  if (rule != nullptr && rule->what != kSoon) return -1;
  constexpr int kSoonMs = 20;
  return real(watched, count,
              rule == nullptr || (timeout >= 0 && timeout < kSoonMs) ? timeout : kSoonMs);
}

// ---- time and chance -----------------------------------------------------------------------------------

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  REAL(clock_gettime);
  const int error = real(clock, time);
  if (rule_count > 0) time->tv_sec += shift_of(fails("clock", CALLER, -1, nullptr));
  return error;
}

time_t time(time_t* into) noexcept {
  timespec now{};
  static auto* const real = next(&clock_gettime, "clock_gettime");
  real(CLOCK_REALTIME, &now);
  if (rule_count > 0) now.tv_sec += shift_of(fails("clock", CALLER, -1, nullptr));
  if (into != nullptr) *into = now.tv_sec;
  return now.tv_sec;
}

ssize_t getrandom(void* bytes, size_t count, unsigned flags) {
  static auto* const real =
      reinterpret_cast<ssize_t (*)(void*, size_t, unsigned)>(dlsym(RTLD_NEXT, "getrandom"));
  if (rule_count > 0 && fails("random", CALLER, -1, nullptr) != nullptr) return -1;
  return real(bytes, count, flags);
}

// ---- a window's loop -------------------------------------------------------------------------------------

// What passes from one look for events to the next is the time for which a window is deaf and does not draw.
static void note_turn(long* since, bool waits) {
  static auto* const real = next(&clock_gettime, "clock_gettime");
  timespec now{};
  real(CLOCK_MONOTONIC, &now);
  const long at = now.tv_sec * 1000000000L + now.tv_nsec;
  if (waits && *since != 0 && at - *since > counts[2]) counts[2] = at - *since;
  *since = at;
}
#define TILESTEP_TURN(name, parameters, arguments)                                           \
  void name parameters {                                                                     \
    static auto* const real = reinterpret_cast<void(*) parameters>(dlsym(RTLD_NEXT, #name)); \
    note_turn(&turn_began, true);                                                            \
    real arguments;                                                                          \
    note_turn(&turn_began, false);                                                           \
  }
static long turn_began = 0;
TILESTEP_TURN(glfwPollEvents, (), ())
TILESTEP_TURN(glfwWaitEvents, (), ())
TILESTEP_TURN(glfwWaitEventsTimeout, (double most), (most))

}  // extern "C"
