#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/app/child.hpp"

namespace tilestep::tests {

/// A CUDA Toolkit that is none: nvcc, ptxas and nvdisasm as shell scripts that answer with recorded texts about
/// kernels/attention/online_softmax/one_pass.cu, so that everything round them is tested where there is no toolkit.
class FakeCudaTools {
 public:
  struct Options {
    double nvcc_seconds = 0;   ///< that it takes
    bool disassembles = true;  ///< there is an nvdisasm
    std::string error = {};    ///< nvcc fails, and says this
  };
  FakeCudaTools() : FakeCudaTools(Options()) {}
  explicit FakeCudaTools(const Options& options) {
    write("ptx", kPtx);
    write("sass", kSass);
    write("error", options.error);
    script("nvcc",
           "case \"$*\" in *--version*) echo 'Cuda compilation tools, release 13.0, V13.0.88'; "
           "exit;; esac\n"
           "echo run >> \"$here/nvcc.runs\"\n"
           "sleep " +
               std::to_string(options.nvcc_seconds) +
               "\n"
               "if [ -s \"$here/error\" ]; then cat \"$here/error\" >&2; exit 1; fi\n"
               "cp \"$here/ptx\" \"$out\"\n");
    script("ptxas", "cat <<'END' >&2\n" + std::string(kSaid) + "END\n: > \"$out\"\n");
    if (options.disassembles) script("nvdisasm", "cat \"$here/sass\"\n");
  }

  std::string nvcc() const { return (folder_.path() / "nvcc").string(); }
  /// For a program that is to find these and no others.
  Environment environment() const {
    return {{"TILESTEP_NVCC", nvcc()},
            {"TILESTEP_CACHE", (folder_.path() / "cache").string()},
            {"PATH", "/usr/bin:/bin"}};
  }
  /// How often nvcc has compiled.
  std::size_t runs() const {
    return file_text(folder_.path() / "nvcc.runs").size() / std::string_view("run\n").size();
  }

 private:
  void write(const char* name, std::string_view text) const {
    std::ofstream(folder_.path() / name) << text;
  }
  void script(const char* name, const std::string& body) const {
    write(
        name,
        "#!/bin/sh\nhere=$(dirname \"$0\"); out=; for word; do [ \"$before\" = -o ] && out=$word; "
        "before=$word; done\n" +
            body);
    std::filesystem::permissions(folder_.path() / name, std::filesystem::perms::owner_all);
  }

  static constexpr std::string_view kPtx =
      ".version 9.0\n.target sm_90a\n"
      ".visible .entry _Z4loopIfEvPT_(\n\t.param .u64 _Z4loopIfEvPT__param_0\n)\n{\n"
      "\t.reg .b32 \t%r<3>;\n"
      "\t.loc\t1 105 3\n"
      "\tmax.f32 \t%f1, %f2, %f3;\n"
      "\t.loc\t1 124 5\n"
      "\t.loc\t1 70 5, function_name $L1, inlined_at 1 124 5\n"
      "\tmul.rn.f32 \t%f4, %f1, %f2;\n"
      "\tret;\n}\n"
      ".visible .entry _Z5otherv()\n{\n"
      "\t.loc\t1 160 3\n"
      "\tld.global.f32 \t%f1, [%rd1];\n"
      "\tret;\n}\n"
      ".visible .entry _Z9elsewherev()\n{\n\tret;\n}\n"
      "\t.file\t1 \"/c/edited/kernels/attention/online_softmax/one_pass.cu\"\n";
  static constexpr std::string_view kSass =
      "\t.section\t.text._Z4loopIfEvPT_,\"ax\",@progbits\n"
      "        //## File \"/c/edited/kernels/attention/online_softmax/one_pass.cu\", line 105\n"
      "        /*0000*/                   FMNMX R1, R2, R3, !PT ;\n"
      "        //## File \"/c/edited/kernels/attention/online_softmax/one_pass.cu\", line 124\n"
      "        /*0010*/                   FMUL R4, R1, R2 ;\n"
      "        /*0020*/                   EXIT ;\n";
  static constexpr std::string_view kSaid =
      "ptxas info    : Compiling entry function '_Z4loopIfEvPT_' for 'sm_90a'\n"
      "ptxas info    : Function properties for _Z4loopIfEvPT_\n"
      "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 256 bytes smem\n";

  TemporaryFolder folder_;
};

}  // namespace tilestep::tests
