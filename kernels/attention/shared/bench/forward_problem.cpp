#include "kernels/attention/shared/bench/forward_problem.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/attention/shared/problem.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::attention {
namespace {

/// Of no size that a row could have, so that no two rows are alike.
constexpr std::size_t kPeriod = (std::size_t{1} << 18) + 3;

std::vector<std::uint16_t> normal_words(std::size_t most, unsigned seed) {
  std::mt19937 generator = lab::generator_of(seed);
  return words_of(lab::normal_floats(generator, std::min(most, kPeriod)));
}

std::size_t numbers_of(const Task& task, int heads) {
  return numeric::elements_of(heads, task.length()) * static_cast<std::size_t>(task.head_dim);
}

}  // namespace

ForwardProblem::ForwardProblem(simt::Device& device, const Task& task)
    : device_(device),
      task_(task),
      q_(device, numbers_of(task, task.heads), normal_words(numbers_of(task, task.heads), 21)),
      k_(device, numbers_of(task, task.kv_heads),
         normal_words(numbers_of(task, task.kv_heads), 22)),
      v_(device, numbers_of(task, task.kv_heads),
         normal_words(numbers_of(task, task.kv_heads), 23)),
      o_(device, numbers_of(task, task.heads)),
      lse_(device, numeric::elements_of(task.heads, task.length())) {
  const int length = task.length();
  for (const int head : {0, task.heads - 1}) {
    for (const int query : {0, length / 3, length - 1}) probes_.push_back({head, query});
  }
}

double ForwardProblem::flops() const {
  const double length = task_.length();
  const double all = 4 * length * length * task_.head_dim * task_.heads;
  return task_.rule.mask == Mask::causal ? all / 2 : all;
}

double ForwardProblem::bytes() const {
  return static_cast<double>(q_.bytes() + k_.bytes() + v_.bytes() + o_.bytes() + lse_.bytes());
}

lab::Repeated<std::uint16_t> ForwardProblem::numbers(unsigned seed) const {
  return {device_, o_.count(), normal_words(o_.count(), seed)};
}

Numbers ForwardProblem::numbers_of_head(int head) const {
  const std::size_t count = numeric::elements_of(task_.length(), task_.head_dim);
  const auto head_of = [&](const lab::Repeated<std::uint16_t>& from, int which) {
    const auto words = from.values(static_cast<std::size_t>(which) * count, count);
    const std::vector<float> values = values_of(words);
    return std::vector<double>(values.begin(), values.end());
  };
  const int kv_head = head / (task_.heads / task_.kv_heads);
  return {head_of(q_, head), head_of(k_, kv_head), head_of(v_, kv_head), {}};
}

const Reference& ForwardProblem::reference(const std::string& as, const Roundings& roundings) {
  const auto found = references_.find(as);
  if (found != references_.end()) return found->second;
  Reference reference;
  const Task one{task_.rule, 1, 1, task_.head_dim, ScoreMod::none};
  int head = -1;
  Numbers numbers;
  for (const Probe& probe : probes_) {
    if (probe.head != head) {
      head = probe.head;
      numbers = numbers_of_head(head);
    }
    add_reference(reference, one, numbers, 0, probe.query, roundings);
  }
  return references_.emplace(as, std::move(reference)).first->second;
}

lab::Closest ForwardProblem::compared(const std::string& as, const Roundings& roundings,
                                      double slack) {
  const Reference& exact = reference(as, roundings);
  lab::Closest closest;
  const auto columns = static_cast<std::size_t>(task_.head_dim);
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    const std::size_t row = numeric::index_of(probes_[i].head, probes_[i].query, task_.length());
    const std::vector<float> o = values_of(o_.download(row * columns, columns));
    for (std::size_t c = 0; c < columns; ++c) {
      closest.add(o[c], exact.o.value[i * columns + c], slack * exact.o.bound[i * columns + c]);
    }
  }
  return closest;
}

lab::Runnable ForwardProblem::judged(std::function<void()> launch, const std::string& as,
                                     const Roundings& roundings, double slack) {
  return lab::judged(device_, o_, std::move(launch),
                     [this, as, roundings, slack] { return compared(as, roundings, slack); });
}

}  // namespace tilestep::attention
