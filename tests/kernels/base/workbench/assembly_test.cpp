// PTX and SASS as their tools write them, by the lines of the source.

#include "kernels/base/workbench/assembly.hpp"

#include "tests/catch.hpp"

namespace tilestep::workbench {
namespace {

constexpr std::string_view kPath = "kernels/memory/coalescing/access.cu";

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
      kPath);
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
      kPath);
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].name == "copy");
  REQUIRE(kernels[0].lines.size() == 4);
  CHECK(kernels[0].lines[0].text == "LDC R1, c[0x0][0x28] ;");
  CHECK(kernels[0].lines[0].line == 12);
  CHECK(kernels[0].lines[1].line == 14);
  CHECK(kernels[0].lines[2].text == ".L_x_0:");
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
