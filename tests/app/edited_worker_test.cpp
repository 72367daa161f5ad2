// What an edited kernel does to the worker that runs it.
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "kernels/catalog.hpp"
#include "tests/app/process_lab_rig.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;

TEST_CASE("a wild pointer of an edited kernel ends the worker with its line", "[workbench_run]") {
  const TemporaryFolder cache;
  ::setenv("TILESTEP_CACHE", cache.path().c_str(), 1);
  const auto lab = make_process_lab(options_with());
  const lab::Request wild = edited_request("    *reinterpret_cast<int*>(0x123456789000) = 1;");
  const LabFailure failure = check_failure(*lab, lab->submit(wild));
  CHECK(failure.worker_died);
  check_contains(failure.sentence,
                 "writes address 0x123456789000, where there is no memory (line ");
  CHECK(failure.next == "The worker has ended; the next run starts another.");
  REQUIRE(failure.diagnostics.size() == 1);
  CHECK(failure.diagnostics.front().line > 100);
  check_report(*lab, lab->submit(edited_request()));
  ::unsetenv("TILESTEP_CACHE");
}

TEST_CASE("a source that no pipe takes at once runs, also in one long line", "[workbench_run]") {
  if (tests::Part("a source that no pipe takes at once runs", 2).skips()) return;
  const TemporaryFolder cache;
  ::setenv("TILESTEP_CACHE", cache.path().c_str(), 1);
  const auto lab = make_process_lab(options_with());
  lab::Request lines = edited_request(), line = lines;
  for (int i = 0; i < 6000; ++i)
    lines.kernel->text += "// a line that says nothing, like its 5999 others\n";
  line.kernel->text += "// " + std::string(200'000, 'x') + "\n";
  for (const lab::Request& request : {lines, line}) {
    CHECK(request.kernel->text.size() > 200'000);
    const lab::Report report = check_report(*lab, lab->submit(request));
    REQUIRE(report.kernel);
    CHECK(report.kernel->hash == lab::hash_of(request.kernel->text));
  }
  ::unsetenv("TILESTEP_CACHE");
}

TEST_CASE("a source that is no UTF-8 text is refused with what it is", "[workbench_run]") {
  const auto lab = make_process_lab(options_with());
  const auto refusal = [&](std::string text) {
    lab::Request request = edited_request();
    request.kernel->text = std::move(text);
    const LabFailure failure = check_failure(*lab, lab->submit(request));
    CHECK(failure.code == ExitCode::bad_input);
    CHECK_FALSE(failure.worker_died);
    return failure.sentence;
  };
  CHECK(refusal(std::string("\xFF\xFE/\0/\0", 6)) ==
        "The kernel source is UTF-16; a kernel source is UTF-8: save it as UTF-8.");
  CHECK(refusal("// one\n// gr\xFC\xDF"
                "e\n") ==
        "The kernel source has a byte in line 2 that is not UTF-8: save it as UTF-8.");
  CHECK(refusal(std::string("// a\0"
                            "b",
                            6)) ==
        "The kernel source has the control character 0x00 in line 1, so it is no text.");
  CHECK(refusal(std::string(lab::kMostKernelBytes + 1, ' ')) ==
        "The kernel source has 524289 bytes; a kernel source has at most 524288.");
  check_report(*lab, lab->submit(edited_request()));
}

TEST_CASE("run --trials adds where else an edited kernel is right and wrong", "[workbench_run]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "one_pass.cu";
  std::ofstream(file) << edited_request().kernel->text;
  const auto tables = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"run", "online-softmax", "--backend", "emulated", "--kernel",
                                      file,  "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome out = run_tilestep(words);
    INFO(out.err);
    std::map<std::string, std::size_t> rows;
    const auto report = nlohmann::json::parse(out.out);
    for (const auto& table : report.at("tables")) {
      rows[table.at("id")] = table.at("rows").size();
    }
    return rows;
  };
  CHECK(tables({}).count("trials") == 0);
  auto tried = tables({"--trials"});
  CHECK(tried["trials"] == lesson("online-softmax").trials().size());
}
