#include <cstdio>
#include <cstring>

#include "tests/catch.hpp"
#include "tests/faults/case.hpp"

using namespace tilestep::tests;

TEST_CASE("settings that are broken, huge, deep, newer or no file", "[fault_inputs]") {
  // Without a display `open` says what it has to say of the settings, and then why no window opens.
  const std::string kFolder = "mkdir -p .config/tilestep; cd .config/tilestep; ";
  const std::string kTo = " >settings.json; cd ../..";
  std::vector<Fault> faults;
  const auto settings = [&](const std::string& name, const std::string& make,
                            const std::string& says, int lines = 2) {
    Fault fault{"settings: " + name, {"open"}, ""};
    fault.before = kFolder + make + kTo;
    fault.says = {"tilestep site"};
    if (!says.empty()) fault.says.push_back(says);
    fault.lines = lines;
    faults.push_back(fault);
  };
  settings("none", "true", "set aside", 2);  // an empty file is there
  settings("cut off", "echo '{\"tilestep_settings\": 1, \"the'", "set aside");
  settings("newer", "echo '{\"tilestep_settings\": 99}'", "from a newer tilestep");
  settings("huge", "head -c 5000000 /dev/zero", "set aside");
  settings("deep", "head -c 1000000 /dev/zero | tr '\\0' '['", "set aside");
  settings("deep, with an end",
           "{ echo '{\"tilestep_settings\":1,\"theme\":'; head -c 400000 /dev/zero | tr '\\0' '['; "
           "head -c "
           "400000 /dev/zero | tr '\\0' ']'; echo '}'; }",
           "set aside");
  settings("of another kind", "echo '{\"tilestep_settings\": 1, \"theme\": \"\\u001b[31mpink\"}'",
           "set aside");
  settings("broken UTF-8", "printf '{\"tilestep_settings\": 1, \"theme\": \"\\377\"}'",
           "set aside");
  settings("a lesson that is no more",
           "echo '{\"tilestep_settings\": 1, \"last\": {\"lesson\": \"gone\", \"settings\": {}, "
           "\"step\": 1}}'",
           "", 1);
  const auto folder = [&](const std::string& name, const std::string& before,
                          const Environment& environment, int lines, const std::string& says) {
    Fault fault{"settings: " + name, {"open"}, ""};
    fault.before = before;
    fault.environment = environment;
    fault.says = {"tilestep site"};
    if (!says.empty()) fault.says.push_back(says);
    fault.lines = lines;
    faults.push_back(fault);
  };
  folder("a folder in their place", "mkdir -p .config/tilestep/settings.json", {}, 2,
         "it is a folder");
  folder("a pipe in their place",
         "mkdir -p .config/tilestep; mkfifo .config/tilestep/settings.json", {}, 2, "not a file");
  folder("a device in their place",
         "mkdir -p .config/tilestep; ln -s /dev/zero .config/tilestep/settings.json", {}, 2,
         "not a file");
  folder("a file in place of their folder", "touch .config", {}, 1, "");
  folder("no HOME", "unset HOME", {}, 1, "");
  folder("HOME from nowhere", "", {{"HOME", "nowhere"}}, 1, "");
  folder("HOME missing", "", {{"HOME", "@/missing"}}, 1, "");
  folder("XDG_CONFIG_HOME is a file", "touch file", {{"XDG_CONFIG_HOME", "@/file"}}, 1, "");
  folder("XDG_CONFIG_HOME is a device", "", {{"XDG_CONFIG_HOME", "/dev/null"}}, 1, "");
  if (can_inject()) {
    const auto failing = [&](const std::string& rules, const std::string& make,
                             const std::string& says) {
      settings(rules, make, says);
      faults.back().rules = rules;
    };
    const std::string good = "echo '{\"tilestep_settings\": 1}'";
    failing("open,1,24,settings.json", good, "cannot be read: Too many open files");
    failing("read,1,5,settings.json", good, "cannot be read: Input/output error");
    failing("rename,1,18,settings.json", "echo no",
            "cannot be set aside: Invalid cross-device link");
  }
  check_faults(faults);
}

