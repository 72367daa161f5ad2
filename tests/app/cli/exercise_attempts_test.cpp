// Every exercise: the hole fails, the wrong attempts fail with words that help, the solution passes.
//
// All attempts of a lesson are compiled as one unit: most of a compiler's time goes into what they have in common. Each
// has a namespace of its own, as SIMT_BACKEND, and exports its own set of kernels.

#include <dlfcn.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/simt/emulator/evidence.hpp"
#include "kernels/base/workbench/compiler.hpp"
#include "kernels/base/workbench/edited.hpp"
#include "kernels/base/workbench/judge.hpp"
#include "kernels/base/workbench/program.hpp"
#include "kernels/base/workbench/sources.hpp"
#include "kernels/catalog.hpp"
#include "kernels/evidence.hpp"
#include "tests/app/child.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/workbench/own_cache.hpp"
#include "tests/part.hpp"
#include "tests/paths.hpp"

namespace tilestep {
namespace {

namespace fs = std::filesystem;
using lab::Exercise;

constexpr std::chrono::seconds kRunLimit{20};
constexpr std::chrono::minutes kCompileLimit{10};

struct Attempt {
  const Exercise* exercise;
  std::string name;  ///< "the hole"
  std::string code;  ///< in place of the solution
  std::string says;  ///< words of the verdict; empty: any
  bool passes;
};

std::vector<Attempt> attempts_of(const std::string& lesson) {
  std::vector<Attempt> all;
  tests::Part part("exercises", 9);  // of all lessons' together, so that each day has as many
  for (const Exercise& one : lab::exercises()) {
    if (part.skips() || one.lesson != lesson) continue;
    all.push_back({&one, "the hole", one.hole, "", false});
    // Spaced otherwise than in the source, so that it is no original.
    all.push_back({&one, "the solution", one.solution + "\n", "", true});
    for (const auto& slow : one.slow) all.push_back({&one, slow.name, slow.code, "", true});
    for (const auto& wrong : one.wrong) {
      all.push_back({&one, wrong.name, wrong.code, wrong.says, false});
    }
  }
  return all;
}

// ---- one unit of many attempts ------------------------------------------------------------------

bool is_asset(const std::string& path) {
  for (const lab::Asset& asset : lab::assets()) {
    if (asset.path == path) return true;
  }
  return false;
}

/// `#include "kernels/…"` of ours, else nothing.
std::string included(std::string_view line) {
  constexpr std::string_view kInclude = "#include \"kernels/";
  if (!line.starts_with(kInclude)) return {};
  const std::size_t first = line.find('"') + 1;
  const std::string path(line.substr(first, line.find('"', first) - first));
  return is_asset(path) ? path : std::string();
}

template <class Take>
void each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    take(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
}

/// Whether the file, or one that it includes, is in the backend's namespace and so has to be there for each attempt.
bool in_backend(const std::string& path, std::set<std::string> seen = {}) {
  if (path.starts_with("kernels/base/") || !seen.insert(path).second) return false;
  const std::string_view text = lab::asset(path);
  if (text.find("SIMT_BACKEND") != text.npos) return true;
  bool found = false;
  each_line(text, [&](std::string_view line) {
    const std::string other = included(line);
    found = found || (!other.empty() && in_backend(other, seen));
  });
  return found;
}

/// A file with what it includes of the backend's namespace written out, each once.
class Inlined {
 public:
  Inlined(std::string path, std::string text)
      : edited_(std::move(path)), edited_text_(std::move(text)) {}

  std::string file(const std::string& path) {
    std::string all = fmt::format("#line 1 \"{}\"\n", path);
    int number = 0;
    each_line(path == edited_ ? std::string_view(edited_text_) : lab::asset(path),
              [&](std::string_view line) {
                ++number;
                const std::string other = included(line);
                if (line == "#pragma once") {
                  all += "\n";
                } else if (other.empty() || !in_backend(other)) {
                  all += fmt::format("{}\n", line);
                } else if (done_.insert(other).second) {
                  all += file(other);
                  all += fmt::format("#line {} \"{}\"\n", number + 1, path);
                } else {
                  all += "\n";
                }
              });
    return all;
  }

