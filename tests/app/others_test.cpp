// Others' kernels, as a capsule brings them: what they try in the sandbox, and what comes of it.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "app/worker/lab_set.hpp"
#include "app/worker/sandbox.hpp"
#include "app/worker/worker_process.hpp"
#include "kernels/base/lab/assets.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/skip.hpp"

namespace tilestep {
namespace {

namespace fs = std::filesystem;
using namespace app;
using namespace std::chrono_literals;
using tests::check_contains;
using tests::eventually;

constexpr const char* kSource = "kernels/attention/online_softmax/one_pass.cu";

/// The lesson's own kernel, and `more` after it.
lab::Request request_with(const std::string& more, const std::string& before = {}) {
  lab::Request request;
  request.lesson = "online-softmax";
  request.kernel = lab::KernelEdit{kSource, before + std::string(lab::asset(kSource)) + more};
  return request;
}

/// Code that runs when the module is loaded.
std::string at_start(const std::string& code) {
  return fmt::format("\nnamespace {{\nconst struct Bad {{\n  Bad() {{\n{}\n  }}\n}} bad;\n}}\n",
                     code);
}

std::unique_ptr<LabClient> lab_of(const std::string& program = tilestep::tests::paths::kProgram) {
  ProcessLabOptions options;
  options.program = program;
  options.edited_deadline = 2s;
  return make_labs(options, {});
}

/// The last update of the one request that was submitted.
LabUpdate answer_of(LabClient& lab) {
  std::optional<LabUpdate> last;
  REQUIRE(eventually(
      [&] {
        while (auto update = lab.poll()) {
          if (!std::holds_alternative<LabProgress>(update->what)) last = std::move(update);
        }
        return last.has_value();
      },
      60s));
  return *last;
}

lab::Report report_of(const LabUpdate& update) {
  if (const auto* failure = std::get_if<LabFailure>(&update.what)) FAIL(failure->sentence);
  return std::get<lab::Report>(update.what);
}

LabFailure failure_of(const LabUpdate& update) {
  REQUIRE(std::holds_alternative<LabFailure>(update.what));
  return std::get<LabFailure>(update.what);
}

/// A port of this machine that somebody listens on.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    ::sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::socklen_t size = sizeof any;
    REQUIRE(::bind(fd_, reinterpret_cast<::sockaddr*>(&any), sizeof any) == 0);
    REQUIRE(::listen(fd_, 4) == 0);
    REQUIRE(::getsockname(fd_, reinterpret_cast<::sockaddr*>(&any), &size) == 0);
    port_ = ntohs(any.sin_port);
  }
  ~Listener() { ::close(fd_); }
  int port() const { return port_; }
  bool called() const {
    ::pollfd asked{fd_, POLLIN, 0};
    return ::poll(&asked, 1, 0) > 0;
  }

 private:
  int fd_, port_ = 0;
};

/// A home with something in it, which is not below the folder for temporary files: that one a sandbox has anew.
class Home {
 public:
  Home() : path_(fs::current_path() / fmt::format("others-home-{}", ::getpid())) {
    fs::create_directories(path_);
    std::ofstream(path_ / "secret") << "hunter2\n";
    if (const char* was = std::getenv("HOME")) was_ = was;
    ::setenv("HOME", path_.c_str(), 1);
    ::setenv("SOME_TOKEN", "hunter2", 1);
  }
  ~Home() {
    ::setenv("HOME", was_.c_str(), 1);
    ::unsetenv("SOME_TOKEN");
    std::error_code error;
    fs::remove_all(path_, error);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  std::string was_;
};

TEST_CASE("a capsule's kernel does its work in the sandbox, and reaches nothing of its user",
          "[exercise_sandbox]") {
  if (!sandbox_status().available) return tests::skip(sandbox_status().reason);
  const Home home;
  const Listener listener;
  // Whatever succeeds ends the worker, with a number that says what it was.
  const std::string bad =
      "\n#include <arpa/inet.h>\n#include <netinet/in.h>\n#include <sys/socket.h>\n"
      "#include <cstdio>\n#include <cstdlib>\n" +
      at_start(fmt::format(R"(
    if (std::getenv("SOME_TOKEN") != nullptr) std::_Exit(41);
    if (std::fopen("{0}/secret", "r") != nullptr) std::_Exit(42);
    if (std::fopen("/etc/passwd", "r") != nullptr) std::_Exit(43);
    if (std::fopen("/usr/written", "w") != nullptr) std::_Exit(44);
    if (std::fopen("/dev/shm/written", "w") != nullptr) std::_Exit(45);
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    ::sockaddr_in to{{}};
    to.sin_family = AF_INET;
    to.sin_port = htons({1});
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<::sockaddr*>(&to), sizeof to) == 0) std::_Exit(46);
    std::FILE* file = std::fopen("{0}/written", "w");
    if (file != nullptr) std::_Exit(47);
    if (std::fopen("/tmp/written", "w") == nullptr) std::_Exit(48);  // the scratch folder
)",
                           home.path().string(), listener.port()));
  const auto lab = lab_of();
  CHECK(lab->why_no_sandbox().empty());
  lab->submit_others(request_with(bad));
  const lab::Report boxed = report_of(answer_of(*lab));
  CHECK(boxed.device.backend == "emulated");
  REQUIRE(boxed.kernel);
  CHECK(boxed.kernel->hash == lab::hash_of(request_with(bad).kernel->text));
  CHECK_FALSE(fs::exists(home.path() / "written"));
  CHECK_FALSE(fs::exists("/tmp/written"));
  CHECK_FALSE(listener.called());
  // It is the lesson's own picture: this kernel computes what the lesson's does.
  lab->submit([] {
    lab::Request own;
    own.lesson = "online-softmax";
    own.backend = "emulated";
    return own;
  }());
  const lab::Report own = report_of(answer_of(*lab));
  CHECK((boxed.trace == own.trace));
  CHECK(boxed.ok());

  // Run as the user's own, the same kernel has the first of these at once: so it was the sandbox.
  lab->submit(request_with(bad));
  check_contains(failure_of(answer_of(*lab)).sentence, "exit code 41");
}

