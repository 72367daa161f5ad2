#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/base/simt/error.hpp"
#include "tests/catch.hpp"

/// Small traces of both formats, written by the tests themselves.
namespace tilestep::tests {

inline void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

/// An event of a Chrome trace; times in microseconds.
inline nlohmann::json chrome_event(const char* category, const std::string& name, int pid, int tid,
                                   double begin_us, double length_us,
                                   nlohmann::json args = nlohmann::json::object()) {
  return {{"ph", "X"},  {"cat", category}, {"name", name},     {"pid", pid},
          {"tid", tid}, {"ts", begin_us},  {"dur", length_us}, {"args", std::move(args)}};
}

/// Two steps on one GPU: a copy in, a GEMM that the host launches late, a small kernel from a graph, a wait.
inline nlohmann::json kineto_trace() {
  using nlohmann::json;
  json events = json::array();
  events.push_back({{"ph", "M"},
                    {"name", "process_name"},
                    {"pid", 50},
                    {"tid", 0},
                    {"args", {{"name", "python"}}}});
  for (int step = 0; step < 2; ++step) {
    const double at = 1000.0 * step;
    const int id = 10 * step;
    events.push_back(chrome_event("user_annotation", "ProfilerStep#" + std::to_string(step + 3), 50,
                                  51, at, 900));
    events.push_back(chrome_event("cuda_runtime", "cudaMemcpyAsync", 50, 51, at + 10, 5,
                                  {{"correlation", id + 1}}));
    events.push_back(
        chrome_event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 7, at + 20, 10,
                     {{"device", 0}, {"stream", 7}, {"correlation", id + 1}, {"bytes", 250000}}));
    events.push_back(chrome_event("cpu_op", "aten::mm", 50, 51, at + 300, 60,
                                  {{"External id", id + 2},
                                   {"Input Dims", {{8, 4097}, {4097, 64}, json::array()}},
                                   {"Input type", {"c10::BFloat16", "c10::BFloat16", "Scalar"}}}));
    events.push_back(chrome_event("cuda_runtime", "cudaLaunchKernel", 50, 51, at + 330, 10,
                                  {{"correlation", id + 2}, {"External id", id + 2}}));
    events.push_back(
        chrome_event("kernel", "void cutlass::Kernel<float, cutlass::gemm::Tile<8> >(int, float*)",
                     0, 7, at + 350, 200,
                     {{"device", 0},
                      {"stream", 7},
                      {"correlation", id + 2},
                      {"External id", id + 2},
                      {"registers per thread", 96},
                      {"shared memory", 4096},
                      {"grid", {16, 2, 1}},
                      {"block", {128, 1, 1}},
                      {"est. achieved occupancy %", 25}}));
    events.push_back(chrome_event("cuda_runtime", "cudaGraphLaunch", 50, 51, at + 360, 10,
                                  {{"correlation", id + 3}}));
    events.push_back(chrome_event("kernel", "small", 0, 9, at + 500, 60,
                                  {{"device", 0}, {"stream", 9}, {"correlation", id + 3}}));
    events.push_back(chrome_event("cuda_runtime", "cudaStreamSynchronize", 50, 51, at + 400, 170,
                                  {{"correlation", id + 4}}));
  }
  return {{"schemaVersion", 1},
          {"deviceProperties", {{{"id", 0}, {"name", "NVIDIA H200"}, {"numSms", 132}}}},
          {"baseTimeNanoseconds", 1767225600000000000},
          {"traceEvents", events}};
}

/// An SQLite file made of statements.
inline void write_sqlite(const std::filesystem::path& file, const std::string& sql) {
  std::filesystem::remove(file);
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &database) == SQLITE_OK);
  char* wrong = nullptr;
  const int code = sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &wrong);
  INFO((wrong == nullptr ? "" : wrong));
  REQUIRE(code == SQLITE_OK);
  sqlite3_close(database);
}

/// As Nsight Systems exports it: two kernels and a copy of one process, with calls, ranges and names.
inline std::string nsight_sql() {
  constexpr const char* kTid = "281474993487873";  // process 256 << 24, thread 1
  const std::string tid = kTid;
  return R"(
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'void at::native::foo<c10::BFloat16>(int)'), (2, 'foo'), (3, 'cudaLaunchKernel_v7000'),
  (4, 'cudaMemcpy_v3020'), (5, 'aten::add, seq = 3, sizes = [[8, 64], [64]]'), (6, 'main thread'), (7, 'bar_f16');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER,
  registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER,
  staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
  (2000, 5000, 1, 1, 7, 11, )" +
         tid + R"( / 16777216 * 16777216, 1, 2, 40, 132, 1, 1, 256, 1, 1, 1024, 2048, NULL),
  (9000, 9500, 1, 1, 7, 12, )" +
         tid + R"( / 16777216 * 16777216, 7, 7, 20, 4, 1, 1, 32, 1, 1, 0, 0, 5);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (6000, 7000, 1, 7, 13, )" +
         tid + R"( / 16777216 * 16777216, 4096, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000, 1500, 0, )" +
         tid + R"(, 11, 3, 0), (8000, 8200, 0, )" + tid + R"(, 12, 3, 0), (5200, 7100, 0, )" + tid +
         R"(, 13, 4, 0);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER);
INSERT INTO NVTX_EVENTS VALUES (900, 1600, 59, NULL, )" +
         tid + R"(, 5), (800, 5100, 59, 'iteration 1', )" + tid +
         R"(, NULL), (5150, 9900, 59, 'iteration 2', )" + tid +
         R"(, NULL), (1, NULL, 34, 'a mark', )" + tid + R"(, NULL);
CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER);
INSERT INTO ThreadNames VALUES (6, 0, )" +
         tid + R"();
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, smCount INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'another', 1), (1, 'NVIDIA L4', 58);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1767225600000000000, '2026-01-01');
)";
}

/// What it says where `what` throws Error; empty: it does not.
template <class What>
std::string refusal(const What& what) {
  try {
    what();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace tilestep::tests