 private:
  std::string edited_, edited_text_;
  std::set<std::string> done_;
};

/// Of each file that is compiled: what all attempts have of it. Two such files may mean different things by a name.
std::map<std::string, std::string> units_of(const std::vector<Attempt>& attempts) {
  std::map<std::string, std::string> units;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const Exercise& exercise = *attempts[i].exercise;
    const std::string text = lab::with_code(exercise, attempts[i].code);
    for (const std::string& launch :
         workbench::launch_sources_of(exercise.lesson, exercise.source)) {
      std::string& unit = units[launch];
      if (unit.empty()) unit = "#include \"kernels/base/simt/simt.hpp\"\n";
      unit += fmt::format(
          "#undef SIMT_BACKEND\n#define SIMT_BACKEND attempt_{0}\n#undef SIMT_KERNEL_SET\n"
          "#define SIMT_KERNEL_SET(lesson, Class) extern \"C\" "
          "__attribute__((visibility(\"default\"))) const tilestep::simt::KernelSet& "
          "tilestep_attempt_{0}() {{ static const tilestep::lesson::SIMT_BACKEND::Class kernels; "
          "return kernels; }}\n",
          i);
      unit += Inlined(exercise.source, text).file(launch);
    }
  }
  return units;
}

class Module {
 public:
  Module(const std::string& lesson, const std::vector<Attempt>& attempts) {
    const auto module = (folder_.path() / "attempts.so").string();
    // What launches other kernels of the lesson is not there; a run of these never asks for it.
    std::vector<std::string> words = {workbench::host_compiler().program,
                                      "-std=c++20",
                                      "-O0",
                                      "-g0",
                                      "-fPIC",
                                      "-w",
                                      "-fvisibility=hidden",
                                      "-fvisibility-inlines-hidden",
                                      "-DSIMT_EDITED",
                                      "-fmax-errors=5",
                                      "-shared",
                                      "-Wl,-z,lazy",
                                      "-I",
                                      tilestep::tests::paths::kSource,
                                      "-o",
                                      module};
    for (const auto& [launch, unit] : units_of(attempts)) {
      words.push_back((folder_.path() / (fs::path(launch).stem().string() + ".cpp")).string());
      std::ofstream(words.back()) << unit;
    }
    const workbench::Ran ran = workbench::run_program(words, kCompileLimit);
    INFO(lesson << ": " << ran.output.substr(0, 3000));
    REQUIRE(ran.status == 0);
    handle_ = ::dlopen(module.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    INFO((handle_ == nullptr ? ::dlerror() : ""));
    REQUIRE(handle_ != nullptr);
  }
  simt::KernelEntry entry(const std::string& lesson, std::size_t attempt) const {
    const std::string name = fmt::format("tilestep_attempt_{}", attempt);
    using Kernels = const simt::KernelSet& (*)();
    const auto kernels = reinterpret_cast<Kernels>(::dlsym(handle_, name.c_str()));
    REQUIRE(kernels != nullptr);
    return {lesson, kernels};
  }

 private:
  tests::TemporaryFolder folder_;
  void* handle_ = nullptr;
};

// ---- a run in a process of its own --------------------------------------------------------------

nlohmann::json answer_of(const simt::KernelEntry& entry, const lab::Settings& settings,
                         simt::ThreadOrder order) {
  try {
    const auto table = workbench::with_edited(entry, emulated_kernels());
    simt::EvidenceWriter evidence;
    const auto device = simt::make_witnessed_device(table, {.order = order}, evidence);
    lab::NoProgress progress;
    const lab::Lesson& of = lesson(entry.lesson);
    const auto report = lab::to_json(of.run(of.knobs().completed(settings), *device, progress));
    const lab::Request request{
        .lesson = std::string(entry.lesson), .params = settings, .order = order};
    const std::string bytes = evidence.take();
    return {{"report", report},
            {"replayed", lab::to_json(answer_from_evidence(request, bytes, progress))}};
  } catch (const Error& error) {
    return {{"error", error.what()}, {"code", static_cast<int>(error.code())}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}, {"code", static_cast<int>(ExitCode::unavailable)}};
  }
}

/// What the child writes until it ends.
std::string read_all(int fd, pid_t child) {
  std::string text;
  const auto end = std::chrono::steady_clock::now() + kRunLimit;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    ::pollfd asked{fd, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&asked, 1, static_cast<int>(left.count())) <= 0) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
      throw Error("it took longer than 20 seconds and was ended", ExitCode::check_failed);
    }
    char buffer[65536];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

/// Its report, and the one that is made of its outputs.
std::vector<lab::Report> run_apart(const simt::KernelEntry& entry, const lab::Settings& settings,
                                   simt::ThreadOrder order) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text = answer_of(entry, settings, order).dump();
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t put = ::write(ends[1], text.data() + at, text.size() - at);
      if (put <= 0) break;
      at += static_cast<std::size_t>(put);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  struct Closed {
    int fd;
    ~Closed() { ::close(fd); }
  } closed{ends[0]};
  const std::string text = read_all(ends[0], child);
  int status = 0;
  ::waitpid(child, &status, 0);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    throw Error(fmt::format("the worker process was ended by signal {}", WTERMSIG(status)),
                ExitCode::check_failed);
  }
  if (json.contains("error")) {
    throw Error(json["error"].get<std::string>(), static_cast<ExitCode>(json["code"].get<int>()));
  }
  // Whatever a kernel does, its outputs alone say the same of it.
  CHECK((json["report"] == json["replayed"]));
  return {lab::report_from_json(json["report"]), lab::report_from_json(json["replayed"])};
}

