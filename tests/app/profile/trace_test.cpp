// Traces of other profilers: what is read of both formats, and what is said of damaged files.
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>

#include "app/profile/numbers.hpp"
#include "tests/app/child.hpp"
#include "tests/app/profile/fixtures.hpp"
#include "tests/app/text_checks.hpp"

using namespace tilestep;
using namespace tilestep::profile;
using tests::check_contains;
using tests::refusal;

namespace {

const Event& event_named(const Trace& trace, const std::string& part, int which = 0) {
  for (const Event& event : trace.events) {
    if (trace.name_of(event).find(part) != std::string::npos && which-- == 0) return event;
  }
  FAIL("no event " << part);
  return trace.events.front();
}

Trace read_text(const tests::TemporaryFolder& folder, const std::string& text) {
  tests::write_text(folder.path() / "trace.json", text);
  return read_trace(folder.path() / "trace.json");
}

std::vector<std::string> files_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(folder))
    names.push_back(each.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("a Chrome trace of PyTorch's profiler is read with its links", "[profile]") {
  const tests::TemporaryFolder folder;
  const Trace trace = read_text(folder, tests::kineto_trace().dump());
  CHECK(trace.events.size() == 18);
  CHECK(trace.notes.empty());
  CHECK(trace.origin() == "recorded by PyTorch's profiler on NVIDIA H200, 2026-01-01");
  CHECK(trace.devices.at(0).multiprocessors == 132);
  const Event& gemm = event_named(trace, "cutlass");
  CHECK(gemm.begin_ns == 350'000);
  CHECK(gemm.ns() == 200'000);
  CHECK(trace.track_of(gemm).name == "GPU 0 stream 7");
  REQUIRE(gemm.call >= 0);
  const Event& call = trace.events[static_cast<std::size_t>(gemm.call)];
  CHECK(trace.name_of(call) == "cudaLaunchKernel");
  CHECK(trace.track_of(call).name == "python 51");
  REQUIRE(gemm.op >= 0);
  const Event& op = trace.events[static_cast<std::size_t>(gemm.op)];
  CHECK(trace.name_of(op) == "aten::mm");
  CHECK(trace.shapes.at(static_cast<std::size_t>(op.shape)).dims == "8×4097, 4097×64");
  CHECK(trace.shapes.at(static_cast<std::size_t>(op.shape)).types == "bf16");
  const Launch& launch = trace.launches.at(static_cast<std::size_t>(gemm.launch));
  CHECK(launch.grid[1] == 2);
  CHECK(launch.block[0] == 128);
  CHECK(launch.registers == 96);
  CHECK(launch.occupancy_percent == 25);
  CHECK_FALSE(gemm.of_graph);
  CHECK(event_named(trace, "small").of_graph);
  CHECK(event_named(trace, "HtoD").bytes == 250000);
}

TEST_CASE("a trace is the same packed, as a plain list, and with times since 1970", "[profile]") {
  const tests::TemporaryFolder folder;
  auto json = tests::kineto_trace();
  const Trace plain = read_text(folder, json.dump());
  const auto packed = folder.path() / "trace.json.gz";
  gzFile file = gzopen(packed.c_str(), "wb");
  const std::string text = json.dump();
  REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) ==
          static_cast<int>(text.size()));
  gzclose(file);
  CHECK(read_trace(packed).events.size() == plain.events.size());
  CHECK(read_text(folder, json["traceEvents"].dump()).events.size() == plain.events.size());
  // A double has a quarter of a microsecond there; the text has nanoseconds.
  const Trace late = read_text(
      folder,
      R"([{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1767225600123456.789, "dur": 1.5},
    {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 1767225600123459.001, "dur": 2}])");
  CHECK(late.events.at(1).begin_ns == 2212);
  CHECK(late.events.at(0).end_ns == 1500);
  CHECK(late.recorded_at == "2026-01-01");
}

