#include "kernels/attention/attention_backward/bench/problem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/numeric/index.hpp"

namespace tilestep::attention_backward {

BackwardRoundings roundings_of(BackwardRung rung, int head_dim) {
  return {.rounded_weights = rung == BackwardRung::hopper && head_dim == 64};
}

TimedBackward timed_backward(const Kernels& kernels, BackwardRung rung, int head_dim) {
  if (rung == BackwardRung::hopper) {
    const int queries = hopper::timed_sizes(head_dim).queries;
    return {rung, queries, fmt::format("{}x{}, 2 warpgroups of 64 keys", queries, hopper::kKeys)};
  }
  const auto all = kernels.configurations();
  const auto one = std::find_if(all.begin(), all.end(), [&](const Configuration& configuration) {
    return configuration.head_dim == head_dim;
  });
  if (one == all.end())
    throw Error("attention-backward: no kernel is timed at this head dimension");
  return {rung, one->block_q, std::string(one->name), static_cast<int>(one - all.begin())};
}

BackwardProblem::BackwardProblem(simt::Device& device, const Task& task)
    : device_(device),
      forward_(device, task),
      d_o_(forward_.numbers(24)),
      given_(forward_.arrays(flash_attention::Variant::flash_2)),
      dq_(device, given_.q.count),
      dk_(device, given_.k.count),
      dv_(device, given_.v.count) {
  const flash_attention::Kernels& forward = flash_attention::kernels_of(device);
  const auto kernel = timed_kernels(forward, flash_attention::Variant::flash_2, task.head_dim);
  forward.run(device, kernel.front().configuration, task, given_);
  device.synchronize();
  const int length = task.length();
  places_ = {0, length / 3, length - 1};
}

double BackwardProblem::bytes() const {
  return forward_.bytes() +
         static_cast<double>(d_o_.bytes() + dq_.bytes() + dk_.bytes() + dv_.bytes());
}

Arrays BackwardProblem::arrays(const TimedBackward& kernel) {
  const Scratch scratch = scratch_of(task(), kernel.block_q, task().head_dim);
  if (!terms_ || terms_->count() != scratch.terms) terms_.emplace(device_, scratch.terms);
  if (!sums_ || sums_->count() < scratch.dq_sums) sums_.emplace(device_, scratch.dq_sums);
  Arrays a;
  a.q = given_.q, a.k = given_.k, a.v = given_.v;
  a.o = given_.o, a.lse = given_.lse, a.d_o = d_o_.span();
  a.dq = dq_.span(), a.dk = dk_.span(), a.dv = dv_.span();
  a.terms = terms_->span();
  a.dq_sums = {sums_->span().data, scratch.dq_sums};
  return a;
}

const BackwardReference& BackwardProblem::reference(BackwardRung rung, int head) {
  const auto found = references_.find({rung, head});
  if (found != references_.end()) return found->second;
  const Task one{task().rule, 1, 1, task().head_dim, ScoreMod::none};
  const auto length = static_cast<std::size_t>(task().length());
  const std::size_t count = length * static_cast<std::size_t>(task().head_dim);
  const std::size_t first = static_cast<std::size_t>(head) * count;
  const auto in_double = [](const std::vector<float>& values) {
    return std::vector<double>(values.begin(), values.end());
  };
  const std::vector<double> d_output = in_double(values_of(d_o_.values(first, count)));
  Reference given;
  for (const float o : values_of(forward_.output(first, count))) {
    given.o.push_back({static_cast<double>(o), 0});
  }
  for (const float lse : forward_.log_sum_exp(static_cast<std::size_t>(head) * length, length)) {
    given.lse.push_back({static_cast<double>(lse), 0});
  }
  return references_
      .emplace(std::pair(rung, head),
               reference_backward_at(one, forward_.numbers_of_head(head), d_output, given,
                                     roundings_of(rung, task().head_dim), places_))
      .first->second;
}

lab::Closest BackwardProblem::compared(BackwardRung rung) {
  lab::Closest closest;
  const auto columns = static_cast<std::size_t>(task().head_dim);
  const auto compare = [&](const simt::Buffer<std::uint16_t>& from,
                           const numeric::AllBounded& exact, int head) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const std::size_t row = numeric::index_of(head, places_[i], task().length());
      const std::vector<float> got = values_of(from.download(row * columns, columns));
      for (std::size_t c = 0; c < columns; ++c) {
        closest.add(got[c], exact.value[i * columns + c], exact.bound[i * columns + c]);
      }
    }
  };
  for (const int head : {0, task().heads - 1}) {
    const BackwardReference& exact = reference(rung, head);
    compare(dq_, exact.dq, head);
    compare(dk_, exact.dk, head);
    compare(dv_, exact.dv, head);
  }
  return closest;
}

lab::Runnable BackwardProblem::runnable(const TimedBackward& kernel) {
  const Kernels& kernels = kernels_of(device_);
  const auto launch = [this, &kernels, kernel, a = arrays(kernel)] {
    if (kernel.rung == BackwardRung::hopper) return kernels.run(device_, task(), a);
    kernels.run(device_, kernel.configuration, task(), a);
  };
  const auto verify = [this, launch, rung = kernel.rung] {
    for (simt::Buffer<std::uint16_t>* gradient : {&dq_, &dk_, &dv_}) gradient->fill(0xFF);
    launch();
    device_.synchronize();
    return compared(rung);
  };
  return {launch, verify};
}

}  // namespace tilestep::attention_backward