TEST_CASE("in the sandbox a compiler shows nothing of the machine's files", "[exercise_sandbox]") {
  if (!sandbox_status().available) return tests::skip(sandbox_status().reason);
  const Home home;
  const auto lab = lab_of();
  for (const std::string& file : {std::string("/etc/passwd"), (home.path() / "secret").string()}) {
    lab->submit_others(request_with("", fmt::format("#include \"{}\"\n", file)));
    const LabFailure failure = failure_of(answer_of(*lab));
    std::string said = failure.sentence;
    for (const lab::Diagnostic& each : failure.diagnostics) said += "\n" + each.text;
    check_contains(said, "No such file");
    CHECK(said.find("root") == said.npos);
    CHECK(said.find("hunter2") == said.npos);
  }
}

/// Processes of this program, which has a name of its own.
int count_of(const fs::path& program) {
  int count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string line = tests::file_text(entry.path() / "cmdline");
    if (line.find(program.string()) != line.npos) ++count;
  }
  return count;
}

TEST_CASE("what forks forever in the sandbox is ended with all of its children",
          "[exercise_sandbox]") {
  if (!sandbox_status().available) return tests::skip(sandbox_status().reason);
  const tests::TemporaryFolder folder;
  const fs::path program = folder.path() / "tilestep-that-forks";
  fs::copy_file(tilestep::tests::paths::kProgram, program);
  const auto lab = lab_of(program);
  lab->submit_others(request_with("\n#include <unistd.h>\n" + at_start(R"(
    for (;;) {
      if (::fork() == 0) ::pause();
      ::usleep(2000);
    }
)")));
  CHECK(eventually([&] { return count_of(program) > 20; }, 30s));
  check_contains(failure_of(answer_of(*lab)).sentence,
                 "took longer than 2 seconds and was ended; an endless loop");
  CHECK(eventually([&] { return count_of(program) == 0; }, 5s));
}

TEST_CASE("whatever ends who checks ends its sandbox, and nothing stays behind",
          "[exercise_sandbox]") {
  if (!sandbox_status().available) return tests::skip(sandbox_status().reason);
  const tests::TemporaryFolder folder;
  // Of their command lines; a minute at most, should they be left.
  const std::string mark = fmt::format("60.{}99999", ::getpid());
  std::vector<std::string> words = sandbox_prefix(fs::canonical(tilestep::tests::paths::kProgram));
  const std::string script = fmt::format(
      "d=$(printf 'd/%.0s' $(seq 200)) && mkdir -p $d && touch $d/file && chmod 000 $d/file $d && "
      "setsid sleep {0} & sleep {0}",
      mark);
  words.insert(words.end(), {"/bin/sh", "-c", script});
  for (const int signal : {SIGTERM, SIGHUP, SIGKILL}) {
    CAPTURE(signal);
    const pid_t checker = ::fork();
    if (checker == 0) {
      ::signal(signal, SIG_DFL);  // the test's own would tell of it
      ::setenv("TMPDIR", folder.path().c_str(), 1);
      const WorkerProcess worker({words.front(), words}, 1024);
      for (;;) ::pause();
    }
    // A shell, its two, and bubblewrap's two.
    CHECK(eventually([&] { return count_of(mark) >= 5; }, 10s));
    ::kill(checker, signal);
    ::waitpid(checker, nullptr, 0);
    CHECK(eventually([&] { return count_of(mark) == 0; }, 5s));
    CHECK(fs::is_empty(folder.path()));
  }
}

TEST_CASE("what wants too much memory in the sandbox is ended with a sentence",
          "[exercise_sandbox]") {
  if (!sandbox_status().available) return tests::skip(sandbox_status().reason);
  const auto lab = lab_of();
  lab->submit_others(request_with("\n#include <cstdlib>\n#include <new>\n" + at_start(R"(
    if (std::malloc(std::size_t{16} << 30) == nullptr) throw std::bad_alloc();
)")));
  const std::string said = failure_of(answer_of(*lab)).sentence;
  INFO(said);
  check_contains(said, "there is not enough memory");
}

TEST_CASE("what a sandbox has not is refused before anything runs", "[exercise_sandbox]") {
  const auto lab = lab_of();
  const auto refusal = [&](const lab::Request& request) -> std::string {
    try {
      lab->submit_others(request);
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::unavailable);
      return error.what();
    }
    FAIL("it was taken");
    return {};
  };
  lab::Request request = request_with("");
  request.backend = "cuda";
  check_contains(refusal(request), "has no GPU: choose CPU emulation, or trust the kernel");
  request.backend = "auto";
  request.action = lab::Request::Action::bench;
  check_contains(refusal(request), "no GPU to be timed on");
  CHECK_FALSE(lab->busy());
  // A lab that has no sandbox takes none of it.
  const auto alone = make_inline_lab();
  CHECK_THROWS_AS(alone->submit_others(request_with("")), Error);
  CHECK_FALSE(alone->poll());
}

}  // namespace
}  // namespace tilestep
