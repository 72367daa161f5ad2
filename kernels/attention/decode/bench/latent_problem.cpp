#include "kernels/attention/decode/bench/latent_problem.hpp"

#include <algorithm>
#include <memory>

#include "kernels/attention/decode/kernels.hpp"

namespace tilestep::decode {
namespace {

Step latent_step(Step step, int heads) {
  step.heads = heads;
  step.kv_heads = 1;
  step.row = row_shape(Scheme::mla, kLatentHeadDim);
  return step;
}

}  // namespace

LatentProblem::LatentProblem(simt::Device& device, Step step, int heads)
    : BenchProblem(device, kernels_of(device), latent_step(std::move(step), heads)) {}

lab::Runnable LatentProblem::runnable(bool balanced) {
  const int heads = step().heads;
  const paged::Cut cut{heads, latent::lines_of(heads), step().page_size};
  const int clusters = std::max(device_.info().multiprocessors / latent::blocks_of_item(heads), 1);
  paged::Problem problem = problem_of({});
  problem.most_rows = latent::heads_of_item(heads);
  const auto on_device = std::make_shared<DeviceCut>(
      device_,
      balanced ? paged::balanced_plan(cut, context_, clusters) : paged::even_plan(cut, context_, 1),
      problem.most_rows, latent::kLatent);
  return judged([this, on_device, problem] {
    kernels_of(device_).attend_latent(device_, problem, arrays_of(*on_device));
  });
}

}  // namespace tilestep::decode
