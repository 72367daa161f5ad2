// Labs that are elsewhere: how they are named, how a worker there is greeted, and what goes wrong.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "app/worker/ask.hpp"
#include "app/worker/greeting.hpp"
#include "app/worker/lab_set.hpp"
#include "app/worker/protocol.hpp"
#include "kernels/answer.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

lab::Request plain_request(std::string lesson = "online-softmax") {
  lab::Request request;
  request.lesson = std::move(lesson);
  request.backend = "emulated";
  return request;
}

std::string refusal_of(const std::string& text) {
  try {
    parse_lab(text);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::bad_input);
    return error.what();
  }
  return "";
}

/// A lab that a script in a folder of its own leads to; `$TILESTEP` is our own program.
class ScriptLab {
 public:
  explicit ScriptLab(const std::string& script) {
    const auto file = folder_.path() / "a lab";
    std::ofstream(file) << "#!/bin/sh\nTILESTEP='" + std::string(tilestep::tests::paths::kProgram) +
                               "'\n"
                        << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    options.address = parse_lab("run:'" + file.string() + "' worker");
  }
  std::unique_ptr<LabClient> make() const { return make_process_lab(options); }

  ProcessLabOptions options;

 private:
  TemporaryFolder folder_;
};

/// The update that ends a request, and the notes on the way.
struct Ended {
  LabUpdate last;
  std::vector<std::string> waits;
  const LabFailure& failure() const { return std::get<LabFailure>(last.what); }
  bool is_report() const { return std::holds_alternative<lab::Report>(last.what); }
};
Ended end_of(LabClient& lab, Ticket ticket) {
  Ended ended;
  REQUIRE(eventually(
      [&] {
        while (auto update = lab.poll()) {
          if (update->ticket != ticket) continue;
          if (const auto* progress = std::get_if<LabProgress>(&update->what)) {
            if (progress->waiting) ended.waits.push_back(progress->note);
            continue;
          }
          ended.last = std::move(*update);
          return true;
        }
        return false;
      },
      60s));
  return ended;
}

std::string failure_of(const ScriptLab& lab) {
  const auto client = lab.make();
  const Ended ended = end_of(*client, client->submit(plain_request()));
  REQUIRE(std::holds_alternative<LabFailure>(ended.last.what));
  CHECK(ended.failure().code == ExitCode::unavailable);
  CHECK(ended.failure().worker_died);
  CHECK(ended.failure().next == "The next run tries again.");
  return ended.failure().sentence;
}

std::string hello_line(const std::string& version, const std::string& hash) {
  return protocol::line_of(protocol::Message(protocol::Hello{version, hash}));
}

}  // namespace

// ---- names --------------------------------------------------------------------------------------

TEST_CASE("--lab becomes arguments, and never a shell's text", "[labs]") {
  CHECK(!parse_lab("here").elsewhere());
  ::setenv("TILESTEP_SSH", "my-ssh -F 'a file'", 1);
  const LabAddress ssh = parse_lab("ssh:ada@gpu1:/opt/tilestep/bin/tilestep");
  ::unsetenv("TILESTEP_SSH");
  CHECK(ssh.host == "ada@gpu1");
  CHECK(Words(ssh.arguments.begin(), ssh.arguments.begin() + 3) == Words{"my-ssh", "-F", "a file"});
  CHECK(Words(ssh.arguments.end() - 4, ssh.arguments.end()) ==
        Words{"--", "ada@gpu1", "/opt/tilestep/bin/tilestep", "worker"});
  const Words six = parse_lab("ssh:[::1]").arguments;
  CHECK(Words(six.end() - 4, six.end()) == Words{"--", "[::1]", "tilestep", "worker"});
  CHECK(parse_lab("ssh:gpu1").arguments.front() == "ssh");

  const std::pair<const char*, Words> commands[] = {
      {"run:srun --gres=gpu:1 tilestep worker", {"srun", "--gres=gpu:1", "tilestep", "worker"}},
      {"run:  a\tb\n c ", {"a", "b", "c"}},
      {R"(run:a 'b c' "d e" f\ g)", {"a", "b c", "d e", "f g"}},
      {R"(run:a '' "x'y" 'x"y' 'a\b' "a\"b")", {"a", "", "x'y", "x\"y", "a\\b", "a\"b"}},
      {"run:a $HOME `id` $(id) ; rm * > f | g & #h",
       {"a", "$HOME", "`id`", "$(id)", ";", "rm", "*", ">", "f", "|", "g", "&", "#h"}}};
  for (const auto& [text, words] : commands) {
    CAPTURE(text);
    CHECK(parse_lab(text).arguments == words);
  }
}

