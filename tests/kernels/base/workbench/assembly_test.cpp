// PTX and SASS as their tools write them, by the lines of the source.

#include "kernels/base/workbench/assembly.hpp"

#include <nlohmann/json.hpp>

#include "kernels/base/workbench/assembly_lines.hpp"
#include "kernels/base/workbench/assembly_request.hpp"
#include "tests/catch.hpp"

namespace tilestep::workbench {
namespace {

constexpr std::string_view kAssembled = "kernels/memory/coalescing/access.cu";

TEST_CASE("PTX has its kernels, and each instruction its line of the source", "[workbench]") {
  auto kernels = read_ptx(
      ".version 9.0\n"
      ".visible .entry _ZN8tilestep12cuda_backend4copyIfEEvPT_(\n"
      "\t.param .u64 p0\n)\n{\n"
      "\t.reg .b32 \t%r<3>;\n"
      "\t.loc\t1 12 3\n"
      "\tmov.u32 \t%r1, %tid.x;\n"
      "$L__tmp3:\n"
      "\t.loc\t2 30 1, function_name $L__info_string0, inlined_at 1 14 5\n"
      "\tadd.s32 \t%r2, %r1, 1;\n"
      "\t.loc\t2 31 1\n"
      "\tret;\n"
      "}\n"
      ".visible .entry second()\n{\n\tret;\n}\n"
      "\t.file\t1 \"/c/edited/kernels/memory/coalescing/access.cu\"\n"
      "\t.file\t2 \"/c/headers/kernels/base/simt/tape.hpp\"\n",
      kAssembled);
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].name == "copy<float>");
  REQUIRE(kernels[0].lines.size() == 4);
  CHECK(kernels[0].lines[0].line == 0);
  CHECK(kernels[0].lines[1].text == "mov.u32 \t%r1, %tid.x;");
  CHECK(kernels[0].lines[1].line == 12);
  CHECK(kernels[0].lines[2].line == 14);
  CHECK(kernels[0].lines[3].line == 0);
  CHECK(kernels[1].lines.size() == 1);

  read_resources(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_ZN8tilestep12cuda_backend4copyIfEEvPT_' for "
      "'sm_90a'\n"
      "ptxas info    : Function properties for _ZN8tilestep12cuda_backend4copyIfEEvPT_\n"
      "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 256 "
      "bytes smem\n",
      kernels);
  CHECK(kernels[0].registers == 40);
  CHECK(kernels[0].stack_bytes == 16);
  CHECK(kernels[0].spill_store_bytes == 8);
  CHECK(kernels[0].spill_load_bytes == 12);
  CHECK(kernels[0].shared_bytes == 256);
  CHECK(kernels[1].registers == -1);
}

TEST_CASE("SASS has the innermost line of the source", "[workbench]") {
  const auto kernels = read_sass(
      "\t.section\t.nv.info,\"\",@\"SHT_CUDA_INFO\"\n"
      "\t.section\t.text._Z4copyPf,\"ax\",@progbits\n"
      ".text._Z4copyPf:\n"
      "        //## File \"/c/edited/kernels/memory/coalescing/access.cu\", line 12\n"
      "        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
      "        //## File \"/c/headers/kernels/base/simt/tape.hpp\", line 9 inlined at "
      "\"/c/edited/kernels/memory/coalescing/access.cu\", line 14\n"
      "        //## File \"/c/edited/kernels/memory/coalescing/access.cu\", line 14\n"
      "        /*0010*/                   S2R R0, SR_TID.X ;\n"
      ".L_x_0:\n"
      "        /*0020*/                   EXIT ;\n"
      "\t.section\t.debug_line,\"\",@progbits\n"
      "        /*0030*/                   NOP ;\n",
      kAssembled);
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].name == "copy");
  REQUIRE(kernels[0].lines.size() == 4);
  CHECK(kernels[0].lines[0].text == "LDC R1, c[0x0][0x28] ;");
  CHECK(kernels[0].lines[0].line == 12);
  CHECK(kernels[0].lines[1].line == 14);
  CHECK(kernels[0].lines[2].text == ".L_x_0:");
}

