// A class's kernels, compiled and run in the sandbox.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
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
  CHECK(all[0].at("points") == all[0].at("of"));
  CHECK(all[1].at("points") == 0);
  CHECK(all[1].at("of") == all[0].at("of"));
  CHECK(all[0].at("seconds").get<double>() > 0);
}

TEST_CASE("a class's folder may have kernels and programs, the latter compiled in the sandbox too",
          "[exercise_sandbox]") {
  if (!app::sandbox_status().available) return tests::skip(app::sandbox_status().reason);
  const tests::TemporaryFolder folder, secret;
  const lab::Exercise& dice = lab::exercise("first-steps/6-count-dice");
  const std::string mark = "// tilestep exercise " + dice.id() + "\n";
  write(secret.path() / "secret.hpp", "");
  write(folder.path() / "ada" / "dice.cu", mark + lab::with_code(dice, dice.solution));
  write(folder.path() / "ada" / "rescale.cu", solved());
  write(folder.path() / "bob" / "dice.cu", lab::starter(dice));
  write(folder.path() / "cem" / "dice.cu", mark + "#include \"" +
                                               (secret.path() / "secret.hpp").string() + "\"\n" +
                                               lab::with_code(dice, dice.solution));
  const auto checked = run_tilestep({"exercise", "check", folder.path().string(), "--json"});
  INFO(checked.out << checked.err);
  CHECK(checked.code == 1);
  const auto all = checked.json();
  REQUIRE(all.size() == 4);
  CHECK(all[0].at("ok") == true);
  CHECK(all[0].at("points") == 1);
  CHECK(all[0].at("failed").is_null());
  CHECK(all[1].at("ok") == true);
  CHECK(all[1].at("exercise") == kRescale);
  CHECK(all[2].at("failed").at("kind") == "mistake");
  CHECK(all[2].at("failed").at("checks").at(0) == "global_race");
  CHECK(all[2].at("points") == 0);
  CHECK(all[2].at("of") == 1);
  // The compiler sees no file but the student's own.
  CHECK(all[3].at("failed").at("kind") == "compile");
  CHECK(all[3].at("failed").at("line") == 2);
  const auto trusted =
      run_tilestep({"exercise", "check", (folder.path() / "cem").string(), "--json", "--trust"});
  CHECK(trusted.code == 0);
}

