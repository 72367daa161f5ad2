#include "kernels/base/inspect/fidelity.hpp"

#include <algorithm>
#include <set>

#include "kernels/base/workbench/cuda_words.hpp"

namespace tilestep::inspect {
namespace {

struct Difference {
  std::vector<std::string_view> words;  ///< parts of words, or whole with a space at both ends
  std::string_view sentence;
};

const Difference kDifferences[] = {
    {{" __expf ", " __exp10f ", " __logf ", " __log2f ", " __log10f ", " __sinf ", " __cosf ",
      " __tanf ", " __powf ", " __sincosf ", " __fdividef ", "ex2.approx"},
     "Fast math functions (__expf, __sinf, …) are the CPU's accurate ones; a GPU's last digits "
     "differ."},
    {{" expf ", " exp ", " logf ", " log ", " sinf ", " sin ", " cosf ", " cos ", " tanhf ",
      " tanh ", " powf ", " pow ", " erff ", " erf "},
     "Math functions are the CPU's; a GPU's may differ in the last digit."},
    {{" clock ", " clock64 ", "%clock", "%globaltimer"},
     "Clocks count the emulation's time, not a GPU's cycles."},
    {{" cudaEventElapsedTime "}, "Event times are the emulation's, and say nothing of a GPU."},
    {{" cudaStreamCreate", " cudaMemcpyAsync "},
     "Streams run in the order of their calls; overlap and its races do not show."},
    {{" __threadfence"},
     "Memory is sequentially consistent; faults that need a GPU's weaker order do not show."},
    {{" curand_normal", " curand_log_normal"},
     "Normal random numbers agree with cuRAND's to about six digits."},
    {{" wmma ", "mma.sync"},
     "Products of tensor cores are exact and summed in FP32; a GPU truncates partial sums."},
    {{" cublas"}, "cuBLAS calls run on the CPU, and have no requests to trace."},
};

}  // namespace

std::vector<std::string> differences_in(std::string_view source) {
  std::vector<std::string> all;
  const std::set<std::string> words = workbench::words_in(source);
  for (const Difference& each : kDifferences) {
    const bool has = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      const std::string spaced = " " + word + " ";
      return std::any_of(each.words.begin(), each.words.end(),
                         [&](std::string_view part) { return spaced.find(part) != spaced.npos; });
    });
    if (has) all.emplace_back(each.sentence);
  }
  return all;
}

}  // namespace tilestep::inspect