TEST_CASE("a lab that is none is refused, with what is allowed", "[labs]") {
  const std::pair<std::string, const char*> refused[] = {
      {"", "none of the three kinds"},
      {"gpu1", "none of the three kinds"},
      {"SSH:gpu1", "none of the three kinds"},
      {"ssh:", "names no host"},
      {"ssh::/bin/tilestep", "names no host"},
      {"ssh:-oProxyCommand=touch x", "cannot begin with '-'"},
      {"ssh:-", "cannot begin with '-'"},
      {"ssh:gpu1 -v", "letters, digits"},
      {"ssh:gpu1;id", "letters, digits"},
      {"ssh:$(id)@gpu1", "letters, digits"},
      {"ssh:gpu1\n", "letters, digits"},
      {"ssh:gpu\xC3\xBC", "letters, digits"},
      {"ssh:gpu1:/a b", "the path there"},
      {"ssh:gpu1:/a;id", "the path there"},
      {"run:", "names no command"},
      {"run:   ", "names no command"},
      {"run:''", "names no command"},
      {"run:a 'b", "a quote in it is not closed"},
      {"run:a \"b", "a quote in it is not closed"},
      {"run:a \\", "a quote in it is not closed"}};
  for (const auto& [text, why] : refused) {
    CAPTURE(text);
    const std::string sentence = refusal_of(text);
    check_contains(sentence, why);
    check_contains(sentence, "allowed: here, ssh:[USER@]HOST");
  }
}

// ---- the greeting -------------------------------------------------------------------------------

TEST_CASE("a worker elsewhere names its build before it is asked anything", "[labs]") {
  const protocol::Hello ours = protocol::own_hello();
  const LabAddress lab = parse_lab("ssh:ada@gpu1");
  const auto answer_to = [&](const std::string& line) {
    Greeting greeting(lab, {}, "");
    try {
      return std::string(greeting.take(line) ? "ours" : "talk");
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::unavailable);
      return std::string(error.what());
    }
  };
  CHECK(answer_to(hello_line(ours.version, ours.source_hash)) == "ours");
  CHECK(answer_to("  " + hello_line(ours.version, ours.source_hash)) == "ours");
  check_contains(answer_to(hello_line("0.0.1", ours.source_hash)),
                 "ssh:ada@gpu1 has version 0.0.1, this one " + ours.version);
  check_contains(answer_to(hello_line(ours.version, "abc")), "built from different kernels");
  check_contains(answer_to(R"({"type":"error","ticket":null,"message":"no ticket","code":2})"),
                 "older than this one");
  for (const char* talk : {"", "   ", "Welcome to gpu1", "{", "{}", "[1]", R"({"type": "hello"})",
                           R"({"type": "hello", "version": 3, "source_hash": ""})",
                           R"({"type":"progress","ticket":1,"fraction":0,"note":""})"}) {
    CAPTURE(talk);
    CHECK(answer_to(talk) == "talk");
  }
  Greeting greeting(lab, {}, "");
  const std::string line(1000, 'x');
  std::string end;
  for (int i = 0; i < 1000 && end.empty(); ++i) {
    try {
      greeting.take(line);
    } catch (const Error& error) {
      end = error.what();
    }
  }
  check_contains(end, "bytes that no worker writes");
}

TEST_CASE("why there is no worker is said with what to do", "[labs]") {
  const Greeting ssh(parse_lab("ssh:ada@gpu1"), {}, "");
  CHECK(
      ssh.why_none("ended with exit code 255", "ada@gpu1: Permission denied (publickey).", 255) ==
      "The lab ssh:ada@gpu1 cannot be reached: ssh ended with exit code 255: ada@gpu1: Permission "
      "denied (publickey). `ssh ada@gpu1 true` must work in a terminal without a prompt.");
  check_contains(ssh.why_none("ended with exit code 127", "sh: tilestep: not found", 127),
                 "--lab ssh:ada@gpu1:/PATH/OF/tilestep");
  Greeting command(parse_lab("run:srun x"), {}, "");
  command.take("srun: job 7 queued");
  const std::string why = command.why_none("ended with exit code 1", "", 1);
  check_contains(
      why,
      "The lab run:srun x cannot be reached: the command ended with exit code 1; it said "
      "'srun: job 7 queued'.");
  check_contains(why, "must run `tilestep worker`");
}

