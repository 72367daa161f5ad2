#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/shared/task.hpp"

namespace tilestep::attention {

/// Q, K and V in BF16, laid out as the kernels take them, and where documents begin.
struct Inputs {
  std::vector<float> q, k, v;
  std::vector<int> begins;
};

/// Normal numbers of mean 0 and deviation 1, rounded to BF16. With `outliers` K has what was seen in
/// real models: a sixteenth of its channels lie 8 to 16 away from 0, in all rows of a head alike (Liu et al.,
/// "KIVI", 2024, arXiv:2402.02750; Zhang et al., "SageAttention", 2024, arXiv:2410.02367), and one number
/// of Q and K in 512 is three times as large.
Inputs make_inputs(const Task& task, Data data, std::int64_t seed);

/// The gradient of O: normal numbers of mean 0 and deviation 1, rounded to BF16.
std::vector<float> make_d_output(const Task& task, std::int64_t seed);

/// Lengths of documents that fill `length`, of a seed; each from 1 to half of it.
std::vector<int> document_lengths(int length, std::int64_t seed);
/// Where the document of each position begins.
std::vector<int> begins_of(const std::vector<int>& lengths);

/// Bit patterns of 16-bit numbers, as the kernels take them.
std::vector<std::uint16_t> words_of(const std::vector<float>& values);
std::vector<float> values_of(const std::vector<std::uint16_t>& words);

}  // namespace tilestep::attention
