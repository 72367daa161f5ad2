#include "kernels/attention/flash_attention/bench/problem.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/attention/flash_attention/shared/problem.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::flash_attention {
namespace {

/// Of no size that a row could have, so that no two rows are alike.
constexpr std::size_t kPeriod = (std::size_t{1} << 18) + 3;

std::vector<std::uint16_t> normal_words(std::size_t most, unsigned seed) {
  std::mt19937 generator = lab::generator_of(seed);
  std::vector<std::uint16_t> words(std::min(most, kPeriod));
  for (std::uint16_t& word : words) {
    const double radius = std::sqrt(-2 * std::log(lab::uniform(generator)));
    const double angle = 2 * std::numbers::pi * lab::uniform(generator);
    word = numeric::Bf16::bits(static_cast<float>(radius * std::cos(angle)));
  }
  return words;
}

std::size_t numbers_of(const Task& task, int heads) {
  return numeric::elements_of(heads, task.length()) * static_cast<std::size_t>(task.head_dim);
}

std::size_t score_count(const Task& task) {
  return numeric::elements_of(task.heads, task.length()) *
         static_cast<std::size_t>(score_pitch(task.length()));
}

}  // namespace

std::vector<TimedKernel> timed_kernels(const Kernels& kernels, Variant variant, int head_dim) {
  std::vector<TimedKernel> found;
  if (is_flash_3(variant)) {
    const flash_3::TileSizes sizes = flash_3::timed_sizes(head_dim);
    found.push_back({variant, -1,
                     std::to_string(sizes.rows()) + "x" + std::to_string(sizes.keys) + ", " +
                         std::to_string(sizes.consumers) + " warpgroups of 64 queries"});
    return found;
  }
  const auto all = kernels.configurations();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Configuration& one = all[i];
    if (one.variant != variant || one.head_dim != head_dim) continue;
    found.push_back({variant, static_cast<int>(i), std::string(one.name)});
  }
  return found;
}

Plan plan_of(const Kernels& kernels, const TimedKernel& kernel, const Task& task) {
  Plan plan;
  plan.asked = plan.runs = kernel.variant;
  plan.head_dim = plan.columns = task.head_dim;
  plan.rule = task.rule;
  if (kernel.configuration < 0) {
    const flash_3::TileSizes sizes = flash_3::timed_sizes(task.head_dim);
    plan.block_q = sizes.rows();
    plan.block_k = sizes.keys;
  } else {
    const Configuration& one =
        kernels.configurations()[static_cast<std::size_t>(kernel.configuration)];
    plan.block_q = one.block_q;
    plan.block_k = one.block_k;
  }
  plan.q_tiles = (task.length() + plan.block_q - 1) / plan.block_q;
  plan.k_tiles = (task.length() + plan.block_k - 1) / plan.block_k;
  return plan;
}

BenchProblem::BenchProblem(simt::Device& device, const Task& task)
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

double BenchProblem::flops() const {
  const double length = task_.length();
  const double all = 4 * length * length * task_.head_dim * task_.heads;
  return task_.rule.mask == Mask::causal ? all / 2 : all;
}

double BenchProblem::bytes() const {
  return static_cast<double>(q_.bytes() + k_.bytes() + v_.bytes() + o_.bytes() + lse_.bytes());
}

flash_3::Problem flash_3_problem_of(Variant variant) {
  flash_3::Problem problem;
  problem.rung = variant == Variant::flash_3_tma         ? flash_3::Rung::tma
                 : variant == Variant::flash_3_ping_pong ? flash_3::Rung::ping_pong
                                                         : flash_3::Rung::pipelined;
  return problem;
}

flash_3::Problem BenchProblem::flash_3_problem(Variant variant) const {
  flash_3::Problem problem = flash_3_problem_of(variant);
  problem.head_dim = task_.head_dim;
  problem.heads = task_.heads;
  problem.kv_heads = task_.kv_heads;
  problem.rule = task_.rule;
  return problem;
}