TEST_CASE("a solved program is kept as progress, and says where it is judged",
          "[exercise_sandbox]") {
  const tests::TemporaryFolder folder;
  const lab::Exercise& dice = lab::exercise("first-steps/6-count-dice");
  write(folder.path() / "dice.cu",
        "// tilestep exercise " + dice.id() + "\n" + lab::with_code(dice, dice.solution));
  const auto checked = run_tilestep(
      {"exercise", "check", (folder.path() / "dice.cu").string(), "--backend", "cuda", "--trust"},
      "", {{"XDG_STATE_HOME", folder.path().string()}});
  INFO(checked.out << checked.err);
  CHECK(checked.code == 0);
  CHECK(checked.out.find("judged under emulation") != std::string::npos);
  CHECK(tests::file_text(folder.path() / "tilestep" / "progress.json").find(dice.id()) !=
        std::string::npos);
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

/// What happens as the file is loaded, inside the sandbox.
std::string at_load(const std::string& code) {
  return "\n#include <fcntl.h>\n#include <signal.h>\n#include <sys/shm.h>\n#include <sys/stat.h>\n"
         "#include <sys/resource.h>\n#include <sys/statvfs.h>\n#include <sys/mman.h>\n#include "
         "<unistd.h>\n#include <cstdio>\n#include <cstdlib>\n"
         "#include <cstring>\nnamespace {\nconst struct Bad {\n  Bad() {\n" +
         code + "  }\n} bad;\n}\n";
}

TEST_CASE("one file never ends a class's check, and the others have their verdicts",
          "[exercise_sandbox]") {
  if (!app::sandbox_status().available) return tests::skip(app::sandbox_status().reason);
  const tests::TemporaryFolder folder;
  const fs::path files = folder.path() / "class";
  const std::pair<const char*, std::string> bad[] = {
      {"ends", at_load("    ::_exit(0);\n")},
      {"talks",
       at_load(
           "    for (int fd = 1; fd < 9; ++fd) { if (::write(fd, \"{}\\n[]\\n\", 6) < 0) {} }\n")},
      {"removes", at_load("    std::system(\"rm -rf /tmp/* /tmp/.[a-z]*\");\n")},
      {"closes", at_load("    for (int fd = 0; fd < 64; ++fd) ::close(fd);\n")},
      {"kills", at_load("    ::kill(-1, SIGKILL);\n")},
      {"writes", at_load(R"(
    std::FILE* file = std::fopen("/tmp/all", "w");
    static char zeros[1 << 20];
    while (file != nullptr && std::fwrite(zeros, sizeof zeros, 1, file) == 1) {}
)")}};
  for (const auto& [name, code] : bad) write(files / name / "answer.cu", solved(code));
  write(files / "zoe" / "answer.cu", solved());
  write(files / "zoes-friend" / "answer.cu", solved());
  // What is no file of its own is none of the class's.
  write(folder.path() / "elsewhere.cu", solved());
  fs::create_symlink(folder.path() / "elsewhere.cu", files / "link.cu");
  fs::create_directory_symlink(folder.path(), files / "loop");
  const auto checked = run_tilestep({"exercise", "check", files.string(), "--json"});
  INFO(checked.out << checked.err);
  CHECK(checked.code == 1);
  const auto all = checked.json();
  REQUIRE(all.size() == 8);
  for (const auto& one : all) {
    INFO(one.dump(1));
    CHECK_FALSE(one.at("sentence").get<std::string>().empty());
    const std::string file = one.at("file");
    // What does no harm to its own worker is as right as it would be elsewhere.
    bool good = false;
    for (const char* name : {"zoe", "removes", "kills", "writes"}) {
      good = good || file.find(name) != file.npos;
    }
    CHECK(one.at("ok") == good);
  }
}

TEST_CASE("where a service manager answers, it limits all that a sandbox has together",
          "[exercise_sandbox]") {
  if (!app::sandbox_status().available) return tests::skip(app::sandbox_status().reason);
  const tests::TemporaryFolder folder;
  const fs::path manager = folder.path() / "bin" / "systemd-run", asked = folder.path() / "asked";
  write(manager, fmt::format("#!/bin/sh\nprintf '%s ' \"$@\" >>{}\necho >>{}\n"
                             "while [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n",
                             asked.string(), asked.string()));
  fs::permissions(manager, fs::perms::owner_all);
  write(folder.path() / "zoe.cu", solved());
  const auto checked =
      run_tilestep({"exercise", "check", (folder.path() / "zoe.cu").string()}, "",
                   {{"PATH", manager.parent_path().string() + ":" + std::getenv("PATH")}});
  INFO(checked.out << checked.err);
  CHECK(checked.code == 0);
  // Once to see whether it answers, once to see whether there is a sandbox, and for the two workers.
  const std::string words = fmt::format(
      "--scope --quiet --collect {}-p MemoryMax=8589934592 -p MemorySwapMax=0 -p TasksMax=",
      ::geteuid() == 0 ? "" : "--user ");
  std::istringstream lines(tests::file_text(asked));
  int scopes = 0, sandboxes = 0;
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.starts_with(words));
    ++scopes;
    sandboxes += tests::contains(line, "bwrap --unshare-all") ? 1 : 0;
  }
  CHECK(scopes == 4);
  CHECK(sandboxes == 3);
}

TEST_CASE("a kernel that rewrites what its process says of it does not pass",
          "[exercise_sandbox]") {
  if (!app::sandbox_status().available) return tests::skip(app::sandbox_status().reason);
  // Between the worker and whoever reads its messages: a pipe of the kernel's own, in which every check has passed.
  const auto rewriting = [](const std::string& from, const std::string& to) {
    return "\n#include <string>\n#include <thread>\n" + at_load(fmt::format(R"(
    static int ends[2];
    // Whoever started the tests may have left descriptors open: the messages' is the first that a program would not inherit.
    int own = 3;
    while (own < 64 && (::fcntl(own, F_GETFD) != FD_CLOEXEC || (::fcntl(own, F_GETFL) & O_ACCMODE) == O_RDONLY)) ++own;
    if (own == 64 || ::pipe(ends) != 0) ::_exit(57);
    const int messages = ::dup(own);
    ::dup2(ends[1], own);
    std::thread([messages] {{
      const std::string from = R"x({})x", to = R"x({})x";
      std::string line;
      for (char c; ::read(ends[0], &c, 1) == 1;) {{
        line += c;
        if (c != '\n') continue;
        for (std::size_t at; (at = line.find(from)) != line.npos;) line.replace(at, from.size(), to);
        for (std::size_t at = 0; at < line.size();) at += ::write(messages, &line[at], line.size() - at);
        line.clear();
      }}
    }}).detach();
)",
                                                                            from, to));
  };
  const tests::TemporaryFolder folder;
  write(folder.path() / "checks.cu",
        lab::starter(lab::exercise(kRescale)) + rewriting(R"("ok":false)", R"("ok":true)"));
  write(folder.path() / "outputs.cu", solved(rewriting(R"("evidence":")", R"("evidenc":")")));
  const auto checked = run_tilestep({"exercise", "check", folder.path().string(), "--json"});
  INFO(checked.out << checked.err);
  const auto all = checked.json();
  REQUIRE(all.size() == 2);
  CHECK(all[0].at("ok") == false);
  CHECK(all[0].at("failed").at("checks").at(0) == "final_output");
  CHECK(all[1].at("ok") == false);
  CHECK(tests::contains(all[1].at("sentence").get<std::string>(), "did not report its outputs"));
}