// ---- labs that a command leads to ---------------------------------------------------------------

TEST_CASE("a lab behind a banner and a delay answers as this machine does", "[labs]") {
  const ScriptLab script(
      "echo '=== Welcome ==='; echo '{\"not\": \"ours\"}'; echo noise >&2; sleep 0.3\n"
      "exec \"$TILESTEP\" \"$1\"");
  const auto lab = script.make();
  const Ended first = end_of(*lab, lab->submit(plain_request()));
  REQUIRE(first.is_report());
  REQUIRE(!first.waits.empty());
  check_contains(first.waits.front(), "waits for run:");
  lab::NoProgress progress;
  const lab::Report here = answer(plain_request(), progress);
  CHECK(lab::to_json(std::get<lab::Report>(first.last.what)) == lab::to_json(here));
  const Ended second = end_of(*lab, lab->submit(plain_request("coalescing")));
  CHECK(second.is_report());
  CHECK(second.waits.empty());
}

TEST_CASE("what a command does instead of running a worker is said", "[labs]") {
  const protocol::Hello ours = protocol::own_hello();
  check_contains(failure_of(ScriptLab("echo 'no such partition' >&2; exit 3")),
                 "the command ended with exit code 3: no such partition.");
  check_contains(failure_of(ScriptLab("echo hi; exit 0")), "exit code 0; it said 'hi'");
  // Whatever it writes: one line of UTF-8, and not more of it than one reads.
  const std::string ugly = "'\\377\\033[31mred%0500d\\n' 7";
  for (const std::string& script : {"printf " + ugly + " >&2; exit 3", "printf " + ugly}) {
    const std::string sentence = failure_of(ScriptLab(script));
    check_contains(sentence, "\\x1b[31mred0000");
    check_printable(sentence, 600);
    CHECK(std::count(sentence.begin(), sentence.end(), '0') < 210);
  }
  check_contains(failure_of(ScriptLab("kill -9 $$")), "was ended by signal 9");
  check_contains(failure_of(ScriptLab("exec yes no-worker")), "bytes that no worker writes");
  check_contains(
      failure_of(ScriptLab("echo '" + hello_line("9.9.9", ours.source_hash) + "'; exec sleep 60")),
      "has version 9.9.9");
  check_contains(
      failure_of(ScriptLab("echo '" + hello_line(ours.version, "abc") + "'; exec sleep 60")),
      "Build the same commit on both.");
  ScriptLab silent("exec sleep 60");
  silent.options.command_deadline = 300ms;
  check_contains(failure_of(silent), "did not start a worker within 0.3 seconds");
  ScriptLab none("");
  none.options.address = parse_lab("run:no-such-program-of-anybody x");
  check_contains(failure_of(none), "'no-such-program-of-anybody' cannot be started: No such file");
  CHECK(eventually([] { return children_of(::getpid()).empty(); }));
}

TEST_CASE("the texts of a report from elsewhere have no escape sequences", "[labs]") {
  const ScriptLab script(
      "\"$TILESTEP\" \"$1\" | sed -u 's/\"summary\":\"/&\\\\u001b[31mred\\\\nnext\\\\u202e/'");
  const auto lab = script.make();
  const Ended ended = end_of(*lab, lab->submit(plain_request()));
  REQUIRE(ended.is_report());
  const std::string summary = std::get<lab::Report>(ended.last.what).summary;
  CHECK(summary.starts_with("\\x1b[31mred\nnext\\xe2\\x80\\xaeOne pass over"));
  lab::NoProgress progress;  // and nothing else is changed
  const std::string right = answer(plain_request(), progress).summary;
  CHECK(summary.ends_with(right));
}