TEST_CASE("what was inlined belongs to each line that it was inlined at", "[workbench]") {
  // plus() at 70, called in sum() at 40, called at 124; between them a helper of a header.
  const auto ptx = read_ptx(
      ".visible .entry f()\n{\n"
      "\t.loc\t1 124 3\n"
      "\t.loc\t1 40 9, function_name $L1, inlined_at 1 124 3\n"
      "\t.loc\t2 8 1, function_name $L2, inlined_at 1 40 9\n"
      "\t.loc\t1 70 5, function_name $L3, inlined_at 2 8 1\n"
      "\tadd.f32 \t%f1, %f2, %f3;\n"
      "\t.loc\t1 125 3\n"
      "\tmul.f32 \t%f1, %f2, %f3;\n"
      "\t.loc\t1 40 9\n"  // the same place, called by nobody now
      "\tret;\n"
      "}\n"
      "\t.file\t1 \"/c/edited/kernels/memory/coalescing/access.cu\"\n"
      "\t.file\t2 \"/c/headers/kernels/base/simt/tape.hpp\"\n",
      kAssembled);
  REQUIRE(ptx.size() == 1);
  REQUIRE(ptx[0].lines.size() == 3);
  CHECK(ptx[0].lines[0].line == 70);
  CHECK(ptx[0].lines[0].callers == std::vector<int>{40, 124});
  CHECK(ptx[0].lines[1].line == 125);
  CHECK(ptx[0].lines[1].callers.empty());
  CHECK(ptx[0].lines[2].line == 40);
  CHECK(ptx[0].lines[2].callers.empty());

  const auto sass = read_sass(
      "\t.section\t.text._Z1fv,\"ax\",@progbits\n"
      "        //## File \"/c/edited/kernels/memory/coalescing/access.cu\", line 70 inlined at "
      "\"/c/headers/kernels/base/simt/tape.hpp\", line 8\n"
      "        //## File \"/c/headers/kernels/base/simt/tape.hpp\", line 8 inlined at "
      "\"/c/edited/kernels/memory/coalescing/access.cu\", line 124\n"
      "        //## File \"/c/edited/kernels/memory/coalescing/access.cu\", line 124\n"
      "        /*0000*/                   FADD R1, R2, R3 ;\n"
      "        /*0010*/                   FMUL R1, R2, R3 ;\n"
      "        //## File \"/c/headers/kernels/base/simt/tape.hpp\", line 9\n"
      "        /*0020*/                   EXIT ;\n",
      kAssembled);
  REQUIRE(sass.size() == 1);
  REQUIRE(sass[0].lines.size() == 3);
  for (const int at : {0, 1}) {
    CHECK(sass[0].lines[static_cast<std::size_t>(at)].line == 70);
    CHECK(sass[0].lines[static_cast<std::size_t>(at)].callers == std::vector<int>{124});
  }
  CHECK(sass[0].lines[2].line == 0);
}

AssemblyKernel kernel_with(std::string name, std::vector<AssemblyLine> lines) {
  AssemblyKernel kernel;
  kernel.symbol = kernel.name = std::move(name);
  kernel.lines = std::move(lines);
  return kernel;
}

TEST_CASE("a line leads to its first instruction, and to a kernel that has one", "[workbench]") {
  const std::vector<AssemblyKernel> kernels = {
      kernel_with("taped", {{"a;", 0}, {"b;", 12}, {"note;", 12}, {"c;", 70, {14}}}),
      kernel_with("timed", {{"a;", 0}, {"b;", 12}, {"c;", 70, {14}}}),
      kernel_with("other", {{"d;", 31}, {"e;", 70, {32}}}), kernel_with("empty", {{"f;", 0}})};
  CHECK(row_of_line(kernels[0], 12) == 1);
  CHECK(row_of_line(kernels[0], 14) == 3);  // by a call
  CHECK(row_of_line(kernels[0], 13) == -1);
  CHECK(row_of_line(kernels[0], 0) == -1);     // those of no line are of no line
  CHECK(kernel_of_line(kernels, 12, 0) == 0);  // the one on show has it
  CHECK(kernel_of_line(kernels, 12, 2) == 1);  // else the shortest that has
  CHECK(kernel_of_line(kernels, 31, 0) == 2);
  CHECK(kernel_of_line(kernels, 13, 0) ==
        0);  // nothing came of it: the nearest, and the one on show
  CHECK(kernel_of_line(kernels, 33, -1) == 2);
  CHECK(kernel_of_line({}, 12, 0) == 0);
  CHECK(place_of(kernels, "other") == 2);
  CHECK(place_of(kernels, "gone") == -1);
}

