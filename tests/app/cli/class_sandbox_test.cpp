// A class's kernels, compiled and run in the sandbox.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "app/worker/sandbox.hpp"
#include "kernels/base/workbench/exercise.hpp"
#include "tests/app/child.hpp"
#include "tests/catch.hpp"
#include "tests/skip.hpp"

namespace tilestep {
namespace {

namespace fs = std::filesystem;
using tests::run_tilestep;

void write(const fs::path& file, std::string_view text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

const std::string kRescale = "online-softmax/put-back-the-rescale";

std::string solved(const std::string& more = "") {
  const lab::Exercise& one = lab::exercise(kRescale);
  std::string text = lab::starter(one);
  const std::size_t at = text.find(one.hole);
  text.replace(at, one.hole.size(), one.solution);
  return text + more;
}

TEST_CASE("a class is checked in a folder, each file in a process of its own",
          "[exercise_sandbox]") {
  if (!app::sandbox_status().available) return tests::skip(app::sandbox_status().reason);
  const tests::TemporaryFolder folder;
  write(folder.path() / "ada" / "put-back-the-rescale.cu", solved());
  write(folder.path() / "bob" / "put-back-the-rescale.cu",
        lab::starter(lab::exercise(kRescale)) + "\nthis is no code\n");
  const auto checked = run_tilestep({"exercise", "check", folder.path().string(), "--json"});
  CHECK(checked.code == 1);
  const auto all = checked.json();
  REQUIRE(all.size() == 2);
  INFO(all.dump(1));
  CHECK(all[0].at("ok") == true);
  CHECK(all[0].at("exercise") == kRescale);
  CHECK(all[1].at("ok") == false);
  CHECK(all[1].at("failed").at("kind") == "compile");
  CHECK(all[1].at("failed").at("line").get<int>() > 300);
  CHECK_FALSE(all[1].at("hint").get<std::string>().empty());
}

/// A port of this machine that somebody listens on.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    ::sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(fd_, reinterpret_cast<::sockaddr*>(&any), sizeof any) == 0);
    REQUIRE(::listen(fd_, 4) == 0);
    ::socklen_t size = sizeof any;
    REQUIRE(::getsockname(fd_, reinterpret_cast<::sockaddr*>(&any), &size) == 0);
    port_ = ntohs(any.sin_port);
  }
  ~Listener() { ::close(fd_); }
  int port() const { return port_; }
  /// Whether somebody has come.
  bool called() const {
    ::pollfd asked{fd_, POLLIN, 0};
    return ::poll(&asked, 1, 0) > 0;
  }

 private:
  int fd_, port_ = 0;
};

TEST_CASE("in the sandbox a kernel can neither write a file nor reach anybody",
          "[exercise_sandbox]") {
  if (!app::sandbox_status().available) return tests::skip(app::sandbox_status().reason);
  const tests::TemporaryFolder folder;
  const Listener listener;
  // Not below the folder for temporary files, of which the sandbox has one of its own.
  const fs::path home = fs::current_path() / fmt::format("exercise-home-{}", ::getpid());
  fs::create_directories(home);
  const fs::path loot = home / "written";
  const std::string bad = fmt::format(R"(
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <cstdio>
namespace {{
const struct Bad {{
  Bad() {{
    if (std::FILE* file = std::fopen("{}", "w")) std::fclose(file);
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    ::sockaddr_in to{{}};
    to.sin_family = AF_INET;
    to.sin_port = htons({});
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::connect(fd, reinterpret_cast<::sockaddr*>(&to), sizeof to);
  }}
}} bad;
}}
)",
                                      loot.string(), listener.port());
  write(folder.path() / "eve.cu", solved(bad));
  const auto sandboxed = run_tilestep({"exercise", "check", folder.path().string(), "--json"}, "",
                                      {{"HOME", home.string()}});
  INFO(sandboxed.out << sandboxed.err);
  CHECK(sandboxed.code == 0);  // it ran, and solves the exercise
  CHECK_FALSE(fs::exists(loot));
  CHECK_FALSE(listener.called());

  // The same does both where it is trusted: so it was the sandbox.
  const auto trusted =
      run_tilestep({"exercise", "check", folder.path().string(), "--json", "--trust"}, "",
                   {{"HOME", home.string()}, {"TILESTEP_CACHE", (home / "cache").string()}});
  CHECK(trusted.code == 0);
  CHECK(fs::exists(loot));
  CHECK(listener.called());
  fs::remove_all(home);
}

}  // namespace
}  // namespace tilestep
