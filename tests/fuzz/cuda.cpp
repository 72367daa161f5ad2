// CUDA sources, as the emulation rewrites them.
#include <algorithm>

#include "kernels/base/workbench/cuda_words.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

using workbench::for_emulation;
using workbench::Written;

std::string without(std::string_view bytes, std::string_view signs) {
  std::string text(bytes);
  std::erase_if(text, [&](char c) { return signs.find(c) != signs.npos; });
  return text;
}

void rewrite(std::string_view bytes) {
  for (const Written written : {Written::kernels, Written::program, Written::timed}) {
    const std::string text = for_emulation(bytes, written);
    require(
        std::count(text.begin(), text.end(), '\n') == std::count(bytes.begin(), bytes.end(), '\n'),
        "every line stays where it is");
    for (const std::string& kept :
         {"/*" + without(bytes, "*") + "*/", "//" + without(bytes, "\n"),
          "\"" + without(bytes, "\"\\\n") + "\"", "R\"x(" + without(bytes, ")") + ")x\""}) {
      require(for_emulation(kept, written) == kept, "comments and strings stay as they are");
    }
  }
  workbench::included_by(bytes);
}

const Target kTarget("cuda", rewrite);

}  // namespace
}  // namespace tilestep::fuzz
