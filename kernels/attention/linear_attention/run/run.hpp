#pragma once

#include <vector>

#include "kernels/attention/linear_attention/lesson.hpp"
#include "kernels/attention/linear_attention/reference.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/lesson.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::linear_attention {

/// What launches left.
struct Results {
  Words o;                   ///< heads × tokens × dim
  std::vector<float> state;  ///< heads × dim × dim
};

/// Heads of one shape on the device, with room for what the chunked kernels leave for each other.
class Memory {
 public:
  /// `q` and `k` are mapped; gates and betas may be empty where the rule has none.
  Memory(simt::Device& device, const Shape& shape, const Words& q, const Words& k, const Words& v,
         const std::vector<float>& log_gates, const std::vector<float>& betas);
  Arrays arrays();
  const Shape& shape() const { return shape_; }
  /// Overwrites everything that launches leave, so that what they do not write is no number.
  void forget();
  Results results() const { return {o_.download(), state_.download()}; }

 private:
  Shape shape_;
  simt::Buffer<std::uint16_t> q_, k_, v_;
  simt::Buffer<float> log_gates_, betas_;
  simt::Buffer<std::uint16_t> o_, states_, values_, readers_;
  simt::Buffer<float> state_, decays_;
};

/// The results of a run.
struct Run {
  Params params;
  Inputs inputs;
  Words mapped_q, mapped_k;
  Results recurrent;               ///< timed, token by token
  std::vector<Results> by_chunks;  ///< timed, by chunks of 16, 32, 64
  Results shown;                   ///< explained, by chunks, without a mistake
  std::vector<float> all_answers;  ///< 3 × dim
  Trace trace;
};
inline constexpr int kChunks[] = {16, 32, 64};
/// Runs the kernels. Throws Error as the device does.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);
/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);

/// An output in memory, or a state, against the reference.
lab::Closest compared(const Words& o, const numeric::AllBounded& exact, int dim);
lab::Closest compared(const std::vector<float>& got, const numeric::AllBounded& exact);
Head head_of(const Run& run);

}  // namespace tilestep::linear_attention