Arrays BenchProblem::arrays(Variant variant) {
  Arrays arrays;
  arrays.q = q_.span();
  arrays.k = k_.span();
  arrays.v = v_.span();
  arrays.o = o_.span();
  arrays.lse = lse_.span();
  if (variant == Variant::naive) {
    if (!s_) s_.emplace(device_, score_count(task_)), p_.emplace(device_, score_count(task_));
    arrays.s = s_->span(), arrays.p = p_->span();
  }
  if (variant == Variant::flash_1) {
    if (!o_sums_) {
      o_sums_.emplace(device_, o_.count());
      m_.emplace(device_, lse_.count());
      l_.emplace(device_, lse_.count());
    }
    arrays.o_sums = o_sums_->span();
    arrays.m = m_->span();
    arrays.l = l_->span();
  }
  return arrays;
}

lab::Repeated<std::uint16_t> BenchProblem::numbers(unsigned seed) const {
  return {device_, o_.count(), normal_words(o_.count(), seed)};
}

Numbers BenchProblem::numbers_of_head(int head) const {
  const std::size_t count = numeric::elements_of(task_.length(), task_.head_dim);
  const auto head_of = [&](const lab::Repeated<std::uint16_t>& from, int which) {
    const auto words = from.values(static_cast<std::size_t>(which) * count, count);
    const std::vector<float> values = values_of(words);
    return std::vector<double>(values.begin(), values.end());
  };
  const int kv_head = head / (task_.heads / task_.kv_heads);
  return {head_of(q_, head), head_of(k_, kv_head), head_of(v_, kv_head), {}};
}

const Reference& BenchProblem::reference(Variant variant) {
  const auto found = references_.find(variant);
  if (found != references_.end()) return found->second;
  Reference reference;
  const Task one{task_.rule, 1, 1, task_.head_dim, ScoreMod::none};
  const Roundings roundings = roundings_of(variant, OutputOf::timed);
  int head = -1;
  Numbers numbers;
  for (const Probe& probe : probes_) {
    if (probe.head != head) {
      head = probe.head;
      numbers = numbers_of_head(head);
    }
    add_reference(reference, one, numbers, 0, probe.query, roundings);
  }
  return references_.emplace(variant, std::move(reference)).first->second;
}

lab::Closest BenchProblem::compared(Variant variant, double slack) {
  const Reference& exact = reference(variant);
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

lab::Runnable BenchProblem::runnable(const TimedKernel& kernel) {
  const Kernels& kernels = kernels_of(device_);
  const Variant variant = kernel.variant;
  const Arrays arrays = this->arrays(variant);
  std::function<void()> launch = [this, &kernels, arrays, number = kernel.configuration] {
    kernels.run(device_, number, task_, arrays);
  };
  if (is_flash_3(variant)) {
    launch = [this, &kernels, arrays, problem = flash_3_problem(variant)] {
      kernels.run(device_, problem, {arrays.q, arrays.k, arrays.v, arrays.o, arrays.lse});
    };
  }
  return lab::judged(device_, o_, std::move(launch),
                     [this, variant] { return compared(variant, 1); });
}

simt::LibraryAttention BenchProblem::library_attention() const {
  return {.length = task_.length(),
          .heads = task_.heads,
          .kv_heads = task_.kv_heads,
          .head_dim = task_.head_dim,
          .type = simt::LibraryAttention::Type::bf16};
}

lab::Runnable BenchProblem::library(int plan) {
  const auto launch = [this, plan] {
    kernels_of(device_).library_attend(
        device_, library_attention(), plan,
        {q_.span().data, k_.span().data, v_.span().data, o_.span().data});
  };
  return lab::judged(device_, o_, launch, [this] { return compared(Variant::flash_3, 2); });
}

}  // namespace tilestep::flash_attention