TEST_CASE("an SQLite export of Nsight Systems is read, and nothing is written", "[profile]") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "report.sqlite";
  for (const bool write_ahead : {false, true}) {
    tests::write_sqlite(file,
                        (write_ahead ? "PRAGMA journal_mode = wal;" : "") + tests::nsight_sql());
    const auto files = files_in(folder.path());
    const std::string bytes = tests::file_text(file);
    ::chmod(file.c_str(), 0400);
    const Trace trace = read_trace(file);
    CHECK(trace.origin() == "recorded by Nsight Systems on NVIDIA L4, 2026-01-01");
    CHECK(trace.notes.empty());
    const Event& foo = event_named(trace, "at::native::foo");
    CHECK(foo.ns() == 3000);
    CHECK(short_name(trace.name_of(foo)) == "foo<BFloat16>");
    REQUIRE(foo.call >= 0);
    CHECK(trace.name_of(trace.events[static_cast<std::size_t>(foo.call)]) == "cudaLaunchKernel");
    CHECK(trace.track_of(trace.events[static_cast<std::size_t>(foo.call)]).name == "main thread 1");
    REQUIRE(foo.op >= 0);
    const Event& op = trace.events[static_cast<std::size_t>(foo.op)];
    CHECK(trace.name_of(op) == "aten::add");
    CHECK(trace.shapes.at(static_cast<std::size_t>(op.shape)).dims == "8×64, 64");
    CHECK(trace.launches.at(static_cast<std::size_t>(foo.launch)).shared_bytes == 3072);
    CHECK(event_named(trace, "bar_f16").of_graph);
    CHECK(event_named(trace, "Memcpy DtoH").bytes == 4096);
    const Numbers numbers = numbers_of(trace);
    CHECK(numbers.steps.name == "iteration");
    CHECK(numbers.steps.each.size() == 2);
    CHECK(numbers.waits.size() == 1);
    CHECK(files_in(folder.path()) == files);
    CHECK(tests::file_text(file) == bytes);
    std::filesystem::remove(file);
  }
}

TEST_CASE("tables and columns that an export lacks get a sentence", "[profile]") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "report.sqlite";
  tests::write_sqlite(
      file,
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, name TEXT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 5, 'x'), (6, NULL, 'y'), (9, 8, 'z'), "
      "('a', 'b', 3);");
  const Trace trace = read_trace(file);
  CHECK(trace.events.size() == 1);
  CHECK(trace.notes.size() == 4);  // calls, ranges, GPU; three events left out
  check_contains(trace.notes.back(), "3 events were left out");
  check_contains(answers_of(trace, numbers_of(trace)).at(1).text, "does not say");
  tests::write_sqlite(
      file,
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER,"
      " streamId INTEGER, graphId INTEGER); INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, "
      "5, 0, 7, 3);");
  const Trace graphs = read_trace(file);
  CHECK(graphs.events.at(0).of_graph);
  CHECK(std::any_of(graphs.notes.begin(), graphs.notes.end(), [](const std::string& note) {
    return note.find("--cuda-graph-trace=node") != std::string::npos;
  }));
}