TEST_CASE("fonts that are broken, special or missing are told of, and the built-in ones stand in",
          "[fault_inputs]") {
  const std::string kFont = "fonts/Inter-Regular.ttf";
  std::vector<Fault> faults;
  const std::pair<const char*, std::string> kinds[] = {
      {"missing", "mkdir fonts"},
      {"a folder that is not there", "true"},
      {"empty", "mkdir fonts; touch " + kFont},
      {"21 bytes", "mkdir fonts; head -c 21 /dev/zero >" + kFont},
      {"noise", "mkdir fonts; head -c 60000 \"$1\" >" + kFont},
      {"a cut header", "mkdir fonts; printf 'OTTO\\0\\013\\0\\200\\0\\003\\0' >" + kFont},
      {"a pipe", "mkdir fonts; mkfifo " + kFont},
      {"a folder", "mkdir -p " + kFont},
      {"a device", "mkdir fonts; ln -s /dev/zero " + kFont},
      {"huge", "mkdir fonts; truncate -s 1G " + kFont},
  };
  for (const auto& [name, before] : kinds) {
    Fault fault{std::string("a font: ") + name, kSvg, "", 0};
    fault.before = before;
    fault.environment = {{"TILESTEP_FONTS", "@/fonts"}};
    faults.push_back(fault);
    const TemporaryFolder folder;
    fault.words = {"doctor", "--json"};
    const Aftermath after = run_with(fault, folder.path());
    INFO(name << after.outcome.err);
    CHECK(after.outcome.code == 0);
    if (contains(before, kFont)) CHECK(contains(after.outcome.out, "cannot be used"));
  }
  check_faults(faults);
}

TEST_CASE("files of this machine that cannot be opened", "[fault_inputs]") {
  if (!can_inject()) return;
  std::vector<Fault> faults;
  const auto fault = [&](const std::string& name, std::vector<std::string> words,
                         const std::string& rules, int code = 0) {
    Fault one{name, std::move(words), rules, code};
    one.again = false;
    faults.push_back(one);
  };
  fault("/proc/cpuinfo cannot be read", with(kRun, {"--json"}), "open,1+,13,/proc/cpuinfo");
  fault("no random numbers of the system", kRun, "random,1+,38,never");
  faults.pop_back();
  check_faults(faults);
}

TEST_CASE("a clock that jumps and one that goes backwards", "[fault_inputs]") {
  if (!can_inject()) return;
  std::vector<Fault> faults;
  for (const char* rules : {"clock,1+,back", "clock,1+,ahead", "clock,2+,back", "clock,2+,ahead",
                            "clock,3,ahead", "clock,3,back"}) {
    Fault run{std::string("run: ") + rules, with(kRun, {"--json"}), rules, 0};
    faults.push_back(run);
    Fault capsule{std::string("run --capsule: ") + rules,
                  with(kRun, {"--force", "--capsule", "@/a.tilestep.json"}), rules, 0};
    faults.push_back(capsule);
  }
  for (const Fault& fault : faults) {
    const TemporaryFolder folder;
    const Aftermath after = run_with(fault, folder.path());
    INFO(fault.name << ": " << after.outcome.err);
    CHECK(after.outcome.code == 0);
    const Aftermath next = run_with(fault, folder.path(), false);
    CHECK(next.outcome.code == 0);
    CHECK((next.outcome.out == after.outcome.out));
    if (!after.files.empty()) {
      const Aftermath opened =
          run_with({"open what was saved", {"shot", "@/a.tilestep.json", "--out", "@/a.svg"}, ""},
                   folder.path());
      INFO(opened.outcome.err);
      CHECK(opened.outcome.code == 0);
    }
  }
  std::printf("%zu faults\n", faults.size());
}

namespace {

/// What a worker answers to `input`; each line is JSON.
struct Answers {
  Aftermath after;
  std::vector<nlohmann::json> messages;
  /// Of the errors, in order.
  std::vector<std::string> errors() const {
    std::vector<std::string> all;
    for (const auto& message : messages) {
      if (message.at("type") == "error") all.push_back(message.at("message").get<std::string>());
    }
    return all;
  }
  bool has_report() const {
    for (const auto& message : messages) {
      if (message.at("type") == "report") return true;
    }
    return false;
  }
};

constexpr const char* kRequest =
    "{\"ticket\": 7, \"lesson\": \"online-softmax\", \"backend\": \"emulated\"}\n";

Answers ask(const std::string& input, const std::string& redirect = {},
            const std::string& rules = {}) {
  const TemporaryFolder folder;
  Fault fault{"worker", {"worker"}, rules};
  fault.input = input;
  fault.redirect = redirect;
  Answers answers{run_with(fault, folder.path()), {}};
  std::size_t begin = 0;
  const std::string& out = answers.after.outcome.out;
  for (std::size_t end = 0; (end = out.find('\n', begin)) != std::string::npos; begin = end + 1) {
    answers.messages.push_back(nlohmann::json::parse(out.substr(begin, end - begin)));
  }
  return answers;
}

}  // namespace