TEST_CASE("in the sandbox root is nobody, and what is written ends with it", "[exercise_sandbox]") {
  if (!app::sandbox_status().available) return tests::skip(app::sandbox_status().reason);
  const tests::TemporaryFolder folder;
  // Each of these ends the worker with a number of its own where it succeeds.
  const std::string bad = at_load(R"(
    if (::open("/proc/sys/kernel/core_pattern", O_WRONLY) >= 0) ::_exit(51);
    if (::open("/proc/sysrq-trigger", O_WRONLY) >= 0) ::_exit(52);
    if (::getuid() == 0 || ::geteuid() == 0) ::_exit(53);
    if (::chmod("/tmp", 0777) == 0 && ::open("/tmp/../etc/written", O_CREAT | O_WRONLY, 0600) >= 0) ::_exit(54);
    if (::shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600) >= 0) ::_exit(55);
    if (::memfd_create("more", 0) >= 0) ::_exit(56);
    const auto limit_of = [](auto what) { rlimit is{}; ::getrlimit(what, &is); return is.rlim_cur; };
    const rlim_t cores = ::sysconf(_SC_NPROCESSORS_ONLN);
    if (limit_of(RLIMIT_AS) > (rlim_t{4} << 30) + cores * (rlim_t{256} << 20)) ::_exit(61);
    if (limit_of(RLIMIT_NPROC) > 16 + 8 * cores) ::_exit(62);
    struct statvfs room{};
    if (::statvfs("/tmp", &room) != 0 || room.f_blocks * room.f_frsize > 512u << 20) ::_exit(63);
    const int file = ::open("/tmp/setuid-of-a-kernel", O_CREAT | O_WRONLY, 04755);
    if (file < 0) ::_exit(57);
    ::fchmod(file, 04755);
    for (int i = 0; i < 200; ++i) {
      if (::mkdir("d", 0000) != 0 || ::chmod("d", 0700) != 0 || ::chdir("d") != 0) ::_exit(58);
    }
)");
  write(folder.path() / "eve.cu", solved(bad));
  const auto checked = run_tilestep({"exercise", "check", folder.path().string(), "--json"}, "",
                                    {{"TMPDIR", folder.path().string()}});
  INFO(checked.out << checked.err);
  CHECK(checked.code == 0);
  int left = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    left += entry.path().filename() == "eve.cu" ? 0 : 1;
  }
  CHECK(left == 0);
}

}  // namespace
}  // namespace tilestep
