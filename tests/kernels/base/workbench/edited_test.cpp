// An edited source is compiled, loaded and run in place of the one that was built in; what is wrong with it is one
// sentence, with the lines at fault.

#include <cstdlib>
#include <filesystem>

#include "kernels/answer.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/base/workbench/compiler.hpp"
#include "kernels/base/workbench/folders.hpp"
#include "kernels/base/workbench/precompiled.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/workbench/own_cache.hpp"
#include "tests/part.hpp"

namespace tilestep::workbench {
namespace {

using tests::contains, tests::kOnePass, tests::run_one_pass;

/// The source with `from`, which stands in it once, replaced.
std::string edited(const std::string& from, const std::string& to) {
  std::string text(lab::asset(kOnePass));
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  REQUIRE(text.find(from, at + 1) == std::string::npos);
  return text.replace(at, from.size(), to);
}

std::vector<lab::Diagnostic> diagnostics_when_run(const std::string& text) {
  try {
    run_one_pass(text);
  } catch (const Error& error) {
    return lab::diagnostics_of(error);
  }
  FAIL_CHECK("it ran");
  return {};
}

TEST_CASE("the edited kernel runs, and not the one built in", "[workbench_run]") {
  const tests::OwnCache cache;
  lab::NoProgress progress;
  const lab::Report built_in =
      answer({.lesson = "online-softmax", .params = {}, .backend = "emulated"}, progress);
  const lab::Report same = run_one_pass(std::string(lab::asset(kOnePass)));
  REQUIRE(same.kernel);
  CHECK(same.kernel->path == kOnePass);
  CHECK_FALSE(same.kernel->cached);
  CHECK(same.kernel->compile_ms > 0);
  CHECK(same.trace == built_in.trace);
  CHECK(same.ok());
  CHECK_FALSE(built_in.kernel);

  const lab::Report twice =
      run_one_pass(edited("float o_new = times<Format>(o, rescale);", "float o_new = o;"));
  CHECK_FALSE(twice.ok());
  CHECK(twice.trace != built_in.trace);
  CHECK(twice.kernel->hash != same.kernel->hash);
  CHECK(run_one_pass(std::string(lab::asset(kOnePass))).kernel->cached);
  // The program's own is what it was.
  CHECK(answer({.lesson = "online-softmax", .params = {}, .backend = "emulated"}, progress).trace ==
        built_in.trace);
}

TEST_CASE("what is watched is a table of the run", "[workbench_run]") {
  const tests::KeptCache cache;
  const lab::Report report =
      run_one_pass(edited("float o_new = times<Format>(o, rescale);",
                          "float o_new = times<Format>(o, rescale);\n"
                          "    if (threadIdx.x == 0) simt::watch(\"scaled\", rescale);"));
  CHECK(report.ok());
  const lab::Table* watched = report.table("watched");
  REQUIRE(watched != nullptr);
  REQUIRE_FALSE(watched->rows.empty());
  CHECK(watched->text(0, 0) == "scaled");
  CHECK(watched->text(0, 1) == "online_softmax");
}

TEST_CASE("a source that does not compile is one sentence with its lines", "[workbench_run]") {
  const tests::KeptCache cache;
  const std::string bad =
      edited("float o_new = times<Format>(o, rescale);", "float o_new = times<Format>(o, rescal);");
  const auto said = diagnostics_when_run(bad);
  REQUIRE_FALSE(said.empty());
  const std::string before = bad.substr(0, bad.find("rescal);"));
  CHECK(said.front().line == 1 + std::count(before.begin(), before.end(), '\n'));
  CHECK(
      contains(tests::error_of([&] { run_one_pass(bad); }), "one_pass.cu does not compile: line "));
  CHECK(contains(tests::error_of([] { run_one_pass(" \n"); }), "one_pass.cu is empty"));
  CHECK(contains(tests::error_of([] { run_one_pass("int unfinished"); }), "does not compile"));
  CHECK(contains(tests::error_of([] { run_one_pass("#include \"/etc/passwd\"\n"); }),
                 "does not compile"));
  // Declared and used, and defined nowhere.
  CHECK(contains(tests::error_of([&] {
                   run_one_pass(edited("float o_new = times<Format>(o, rescale);",
                                       "void nowhere(); nowhere(); float o_new = o;"));
                 }),
                 "defined nowhere"));
  CHECK(run_one_pass(std::string(lab::asset(kOnePass))).ok());
}

TEST_CASE("an edit that cannot be is refused with what can", "[workbench_run]") {
  const tests::KeptCache cache;
  const std::string text(lab::asset(kOnePass));
  CHECK(contains(tests::error_of([&] { run_one_pass(text, "recorded"); }),
                 "allowed: auto, cuda, emulated"));
  lab::NoProgress progress;
  CHECK(contains(tests::error_of([&] {
                   answer({.lesson = "tiling",
                           .params = {},
                           .backend = "emulated",
                           .kernel = lab::KernelEdit{kOnePass, text}},
                          progress);
                 }),
                 "is no kernel source of 'tiling'; allowed: double_buffered.cu"));
  ::setenv("TILESTEP_CXX", "no-such-compiler", 1);
  CHECK(contains(tests::error_of([&] { run_one_pass(text); }),
                 "'no-such-compiler' that TILESTEP_CXX names does not start"));
  ::unsetenv("TILESTEP_CXX");
}

TEST_CASE("sources of several files take the rest from the program", "[workbench_run]") {
  const tests::KeptCache cache;
  lab::NoProgress progress;
  const std::string path = "kernels/machine/latency_hiding/copy.cu";
  const lab::Report report =
      answer({.lesson = "latency-hiding",
              .params = {},
              .backend = "emulated",
              .kernel = lab::KernelEdit{path, std::string(lab::asset(path)) + "\n// mine\n"}},
             progress);
  CHECK(report.ok());
  CHECK(report.kernel->path == path);
}

TEST_CASE("the cache is made of whole folders and does not grow", "[workbench_run]") {
  const tests::OwnCache cache;
  const auto folder = cache.folder / "kept";
  for (int i = 0; i < 5; ++i) {
    CHECK(make_whole(folder / std::to_string(i),
                     [](const auto& draft) { write_whole(draft / "file", "text"); }));
  }
  CHECK_FALSE(make_whole(folder / "0", [](const auto&) { FAIL("it is there"); }));
  CHECK(read_whole(folder / "0" / "file") == "text");
  CHECK_THROWS_AS(make_whole(folder / "bad",
                             [](const auto& draft) {
                               write_whole(draft / "file", "half");
                               throw Error("no");
                             }),
                  Error);
  CHECK_FALSE(std::filesystem::exists(folder / "bad"));
  const auto left = [&folder] {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) count += entry.exists();
    return count;
  };
  keep_newest(folder, 2);
  CHECK(left() == 5);  // somebody may be at work in them
  for (int i = 0; i < 4; ++i) {
    std::filesystem::last_write_time(
        folder / std::to_string(i),
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(2 + i));
  }
  keep_newest(folder, 2);
  CHECK(left() == 2);
  CHECK(std::filesystem::exists(folder / "0"));
  CHECK(std::filesystem::exists(folder / "4"));
}

TEST_CASE("a line of the recording that was taken out is named as what is missing",
          "[workbench_run]") {
  const tests::KeptCache cache;
  const auto said = [](const std::string& from, const std::string& to) {
    return tests::error_of([&] { run_one_pass(edited(from, to)); });
  };
  CHECK(contains(said("tape.note(kStepSite, tile,", "if (tile > 1) tape.note(kStepSite, tile,"),
                 "recorded 2 of 4 of the steps: a line of its recording is missing"));
  CHECK(contains(said("tape.note(kStepSite, tile,", "tape.note(kStepSite, tile + 1,"),
                 "recorded number 4 of what there are only 4 of"));
}

TEST_CASE("a folder of the cache that was damaged is made again", "[workbench_run]") {
  const tests::OwnCache cache;
  const auto folder = cache.folder / "one";
  const auto make = [&] {
    return make_whole(folder, [](const auto& draft) {
      write_whole(draft / "module.so", "machine code");
      write_whole(draft / "below" / "info.json", "{}");
    });
  };
  CHECK(make());
  CHECK_FALSE(make());
  for (const char* name : {"module.so", "below/info.json", "contents"}) {
    CAPTURE(name);
    write_whole(folder / name, "");
    CHECK(make());
    std::filesystem::remove(folder / name);
    CHECK(make());
    CHECK_FALSE(make());
  }
  write_whole(folder / "module.so", "machine c0de");
  CHECK(make());
  CHECK(read_whole(folder / "module.so") == "machine code");
}

TEST_CASE("a kernel is not blamed for a damaged cache", "[workbench_run]") {
  if (tests::Part("a kernel is not blamed for a damaged cache", 2).skips()) return;
  const tests::OwnCache cache;
  // That of the other tests is not to be damaged.
  const char* shared = std::getenv(kPrecompiledVariable);
  const std::string kept = shared == nullptr ? "" : shared;
  ::setenv(kPrecompiledVariable, (cache.folder / "precompiled").c_str(), 1);
  const std::string text(lab::asset(kOnePass));
  run_one_pass(text);
  int damaged = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache.folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name == "contents") continue;
    // Another file of that name: this process has the old one in its memory.
    const std::string bytes = read_whole(entry.path());
    std::filesystem::remove(entry.path());
    write_whole(entry.path(), bytes.substr(0, bytes.size() / 2));
    ++damaged;
  }
  CHECK(damaged > 10);
  const lab::Report again = run_one_pass(text);
  CHECK(again.ok());
  CHECK_FALSE(again.kernel->cached);
  CHECK(run_one_pass(text).kernel->cached);
  kept.empty() ? ::unsetenv(kPrecompiledVariable) : ::setenv(kPrecompiledVariable, kept.c_str(), 1);
}

}  // namespace
}  // namespace tilestep::workbench
