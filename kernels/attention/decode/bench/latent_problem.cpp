#include "kernels/attention/decode/bench/latent_problem.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/numeric/index.hpp"

namespace tilestep::decode {
namespace {

using latent::kLatent, latent::kRope, latent::kRow;

constexpr int kProbes = 3;

}  // namespace

LatentProblem::LatentProblem(simt::Device& device, const Step& step, int heads)
    : device_(device),
      step_(step),
      heads_(heads),
      context_(contexts_of(step)),
      table_pitch_(table_pitch_of(step, context_)),
      table_(shuffled_table(step, context_, table_pitch_)),
      q_values_(normal_numbers(numeric::elements_of(step.batch, heads) * kRow, 41)),
      period_(normal_numbers(numeric::elements_of(kPeriodRows, kRow), 42)),
      q_(device, words_of(q_values_)),
      o_(device, numeric::elements_of(step.batch, heads) * kLatent),
      lse_(device, numeric::elements_of(step.batch, heads)),
      cache_(device, pages_of(step, context_) * numeric::elements_of(step.page_size, kRow),
             words_of(period_)),
      context_on_device_(device, context_),
      table_on_device_(device, table_) {}

double LatentProblem::flops() const {
  double tokens = 0;
  for (const int some : context_) tokens += some;
  return 2.0 * heads_ * (kRow + kLatent) * tokens;
}

double LatentProblem::bytes() const {
  double tokens = 0;
  for (const int some : context_) tokens += some;
  const double pages = static_cast<double>(pages_of(step_, context_));
  return tokens * kRow * 2 + pages * sizeof(int) + static_cast<double>(q_.bytes() + o_.bytes());
}

lab::Runnable LatentProblem::runnable(bool balanced) {
  const Kernels& kernels = kernels_of(device_);
  const paged::Cut cut{heads_, latent::lines_of(heads_), step_.page_size, false};
  const int clusters = std::max(device_.info().multiprocessors / latent::blocks_of_item(heads_), 1);
  paged::Problem problem;
  problem.head_dim = kRow;
  problem.heads = heads_;
  problem.page_size = step_.page_size;
  problem.table_pitch = table_pitch_;
  problem.most_rows = latent::heads_of_item(heads_);
  const auto on_device = std::make_shared<DeviceCut>(
      device_,
      balanced ? paged::balanced_plan(cut, context_, clusters) : paged::even_plan(cut, context_, 1),
      problem.most_rows, kLatent);
  const auto launch = [this, &kernels, on_device, problem] {
    paged::Arrays arrays;
    arrays.q = q_.span();
    arrays.k = paged::bytes_of(cache_.span());
    arrays.table = table_on_device_.span();
    arrays.context = context_on_device_.span();
    arrays.o = o_.span();
    arrays.lse = lse_.span();
    on_device->add_to(arrays);
    kernels.attend_latent(device_, problem, arrays);
  };
  return lab::judged(device_, o_, launch, [this] { return compared(); });
}

lab::Closest LatentProblem::compared() const {
  lab::Closest closest;
  for (int i = 0; i < kProbes; ++i) {
    const int request = (step_.batch - 1) * i / (kProbes - 1);
    const int head = (heads_ - 1) * i / (kProbes - 1);
    const int tokens = context_[static_cast<std::size_t>(request)];
    Inputs one;
    one.layer = {Scheme::mla, 1, 1, {kRow, kLatent, kRow, kLatent, kRope}};
    one.pages = tokens;
    one.contexts = {tokens};
    one.scale = latent::kScale;
    one.tables.emplace_back();
    for (int token = 0; token < tokens; ++token) {
      one.tables[0].push_back(token);
      const auto page = static_cast<std::size_t>(
          table_[numeric::index_of(request, token / step_.page_size, table_pitch_)]);
      const std::size_t row = page * static_cast<std::size_t>(step_.page_size) +
                              static_cast<std::size_t>(token % step_.page_size);
      const auto first = period_.begin() + static_cast<std::ptrdiff_t>(row % kPeriodRows * kRow);
      one.k.insert(one.k.end(), first, first + kRow);
    }
    const std::size_t query = numeric::index_of(request, head, heads_);
    const auto q = q_values_.begin() + static_cast<std::ptrdiff_t>(query * kRow);
    one.q.assign(q, q + kRow);
    add_row(closest, one, values_of(o_.download(query * kLatent, kLatent)), KvType::bf16);
  }
  return closest;
}

}  // namespace tilestep::decode
