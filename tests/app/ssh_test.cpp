// Labs over ssh, with a real sshd that listens on loopback for the length of a test.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>

#include "app/worker/ask.hpp"
#include "kernels/answer.hpp"
#include "kernels/catalog.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/skip.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

constexpr const char* kServer = "/usr/sbin/sshd";

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

void make_key(const fs::path& file) {
  Child keygen({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file.string()});
  REQUIRE(keygen.finish(30s) == 0);
}

/// A server that takes one key, and our user's name.
class Server {
 public:
  Server() : port_(free_port()) {
    make_key(file("host_key"));
    make_key(file("key"));
    make_key(file("other_key"));
    fs::copy_file(file("key.pub"), file("authorized_keys"));
    fs::create_symlink(tilestep::tests::paths::kProgram, file("tilestep"));
    std::ofstream(file("sshd_config"))
        << "Port " << port_ << "\nListenAddress 127.0.0.1\nHostKey " << file("host_key")
        << "\nAuthorizedKeysFile " << file("authorized_keys") << "\nPidFile " << file("pid")
        << "\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication "
           "no\n"
           "PermitRootLogin yes\n";
    if (::geteuid() == 0) {  // where it lets go of its rights
      std::error_code there;
      fs::create_directories("/run/sshd", there);
    }
    start();
  }
  ~Server() { ::unsetenv("TILESTEP_SSH"); }

  void start() {
    server_ = std::make_unique<Child>(
        std::vector<std::string>{kServer, "-D", "-e", "-f", file("sshd_config").string()});
    REQUIRE(eventually([&] { return fs::exists(file("pid")); }));
  }
  void stop() {
    server_.reset();
    fs::remove(file("pid"));
  }
  /// Those that serve a connection.
  std::vector<pid_t> sessions() const { return children_of(server_->pid()); }

  LabAddress lab(const std::string& key = "key", const std::string& program = "tilestep") const {
    ::setenv("TILESTEP_SSH",
             ("ssh -F /dev/null -p " + std::to_string(port_) + " -i '" + file(key).string() +
              "' -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new -o LogLevel=ERROR "
              "-o UserKnownHostsFile='" +
              file("known_hosts").string() + "'")
                 .c_str(),
             1);
    const ::passwd* user = ::getpwuid(::geteuid());
    REQUIRE(user != nullptr);
    return parse_lab(std::string("ssh:") + user->pw_name + "@127.0.0.1:" + file(program).string());
  }

 private:
  fs::path file(const std::string& name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
  int port_;
  std::unique_ptr<Child> server_;
};

lab::Request ssh_request(std::string lesson = "online-softmax") {
  lab::Request request;
  request.lesson = std::move(lesson);
  request.backend = "emulated";
  return request;
}

std::string failure_of(const LabAddress& address) {
  lab::NoProgress progress;
  try {
    ask(make_lab(address, tilestep::tests::paths::kProgram).get(), ssh_request(), progress);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::unavailable);
    return error.what();
  }
  return "";
}

bool has_server() {
  if (!fs::exists(kServer) || !has_program("ssh") || !has_program("ssh-keygen")) {
    skip("there is no sshd here (openssh-server)");
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("every lesson over ssh gives what it gives here", "[ssh]") {
  if (!has_server()) return;
  const Server server;
  const LabAddress address = server.lab();
  lab::NoProgress progress;
  {
    const auto there = make_lab(address, tilestep::tests::paths::kProgram);
    for (const lab::Lesson* lesson : lessons()) {
      const lab::Request request = ssh_request(lesson->info().id);
      CAPTURE(request.lesson);
      const lab::Report far = ask(there.get(), request, progress);
      CHECK(lab::to_json(far) == lab::to_json(answer(request, progress)));
    }
    CHECK(server.sessions().size() == 1);  // one connection for all
  }
  CHECK(eventually([&] { return server.sessions().empty(); }));
}

#ifdef TILESTEP_WHOLE_PROGRAM
TEST_CASE("the command line runs a lesson over ssh", "[ssh]") {
  if (!has_server()) return;
  const Server server;
  const std::vector<std::string> run = {"run", "online-softmax", "--backend", "emulated", "--json"};
  std::vector<std::string> far = run;
  far.insert(far.end(), {"--lab", server.lab().text});
  const Outcome there = run_tilestep(far), here = run_tilestep(run);
  CHECK(there.code == 0);
  CHECK(there.err == here.err);
  CHECK(there.json() == here.json());
}
#endif

TEST_CASE("what stands in the way to a lab over ssh is said", "[ssh]") {
  if (!has_server()) return;
  Server server;
  check_contains(failure_of(server.lab("other_key")), "Permission denied (publickey)");
  check_contains(failure_of(server.lab("other_key")), "must work in a terminal without a prompt");
  const std::string missing = failure_of(server.lab("key", "no-tilestep"));
  check_contains(missing, "ssh ended with exit code 127");
  check_contains(missing, "Install tilestep there, or name its path");
  server.stop();
  check_contains(failure_of(server.lab()), "Connection refused");
}

TEST_CASE("a line that drops in a run is said, and the next run connects again", "[ssh]") {
  if (!has_server()) return;
  const Server server;
  ProcessLabOptions options;
  options.address = server.lab();
  const auto lab = make_process_lab(options);
  lab::Request slow = ssh_request();
  slow.params = {{"preset", std::string("random")},
                 {"keys", std::int64_t{65536}},
                 {"tile_width", std::int64_t{1024}},
                 {"head_dim", std::int64_t{128}}};
  const Ticket ticket = lab->submit(slow);
  std::optional<LabFailure> failure;
  bool cut = false;
  REQUIRE(eventually(
      [&] {
        while (auto update = lab->poll()) {
          if (update->ticket != ticket) continue;
          const auto* progress = std::get_if<LabProgress>(&update->what);
          if (progress != nullptr && !progress->waiting && !cut) {
            for (const pid_t session : server.sessions()) ::kill(session, SIGKILL);
            cut = true;
          }
          if (const auto* failed = std::get_if<LabFailure>(&update->what)) failure = *failed;
        }
        return failure.has_value();
      },
      60s));
  check_contains(failure->sentence, "The worker of ssh:");
  check_contains(failure->sentence, "while it ran online-softmax");
  lab::NoProgress progress;
  CHECK(ask(lab.get(), ssh_request(), progress).lesson == "online-softmax");
}