TEST_CASE("what is no trace is refused with one sentence", "[profile]") {
  const tests::TemporaryFolder folder;
  const std::string good = tests::kineto_trace().dump();
  const auto said = [&](const std::string& text) {
    return refusal([&] { read_text(folder, text); });
  };
  check_contains(said(""), "is empty");
  check_contains(said("hello"), "is no trace; allowed");
  check_contains(said(good.substr(0, good.size() / 2)), "is cut off");
  check_contains(said("{\"traceEvents\": [}"), "is no JSON");
  check_contains(said("{\"a\": 1}"), "has no list traceEvents");
  check_contains(said("{\"traceEvents\": []}"), "ProfilerActivity.CUDA");
  check_contains(said("[" + std::string(100'000, '[')), "nests deeper");
  check_contains(said("\x1f\x8b\x08\x00 this is not gzip"), "cannot be unpacked");
  for (const char* words :
       {R"("ts": 5, "dur": -1)", R"("ts": "5", "dur": 1)", R"("ts": 1e300, "dur": 1)",
        R"("dur": 1)", R"("ts": 9223372036854775808, "dur": 1)",
        R"("ts": 1, "dur": 9223372036854775807)"}) {
    const std::string bad =
        std::string(R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, )") + words +
        "}";
    INFO(words);
    const bool text = std::string(words).find("\"5\"") != std::string::npos;
    CHECK((said("[" + bad + "]").find("has no kernel") != std::string::npos) ==
          !text);  // a number in quotes is one
    const Trace rest = read_text(
        folder,
        "[" + bad +
            R"(, {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 3, "dur": 1}])");
    CHECK(rest.events.size() == (text ? 2u : 1u));
    if (!text) check_contains(rest.notes.at(0), "1 event was left out");
  }
  check_contains(refusal([&] { read_trace(folder.path()); }), "it is a folder");
  check_contains(refusal([&] { read_trace(folder.path() / "none.json"); }), "cannot be read");
  tests::write_text(folder.path() / "a.nsys-rep", "NVDA");
  check_contains(refusal([&] { read_trace(folder.path() / "a.nsys-rep"); }), "nsys export");
  // A file of 2 GB that has no bytes on the disk.
  tests::write_text(folder.path() / "large.json", "[");
  std::filesystem::resize_file(folder.path() / "large.json", std::uintmax_t{2} << 30);
  check_contains(refusal([&] { read_trace(folder.path() / "large.json"); }), "is no JSON: byte 2");
}

TEST_CASE("damaged, locked and foreign SQLite files are refused with one sentence", "[profile]") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "report.sqlite";
  const auto said = [&] { return refusal([&] { read_trace(file); }); };
  tests::write_sqlite(file, "CREATE TABLE notes (text TEXT);");
  check_contains(said(), "CUPTI_ACTIVITY_KIND_KERNEL");
  // A view and a virtual table are not what an export has.
  tests::write_sqlite(file,
                      "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE a(start, end) AS "
                      "(SELECT 1, 2 UNION ALL "
                      "SELECT start + 1, end + 1 FROM a) SELECT * FROM a;");
  check_contains(said(), "CUPTI_ACTIVITY_KIND_KERNEL");
  tests::write_sqlite(file, tests::nsight_sql());
  const std::string whole = tests::file_text(file);
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &other) == SQLITE_OK);
  REQUIRE(sqlite3_exec(other, "BEGIN EXCLUSIVE;", nullptr, nullptr, nullptr) == SQLITE_OK);
  check_contains(said(), "is locked");
  sqlite3_close(other);
  // Cut off anywhere, and bytes overwritten: it is refused, or what is left is read.
  for (std::size_t cut = 100; cut < whole.size(); cut += 997) {
    tests::write_text(file, whole.substr(0, cut));
    CHECK_NOTHROW(said());
    std::string damaged = whole;
    for (std::size_t i = 0; i < 64 && cut + i < whole.size(); ++i)
      damaged[cut + i] = static_cast<char>(i * 37);
    tests::write_text(file, damaged);
    CHECK_NOTHROW(said());
  }
  tests::write_text(file, whole.substr(0, 3000));
  check_contains(said(), "is damaged");
}

TEST_CASE("names of kernels are shortened to what tells them apart", "[profile]") {
  CHECK(short_name("void at::native::vectorized_elementwise_kernel<4, "
                   "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
                   "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)") ==
        "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, array<char*, 3ul> >");
  CHECK(short_name("void (anonymous namespace)::softmax<float>(float*)") == "softmax<float>");
  CHECK(short_name("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn") ==
        "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn");
  CHECK(short_name("_ZN7cutlass6KernelINS_4gemmEEEvT_") == "Kernel");
  CHECK(short_name("_Z9transposePfS_") == "transpose");
  for (const char* odd : {"", "_Z", "_ZN", "_ZN99x", "::", "a::", "<<<", ">>>", "(", "void ",
                          "_ZN99999999999999999999x"})
    CHECK_NOTHROW(short_name(odd));
}
