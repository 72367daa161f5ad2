#include "kernels/attention/flash_attention/bench/problem.hpp"

#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::flash_attention {

std::vector<TimedKernel> timed_kernels(const Kernels& kernels, Variant variant, int head_dim) {
  std::vector<TimedKernel> found;
  const auto all = kernels.configurations();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Configuration& one = all[i];
    if (one.variant != variant || one.head_dim != head_dim) continue;
    found.push_back({variant, static_cast<int>(i), std::string(one.name)});
  }
  return found;
}

Plan plan_of(const Kernels& kernels, const TimedKernel& kernel, const Task& task) {
  const Configuration& one =
      kernels.configurations()[static_cast<std::size_t>(kernel.configuration)];
  Plan plan;
  plan.asked = plan.runs = kernel.variant;
  plan.head_dim = plan.columns = task.head_dim;
  plan.rule = task.rule;
  plan.block_q = one.block_q;
  plan.block_k = one.block_k;
  plan.cut(task.length());
  return plan;
}

Arrays BenchProblem::arrays(Variant variant) {
  Arrays arrays;
  arrays.q = q();
  arrays.k = k();
  arrays.v = v();
  arrays.o = o();
  arrays.lse = lse();
  if (variant == Variant::naive) {
    const std::size_t scores = numeric::elements_of(task().heads, task().length()) *
                               static_cast<std::size_t>(score_pitch(task().length()));
    if (!s_) s_.emplace(device_, scores), p_.emplace(device_, scores);
    arrays.s = s_->span(), arrays.p = p_->span();
  }
  if (variant == Variant::flash_1) {
    if (!o_sums_) {
      o_sums_.emplace(device_, o().count);
      m_.emplace(device_, lse().count);
      l_.emplace(device_, lse().count);
    }
    arrays.o_sums = o_sums_->span();
    arrays.m = m_->span();
    arrays.l = l_->span();
  }
  return arrays;
}

lab::Runnable BenchProblem::runnable(const TimedKernel& kernel) {
  const Kernels& kernels = kernels_of(device_);
  const Arrays arrays = this->arrays(kernel.variant);
  return judged([this, &kernels, arrays,
                 number = kernel.configuration] { kernels.run(device_, number, task(), arrays); },
                std::string(name_of(kernel.variant)), roundings_of(kernel.variant));
}

simt::LibraryAttention library_attention(const Task& task) {
  return {.length = task.length(),
          .heads = task.heads,
          .kv_heads = task.kv_heads,
          .head_dim = task.head_dim,
          .type = simt::LibraryAttention::Type::bf16};
}

lab::Runnable library_runnable(simt::Device& device, ForwardProblem& problem, int plan) {
  Roundings roundings;
  roundings.values_adding = numeric::Adding::any_order_tensor_core;
  roundings.backwards = true;
  return problem.judged(
      [&device, &problem, plan] {
        kernels_of(device).library_attend(
            device, library_attention(problem.task()), plan,
            {problem.q().data, problem.k().data, problem.v().data, problem.o().data});
      },
      "library", roundings, 2);
}

}  // namespace tilestep::flash_attention
