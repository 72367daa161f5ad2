#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "app/shell/inspection.hpp"

namespace tilestep::tests {

/// What `tilestep inspect` may say of a program of 40 lines: a mistake, a slow line in global memory and one in shared.
inline app::Inspected inspected() {
  app::Inspected all{"a_program_with_quite_a_long_name_that_a_student_gave_it.cu", {}, {}};
  for (int line = 1; line <= 40; ++line) {
    all.source += line == 12 ? "  if (row < rows && column < columns) out[column * rows + row] = "
                               "tile[threadIdx.x][threadIdx.y];  // a long line\n"
                             : "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n";
  }
  lab::Report& report = all.report;
  report.lesson = "inspect";
  report.summary = "3 launches ran: 1 mistake, 2 things that are slow.";
  report.device.backend = "emulated";
  lab::Table findings{
      "findings",
      "What was found",
      {"kind", lab::column("mistake", "mistake"), lab::whole("line"), lab::whole("other_line"),
       lab::whole("launch"), lab::column("text", "what"), lab::column("lesson", "lesson"),
       lab::whole("stop"), lab::column("exercise", "exercise")}};
  findings.add({"shared_race", "yes", 8, 10, 1,
                "transpose: thread (1,0,0) of block (0,0,0) reads byte 0 of tile, which thread "
                "(0,0,0) has written; no barrier is between the two",
                "tiling", 4, "tiling/find-the-missing-barrier"});
  findings.add({"coalescing", "no", 12, lab::Cell(), 1,
                "transpose: a warp's store moves 32 sectors of 32 bytes where 4 would hold what it "
                "uses: 12 % of the bytes are used",
                "coalescing", 9, "coalescing/walk-along-the-row"});
  findings.add({"bank_conflict", "no", 12, lab::Cell(), 1,
                "transpose: a warp's load takes 32 turns of the banks where 1 would do", "tiling",
                10, "coalescing/pad-the-tile"});
  report.add(findings);
  lab::Table accesses{"accesses",
                      "Accesses by line",
                      {lab::whole("launch"), lab::column("kernel", "kernel"), lab::whole("line"),
                       lab::column("space", "space")}};
  accesses.add({1, "transpose", 8, "global"});
  accesses.add({1, "transpose", 12, "shared"});
  report.add(accesses);
  lab::Table branches{"branches",
                      "Branches",
                      {lab::whole("launch"), lab::column("kernel", "kernel"), lab::whole("line"),
                       lab::whole("warps", "warp executions"), lab::whole("split", "divergent"),
                       lab::real("share", "divergent", "%", 1)}};
  branches.add({1, "transpose", 20, 64, 48, 75.0});
  report.add(branches);
  lab::Table events{"events",
                    "Program",
                    {lab::column("what", "what"), lab::whole("line"), lab::column("name", "name"),
                     lab::column("detail", "detail"), lab::whole("stream"), lab::whole("launch")}};
  events.add({"allocate", 30, "d_in", "", 0, lab::Cell()});
  events.add({"copy", 31, "d_in", "host to device", 1, lab::Cell()});
  events.add({"launch", 32, "transpose", "4 blocks of 256 threads", 1, 1});
  events.add({"wait", 33, "cudaDeviceSynchronize", "", 0, lab::Cell()});
  report.add(events);
  lab::Table roofline{"roofline",
                      "Roofline (H100 SXM)",
                      {lab::whole("launch"), lab::column("kernel", "kernel"),
                       lab::real("intensity", "arithmetic intensity", "FLOP/B", 3)}};
  roofline.add({1, "transpose", 0.25});
  roofline.add({2, "a_kernel_whose_name_is_long<float, 128>", 60.0});
  report.add(roofline);
  lab::Table measured{"measured",
                      "Measured on an NVIDIA H100",
                      {lab::whole("launch"), lab::column("kernel", "kernel"),
                       lab::real("gflop_s", "operations", "GFLOP/s", 0)}};
  measured.add({1, "transpose", 620.0});
  report.add(measured);
  nlohmann::json near = nlohmann::json::array(), far = nlohmann::json::array();
  for (int lane = 0; lane < 32; ++lane) {
    near.push_back(4 * lane);
    far.push_back(128 * lane);
  }
  const auto request = [](int line, const char* space, const char* use, int moved, int least,
                          const nlohmann::json& offsets) {
    return nlohmann::json{{"launch", 1},    {"line", line},      {"space", space}, {"use", use},
                          {"bytes", 4},     {"block", 0},        {"warp", 7},      {"moved", moved},
                          {"least", least}, {"offsets", offsets}};
  };
  nlohmann::json lanes = nlohmann::json::array(), few = nlohmann::json::array();
  for (int lane = 0; lane < 32; ++lane) {
    lanes.push_back(lane);
    few.push_back(lane < 5 ? 1 : 0);
  }
  report.trace = nlohmann::json{
      {"gpu", {{"name", "H100 SXM"}, {"memory_tb_s", 3.35}, {"fp32_tflops", 67.0}}},
      {"paths",
       {{{"launch", 1},
         {"kernel", "transpose"},
         {"block", 0},
         {"warp", 3},
         {"lines",
          {{{"line", 20}, {"warp", 31}, {"lanes", lanes}},
           {{"line", 21}, {"warp", 40}, {"lanes", lanes}},
           {{"line", 22}, {"warp", 40}, {"lanes", lanes}},
           {{"line", 24}, {"warp", 1}, {"lanes", few}}}}}}},
      {"source", "program.cu"},
      {"status", 0},
      {"printed", "sum 12\n"},
      {"worst",
       {request(8, "global", "load", 4, 4, near), request(12, "global", "store", 32, 4, far),
        request(12, "shared", "load", 32, 1, far)}}};
  return all;
}

}  // namespace tilestep::tests