void check_unit(const std::string& lesson_id, const std::vector<Attempt>& attempts) {
  const Module module(lesson_id, attempts);
  std::int64_t seed = 1000;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const Attempt& attempt = attempts[i];
    const simt::KernelEntry entry = module.entry(lesson_id, i);
    const std::string kernel = lab::with_code(*attempt.exercise, attempt.code);
    const lab::ExerciseVerdict verdict = lab::judge(
        *attempt.exercise, kernel, lesson(lesson_id).knobs(),
        [&](const lab::Settings& settings, simt::ThreadOrder order) {
          return run_apart(entry, settings, order);
        },
        [&] { return ++seed; });
    INFO(attempt.exercise->id() << ", " << attempt.name << ": " << verdict.sentence << " | "
                                << verdict.hint);
    CHECK(verdict.ok == attempt.passes);
    CHECK(verdict.hint.empty() == attempt.passes);
    const bool helps = tests::contains(verdict.sentence + " " + verdict.hint, attempt.says);
    CHECK(helps);
  }
}

void check_attempts(const std::string& lesson_id) {
  std::vector<Attempt> unit;
  for (const Attempt& attempt : attempts_of(lesson_id)) {
    // Over all of a lesson's in one unit a compiler can take longer than kCompileLimit.
    if (tests::all_is_wanted() && !unit.empty() && unit.back().exercise != attempt.exercise) {
      check_unit(lesson_id, std::exchange(unit, {}));
    }
    unit.push_back(attempt);
  }
  if (!unit.empty()) check_unit(lesson_id, unit);  // else its day is another one
}

// TILESTEP_EXERCISES: one lesson alone.
TEST_CASE("every hole and every wrong attempt fails with a hint, every solution passes",
          "[exercise_attempts]") {
  const char* only = std::getenv("TILESTEP_EXERCISES");
  for (const lab::Lesson* each : lessons()) {
    if (only != nullptr && each->info().id != only) continue;
    check_attempts(each->info().id);
  }
}

// ---- programs -----------------------------------------------------------------------------------

TEST_CASE("every hole and every wrong program fails with a hint, every solved program passes",
          "[exercise_programs]") {
  const tests::KeptCache cache;
  const tests::TemporaryFolder folder;
  std::map<std::string, Attempt> attempts;  // by file
  tests::Part part("exercises of first-steps", 3);
  for (const lab::Exercise& one : lab::exercises()) {
    if (!one.is_program() || part.skips()) continue;
    std::vector<Attempt> all = {{&one, "the hole", one.hole, "", false},
                                {&one, "the solution", one.solution, "", true}};
    for (const auto& wrong : one.wrong) {
      all.push_back({&one, wrong.name, wrong.code, wrong.says, false});
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const fs::path file = folder.path() / fmt::format("{}-{}.cu", one.name, i);
      std::ofstream(file) << fmt::format("// tilestep exercise {}\n", one.id())
                          << lab::with_code(one, all[i].code);
      attempts.emplace(file.string(), std::move(all[i]));
    }
  }
  const auto checked =
      tests::run_tilestep({"exercise", "check", folder.path().string(), "--json", "--trust"});
  INFO(checked.err);
  const nlohmann::json verdicts = checked.json();
  REQUIRE(verdicts.size() == attempts.size());
  REQUIRE(attempts.size() >= 10);
  for (const nlohmann::json& verdict : verdicts) {
    const Attempt& attempt = attempts.at(verdict.at("file").get<std::string>());
    const std::string sentence = verdict.at("sentence"), hint = verdict.at("hint");
    INFO(attempt.exercise->id() << ", " << attempt.name << ": " << sentence << " | " << hint);
    CHECK(verdict.at("ok") == attempt.passes);
    CHECK(hint.empty() == attempt.passes);
    const bool helps = tests::contains(sentence + " " + hint, attempt.says);
    CHECK(helps);
    if (attempt.passes) continue;
    const std::string kind = verdict.at("failed").at("kind");
    const bool of_program = kind == "mistake" || kind == "prints" || kind == "goal";
    CHECK(of_program);
    if (kind != "prints") CHECK(verdict.at("failed").at("line").get<int>() > 1);
  }
}

}  // namespace
}  // namespace tilestep