TEST_CASE("a worker answers a bad line with one sentence, and the next request with a report",
          "[fault_worker]") {
  std::string deep = "{\"ticket\": 3, \"params\": ";
  deep += std::string(300'000, '[') + std::string(300'000, ']') + "}";
  std::string objects = "{\"ticket\": 3, \"params\": {\"preset\": ";
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  objects += "1" + std::string(100'000, '}') + "}}";
  const std::pair<const char*, std::string> lines[] = {
      {"half a line", "{\"ticket\": 3, \"lesson\": \"onl"},
      {"invalid UTF-8", "{\"ticket\": 3, \"lesson\": \"caf\xe9\xff\"}"},
      {"escapes", "{\"ticket\": 3, \"lesson\": \"\\u001b[31m\\u0007red\"}"},
      {"a NUL", std::string("{\"cancel\": 3}\0{}", 15)},
      {"a long name", "{\"ticket\": 3, \"lesson\": \"" + std::string(500'000, 'x') + "\"}"},
      {"a long member", "{\"ticket\": 3, \"" + std::string(500'000, 'x') + "\": 1}"},
      {"a long knob", "{\"ticket\": 3, \"lesson\": \"online-softmax\", \"params\": {\"" +
                          std::string(500'000, 'x') + "\": 1}}"},
      {"a long value",
       "{\"ticket\": 3, \"lesson\": \"online-softmax\", \"params\": {\"preset\": \"" +
           std::string(500'000, 'x') + "\"}}"},
      {"more than a line may have",
       "{\"ticket\": 3, \"lesson\": \"" + std::string(3'000'000, 'x') + "\"}"},
      {"deep arrays", deep},
      {"deep arrays without an end", std::string(900'000, '[')},
      {"deep objects", objects},
      {"a ticket that is a text", "{\"ticket\": \"3\", \"lesson\": \"online-softmax\"}"},
      {"a ticket below 0", "{\"ticket\": -1, \"lesson\": \"online-softmax\"}"},
      {"a knob beyond all numbers",
       "{\"ticket\": 3, \"lesson\": \"online-softmax\", \"params\": {\"keys\": "
       "18446744073709551615}}"},
      {"a knob of 400 digits",
       "{\"ticket\": 3, \"lesson\": \"online-softmax\", \"params\": {\"keys\": " +
           std::string(400, '9') + "}}"},
      {"an array", "[1, 2]"},
      {"null", "null"},
      {"a cancel of nothing", "{\"cancel\": null}"},
  };
  for (const auto& [name, line] : lines) {
    const Answers answers = ask(line + "\n" + kRequest);
    INFO(name << ": " << answers.after.outcome.out.substr(0, 3000));
    CHECK(answers.after.outcome.code == 0);
    const auto errors = answers.errors();
    REQUIRE(errors.size() == 1);
    check_sentences("tilestep: " + errors[0] + "\n");
    std::size_t count = 0;
    for (const char c : errors[0]) count += c == 'x' ? 1 : 0;
    CHECK(count < 260);
    CHECK(answers.has_report());
  }
  std::printf("%zu faults\n", std::size(lines));
}

TEST_CASE("a line of 1 GB is refused without being kept", "[fault_worker]") {
  // 400 MB of address space: a worker that kept the line would not live.
  const TemporaryFolder folder;
  Fault fault{"a line of 1 GB", {"worker"}, "", 0};
  fault.redirect = "< <(head -c 1000000000 /dev/zero | tr '\\0' x; echo; echo '" +
                   std::string(kRequest, strlen(kRequest) - 1) + "')";
  fault.before = "ulimit -v 1500000";
  const Aftermath after = run_with(fault, folder.path());
  INFO(after.outcome.err << after.outcome.out.substr(0, 2000));
  CHECK(after.outcome.code == 0);
  CHECK(contains(after.outcome.out, "longer than 4194304 bytes"));
  CHECK(contains(after.outcome.out, "\"type\":\"report\""));
}

TEST_CASE("a worker whose input or output fails ends, and says what it can", "[fault_worker]") {
  if (!can_inject()) return;
  const Answers interrupted = ask(kRequest, "", "read,1,4;poll,1,4");
  CHECK(interrupted.after.outcome.code == 0);
  CHECK(interrupted.has_report());
  const Answers bytewise = ask(kRequest, "", "read,1+,short");
  CHECK(bytewise.after.outcome.code == 0);
  CHECK(bytewise.has_report());
  const Answers broken = ask(kRequest, "", "read,1+,5");
  CHECK(broken.after.outcome.code == 0);  // as at the end of input: nobody asks any more
  CHECK(broken.messages.empty());
  const Answers full = ask(kRequest, ">/dev/full");
  INFO(full.after.outcome.err);
  CHECK(full.after.outcome.code == 0);
  const Answers no_input = ask("", "<&-");
  CHECK(no_input.after.outcome.code == 0);
  const Answers a_folder = ask("", "</");
  CHECK(a_folder.after.outcome.code == 0);
  CHECK(a_folder.messages.empty());
}