TEST_CASE("a lab that dies in a run says so, and the next run reaches it again", "[labs]") {
  const TemporaryFolder folder;
  const auto mark = (folder.path() / "was here").string();
  // The first worker is cut off at its first request; what led there has the last word.
  const ScriptLab script(
      "if [ ! -e '" + mark + "' ]; then : >'" + mark +
      "'; TILESTEP_WORKER_FAULT=crash \"$TILESTEP\" worker; echo 'the line is down' "
      ">&2; exit 255; fi\nexec \"$TILESTEP\" worker");
  const auto lab = script.make();
  const Ended lost = end_of(*lab, lab->submit(plain_request()));
  REQUIRE(std::holds_alternative<LabFailure>(lost.last.what));
  check_contains(lost.failure().sentence,
                 "ended with exit code 255: the line is down while it ran online-softmax.");
  CHECK(lost.failure().next == "The next run starts another.");
  CHECK(end_of(*lab, lab->submit(plain_request())).is_report());
}

TEST_CASE("a run that waits for its lab can be cancelled, and a newer one is sent in its place",
          "[labs]") {
  const ScriptLab script("sleep 0.5; exec \"$TILESTEP\" worker");
  const auto lab = script.make();
  const Ticket cancelled = lab->submit(plain_request());
  lab->cancel(cancelled);
  const Ended given_up = end_of(*lab, cancelled);
  REQUIRE(std::holds_alternative<LabGivenUp>(given_up.last.what));
  const Ticket replaced = lab->submit(plain_request());
  const Ticket newest = lab->submit(plain_request("coalescing"));
  CHECK(std::holds_alternative<LabGivenUp>(end_of(*lab, replaced).last.what));
  const Ended ended = end_of(*lab, newest);
  REQUIRE(ended.is_report());
  CHECK(std::get<lab::Report>(ended.last.what).lesson == "coalescing");
}

TEST_CASE("what a command started ends with its lab", "[labs]") {
  const TemporaryFolder folder;
  const auto pid_file = folder.path() / "pid";
  pid_t inner = 0;
  {
    const ScriptLab script("sleep 60 & echo $! >'" + pid_file.string() + "'; wait");
    const auto lab = script.make();
    lab->submit(plain_request());
    REQUIRE(eventually([&] {
      inner = std::atoi(file_text(pid_file).c_str());
      return inner > 0;
    }));
  }
  CHECK(eventually([&] { return ::kill(inner, 0) != 0; }));
}

TEST_CASE("several labs are asked side by side, each by its number", "[labs]") {
  const ScriptLab script("exec \"$TILESTEP\" worker");
  ProcessLabOptions here;
  here.program = tilestep::tests::paths::kProgram;
  const auto labs = make_labs(here, {script.options.address, parse_lab("run:false")});
  const Ticket a = labs->submit(plain_request());
  const Ticket b = labs->submit_to(1, plain_request("coalescing"));
  const Ticket c = labs->submit_to(2, plain_request());
  CHECK(labs->busy());
  std::map<Ticket, LabUpdate> ends;
  REQUIRE(eventually(
      [&] {
        while (auto update = labs->poll()) {
          if (!std::holds_alternative<LabProgress>(update->what)) ends[update->ticket] = *update;
        }
        return ends.size() == 3;
      },
      60s));
  CHECK(std::get<lab::Report>(ends[a].what).lesson == "online-softmax");
  CHECK(std::get<lab::Report>(ends[b].what).lesson == "coalescing");
  CHECK(std::holds_alternative<LabFailure>(ends[c].what));
  CHECK(!labs->busy());
}

TEST_CASE("asking waits for the answer, and throws what went wrong", "[labs]") {
  const ScriptLab script("exec \"$TILESTEP\" worker");
  const auto lab = script.make();
  lab::NoProgress progress;
  CHECK(ask(lab.get(), plain_request(), progress).lesson == "online-softmax");
  lab::Request wrong = plain_request();
  wrong.params = {{"tile_width", std::int64_t{0}}};
  try {
    ask(lab.get(), wrong, progress);
    FAIL("a wrong knob was taken");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::bad_input);
    check_contains(error.what(), "1–1024");
  }
  struct Impatient final : lab::Progress {
    void report(double, std::string_view) override {}
    bool cancelled() const override { return true; }
  } impatient;
  CHECK_THROWS_AS(ask(lab.get(), plain_request(), impatient), Cancelled);
}