TEST_CASE("what a kernel takes is said in words, and what nobody says is left out", "[workbench]") {
  AssemblyKernel kernel;
  CHECK(resources_of(kernel).empty());
  kernel.registers = 40;
  CHECK(resources_of(kernel) == "40 registers");
  kernel.spill_store_bytes = kernel.spill_load_bytes = kernel.stack_bytes = 0;
  kernel.shared_bytes = 49152;
  CHECK(resources_of(kernel) == "40 registers · no spills · 48 KiB shared · no stack");
  kernel.spill_store_bytes = 8;
  kernel.spill_load_bytes = 12;
  kernel.stack_bytes = 16;
  kernel.shared_bytes = 256;
  CHECK(resources_of(kernel) ==
        "40 registers · spills: 8 B stored, 12 B loaded · 256 B shared · 16 B stack");
  CHECK(resources_of(kernel, true) == "40 reg · 8/12 B spilled · 256 B shared");
}

TEST_CASE("mangled names in an instruction are read", "[workbench]") {
  CHECK(readable_instruction(
            "ld.param.u64 %rd1, [_ZN8tilestep12cuda_backend4copyIfEEvPT_i_param_0];") ==
        "ld.param.u64 %rd1, [param_0];");
  CHECK(readable_instruction("mov.u32 %r1, _ZZN8tilestep4copyEPfE4tile;") == "mov.u32 %r1, tile;");
  CHECK(readable_instruction("add.f32 %f1, %f2, %f3;") == "add.f32 %f1, %f2, %f3;");
  CHECK(readable_instruction("call foo_Zebra;") == "call foo_Zebra;");
}

TEST_CASE("assembly goes to JSON and back, and what is damaged is named", "[workbench]") {
  const AssemblyRequest request{
      "coalescing", {std::string(kAssembled), "text\n"}, AssemblyForm::sass, 86};
  CHECK(assembly_request_from_json(to_json(request)) == request);
  Assembly assembly;
  assembly.info = {std::string(kAssembled), "0123456789abcdef", "nvcc 13.0", 12, true, {}};
  assembly.kernels = {kernel_with("f", {{"a;", 0}, {"b;", 70, {40, 124}}}), kernel_with("g", {})};
  assembly.kernels[0].registers = 40;
  const nlohmann::json written = to_json(assembly);
  const Assembly again = assembly_from_json(written);
  CHECK(to_json(again) == written);
  REQUIRE(again.kernels.size() == 2);
  CHECK(again.kernels[0].registers == 40);
  CHECK(again.kernels[1].registers == -1);
  REQUIRE(again.kernels[0].lines.size() == 2);
  CHECK(again.kernels[0].lines[1].callers == std::vector<int>{40, 124});

  const auto refused = [](nlohmann::json json, const char* what) {
    try {
      assembly_request_from_json(json);
    } catch (const Error& error) {
      CAPTURE(error.what());
      CHECK(std::string(error.what()).find(what) != std::string::npos);
      return;
    }
    FAIL("not refused: " << json.dump());
  };
  nlohmann::json damaged = to_json(request);
  damaged["form"] = "llvm";
  refused(damaged, "ptx, sass");
  damaged = to_json(request);
  damaged["capability"] = "9.0";
  refused(damaged, "capability");
  damaged = to_json(request);
  damaged["kernel"].erase("text");
  refused(damaged, "text");
  damaged = written;
  damaged["kernels"][0]["lines"]["line"].erase(0);
  CHECK_THROWS_AS(assembly_from_json(damaged), Error);
}

TEST_CASE("names are short", "[workbench]") {
  CHECK(short_name_of(
            "void tilestep::a::cuda_backend::f<tilestep::b::Fp32, 4>(float*, tilestep::c)") ==
        "f<Fp32, 4>");
  CHECK(short_name_of("f(int)") == "f");
  CHECK(short_name_of("") == "");
}

}  // namespace
}  // namespace tilestep::workbench
