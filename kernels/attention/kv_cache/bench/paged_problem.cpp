#include "kernels/attention/kv_cache/bench/paged_problem.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::kv_cache {
namespace {

constexpr int kMaxProbes = 3;

/// Rows that a cache repeats: prime, so that no two pages are alike.
constexpr int kPeriodRows = 2053;

/// Normal numbers, rounded to BF16.
std::vector<float> normal_numbers(std::size_t count, unsigned seed) {
  std::mt19937 generator = lab::generator_of(seed);
  std::vector<float> numbers = lab::normal_floats(generator, count);
  for (float& number : numbers) number = numeric::Bf16::round(number);
  return numbers;
}

/// Rows of one head, as the cache has them.
Quantized period_of(const Step& step, int columns, unsigned seed) {
  Inputs shape;
  shape.pages = 1;
  shape.page_size = kPeriodRows;
  shape.layer.cached_heads = 1;
  const auto count = numeric::elements_of(kPeriodRows, columns);
  return quantized(normal_numbers(count, seed), shape, columns, step.type, Scales::token);
}

int pages_for(const Step& step, int tokens) {
  return (tokens + step.page_size - 1) / step.page_size;
}

int prefix_pages(const Step& step) {
  return step.prefix / step.page_size;
}

/// Pages of all requests, those of the prefix once.
std::size_t pages_of(const Step& step, const std::vector<int>& context) {
  std::size_t pages = 0;
  for (const int tokens : context) pages += static_cast<std::size_t>(pages_for(step, tokens));
  return pages - numeric::elements_of(step.batch - 1, prefix_pages(step));
}

std::size_t rows_of(const Step& step, const std::vector<int>& context) {
  return pages_of(step, context) * numeric::elements_of(step.kv_heads, step.page_size);
}

std::size_t row_bytes(const Step& step, int numbers) {
  return static_cast<std::size_t>(numbers * bits_of(step.type) / 8);
}

std::size_t query_rows(const Step& step) {
  return numeric::elements_of(step.batch, step.heads);
}

/// Of the longest request.
int table_pitch_of(const Step& step, const std::vector<int>& context) {
  return std::max(pages_for(step, std::ranges::max(context)), 1);
}

/// Pages of each request, [batch × pitch]; except for the prefix, each page of the pool once: those of one request are
/// far apart.
std::vector<int> shuffled_table(const Step& step, const std::vector<int>& context, int pitch) {
  std::vector<int> order(pages_of(step, context));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 generator = lab::generator_of(7);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[generator() % i]);
  }
  std::vector<int> table(numeric::elements_of(step.batch, pitch), 0);
  std::size_t next = 0;
  for (int request = 0; request < step.batch; ++request) {
    const int mine = pages_for(step, context[static_cast<std::size_t>(request)]);
    for (int i = 0; i < mine; ++i) {
      const bool common = request > 0 && i < prefix_pages(step);
      table[numeric::index_of(request, i, pitch)] =
          common ? table[numeric::index_of(0, i, pitch)] : order[next++];
    }
  }
  return table;
}

}  // namespace

std::vector<int> contexts_of(const Step& step) {
  std::vector<int> context(static_cast<std::size_t>(step.batch), step.context);
  if (!step.ragged) return context;
  // In pairs, so that the total is right.
  std::mt19937 generator = lab::generator_of(5);
  for (std::size_t i = 0; i + 1 < context.size(); i += 2) {
    const int more = static_cast<int>((lab::uniform(generator) - 0.5) * step.context);
    context[i] += more;
    context[i + 1] -= more;
  }
  return context;
}

double least_bytes(const Step& step) {
  const std::vector<int> context = contexts_of(step);
  double tokens = 0, pages = 0;
  for (const int some : context) {
    tokens += some;
    pages += pages_for(step, some);
  }
  tokens -= (step.batch - 1.0) * step.prefix;
  const double scales = is_quantized(step.type) ? 2 * sizeof(float) : 0;
  const double of_token =
      step.kv_heads * (static_cast<double>(row_bytes(step, step.row.stored)) + scales);
  const double queries =
      static_cast<double>(query_rows(step)) * (step.row.key + step.row.value) * 2;
  return tokens * of_token + pages * sizeof(int) + queries;
}

double attention_flops(const Step& step) {
  double tokens = 0;
  for (const int some : contexts_of(step)) tokens += some;
  return 2.0 * step.heads * (step.row.key + step.row.value) * tokens;
}

double cache_bytes(const Step& step) {
  return static_cast<double>(rows_of(step, contexts_of(step)) * row_bytes(step, step.row.stored));
}

BenchProblem::BenchProblem(simt::Device& device, const PagedKernels& kernels, const Step& step)
    : device_(device),
      context_(contexts_of(step)),
      kernels_(kernels),
      step_(step),
      table_pitch_(table_pitch_of(step, context_)),
      q_values_(normal_numbers(query_rows(step) * static_cast<std::size_t>(step.row.key), 31)),
      k_period_(period_of(step, step.row.key, 32)),
      v_period_(period_of(step, step.row.value, 33)),
      q_(device, words_of(q_values_)),
      o_(device, query_rows(step) * static_cast<std::size_t>(step.row.value)),
      lse_(device, query_rows(step)),
      sum_(device, 1),
      k_(device, rows_of(step, context_) * row_bytes(step, step.row.key), k_period_.bytes),
      context_on_device_(device, context_),
      table_on_device_(device, table_ = shuffled_table(step, context_, table_pitch_)) {
  const std::size_t rows = rows_of(step, context_);
  if (step.row.latent == 0) {
    v_.emplace(device, rows * row_bytes(step, step.row.value), v_period_.bytes);
  }
  if (!is_quantized(step.type)) return;
  k_scales_.emplace(device, rows, k_period_.scales);
  v_scales_.emplace(device, rows, v_period_.scales);
}

// ---- launches -------------------------------------------------------------------------------------

paged::Problem BenchProblem::problem_of(const Launching& how) const {
  paged::Problem problem;
  problem.cache = cache_format(step_.type);
  problem.head_dim = step_.row.key;
  problem.heads = step_.heads;
  problem.kv_heads = step_.kv_heads;
  problem.page_size = step_.page_size;
  problem.table_pitch = table_pitch_;
  problem.most_rows =
      how.cutting == Launching::Cutting::repeat_kv ? 1 : step_.heads / step_.kv_heads;
  problem.merged_by = how.merge_apart ? paged::MergedBy::other_kernel : paged::MergedBy::last_block;
  return problem;
}

/// The blocks that the device runs at the same time.
int BenchProblem::blocks_of(const paged::Problem& problem) const {
  const int at_once = kernels_.resources(device_, problem).blocks_per_multiprocessor;
  return std::max(at_once, 1) * std::max(device_.info().multiprocessors, 1);
}

paged::WorkPlan BenchProblem::plan_of(const Launching& how, const paged::Problem& problem) const {
  const paged::Cut cut{step_.heads, step_.kv_heads, step_.page_size,
                       how.cutting == Launching::Cutting::repeat_kv};
  if (how.cutting == Launching::Cutting::even) {
    return paged::even_plan(cut, context_, how.splits);
  }
  int blocks = blocks_of(problem);
  if (how.least > 0) {
    std::int64_t tokens = 0;
    for (const int some : context_) tokens += some;
    blocks =
        static_cast<int>(std::clamp<std::int64_t>(tokens * step_.kv_heads / how.least, 1, blocks));
  }
  return paged::balanced_plan(cut, context_, blocks);
}

paged::Arrays BenchProblem::arrays_of(DeviceCut& cut) {
  paged::Arrays arrays;
  arrays.q = q_.span();
  arrays.k = k_.span();
  if (v_) arrays.v = v_->span();
  if (k_scales_) arrays.k_scales = k_scales_->span();
  if (v_scales_) arrays.v_scales = v_scales_->span();
  arrays.table = table_on_device_.span();
  arrays.context = context_on_device_.span();
  arrays.o = o_.span();
  arrays.lse = lse_.span();
  cut.add_to(arrays);
  return arrays;
}

std::function<void()> BenchProblem::launch_of(const Launching& how) {
  if (how.prefix_once) return launch_of_two(how);
  const paged::Problem problem = problem_of(how);
  const auto cut = std::make_shared<DeviceCut>(device_, plan_of(how, problem), problem.most_rows,
                                               step_.row.value);
  return [this, problem, cut] {
    const paged::Arrays arrays = arrays_of(*cut);
    kernels_.attend(device_, problem, arrays);
    if (problem.merged_by == paged::MergedBy::other_kernel) {
      kernels_.merge(device_, problem, arrays);
    }
  };
}

/// First the prefix, for the query rows of as many requests as a block has room for, then each request's own pages;
/// both leave their parts in the same slots, and the block that finishes last merges them.
std::function<void()> BenchProblem::launch_of_two(const Launching& how) {
  const paged::Problem own = problem_of(how);
  const paged::Cut cut{step_.heads, step_.kv_heads, step_.page_size};
  const std::vector<paged::Sharing> sharing = paged::sharing_of(
      table_, table_pitch_, context_, step_.page_size, paged::kMostRows / cut.rows());
  paged::Problem shared = own;
  for (const paged::Sharing& group : sharing) {
    shared.most_requests = std::max(shared.most_requests, group.requests);
  }
  const paged::TwoPlans plans =
      paged::balanced_plans(cut, context_, blocks_of(shared), blocks_of(own), sharing);
  struct Cuts {
    DeviceCut own;
    simt::Buffer<paged::WorkItem> items;
    simt::Buffer<int> first_item;
  };
  const auto cuts =
      std::make_shared<Cuts>(Cuts{DeviceCut(device_, plans.own, own.most_rows, step_.row.value),
                                  simt::Buffer<paged::WorkItem>(device_, plans.shared.items),
                                  simt::Buffer<int>(device_, plans.shared.first_item)});
  return [this, shared, own, cuts] {
    paged::Arrays arrays = arrays_of(cuts->own);
    paged::Arrays of_shared = arrays;
    of_shared.items = cuts->items.span();
    of_shared.first_item = cuts->first_item.span();
    if (cuts->items.count() > 0) kernels_.attend(device_, shared, of_shared);
    kernels_.attend(device_, own, arrays);
  };
}

lab::Runnable BenchProblem::runnable(const Launching& how) {
  return judged(launch_of(how));
}

lab::Runnable BenchProblem::judged(std::function<void()> launch, bool in_pages) {
  return lab::judged(device_, o_, std::move(launch),
                     [this, in_pages] { return compared(in_pages); });
}

lab::Runnable BenchProblem::read(int blocks) {
  const auto launch = [this, blocks] {
    kernels_.read(device_, k_.span(), v_->span(), sum_.span(), blocks);
  };
  const auto verify = [this, launch] {
    sum_.fill(0);
    launch();
    device_.synchronize();
    unsigned want = 0;
    for (const auto* array : {&k_, &*v_}) {
      const std::vector<std::uint8_t>& period = array == &k_ ? k_period_.bytes : v_period_.bytes;
      // 32-bit words: how often each byte of the period occurs, at its place in the word.
      const std::size_t whole = array->bytes() / period.size(),
                        rest = array->bytes() % period.size();
      for (std::size_t i = 0; i < period.size(); ++i) {
        const auto times = static_cast<unsigned>(whole + (i < rest ? 1 : 0));
        want += times * (static_cast<unsigned>(period[i]) << (8 * (i % 4)));
      }
    }
    lab::Closest closest;
    closest.add(sum_.download(1)[0], want, 0);
    return closest;
  };
  return {launch, verify};
}

simt::LibraryAttention BenchProblem::library_attention() const {
  simt::LibraryAttention attention;
  attention.batch = step_.batch;
  attention.queries = 1;
  attention.length = step_.context;
  attention.heads = step_.heads;
  attention.kv_heads = step_.kv_heads;
  attention.head_dim = step_.row.key;
  attention.type = simt::LibraryAttention::Type::bf16;
  return attention;
}

lab::Runnable BenchProblem::library(int plan) {
  const auto launch = [this, plan] {
    kernels_.library_attend(device_, library_attention(), plan,
                            {q_.span().data, k_.span().data, v_->span().data, o_.span().data});
  };
  return judged(launch, false);
}

// ---- what they should be ----------------------------------------------------------------------------

lab::Closest BenchProblem::compared(bool in_pages) const {
  lab::Closest closest;
  const RowShape& row = step_.row;
  for (int i = 0; i < kMaxProbes; ++i) {
    const int request = (step_.batch - 1) * i / (kMaxProbes - 1);
    const int head = (step_.heads - 1) * i / (kMaxProbes - 1);
    const int kv_head = head / (step_.heads / step_.kv_heads);
    const int tokens = context_[static_cast<std::size_t>(request)];
    Inputs one;
    one.layer = {row.latent > 0 ? Scheme::mla : Scheme::mha, 1, 1, row};
    one.pages = tokens;
    one.contexts = {tokens};
    one.scale = score_scale(row);
    one.tables.emplace_back();
    for (int token = 0; token < tokens; ++token) {
      one.tables[0].push_back(token);
      const int size = in_pages ? step_.page_size : step_.context;
      const int page =
          in_pages ? table_[numeric::index_of(request, token / size, table_pitch_)] : request;
      const std::size_t from =
          numeric::index_of(page * step_.kv_heads + kv_head, token % size, size) % kPeriodRows;
      const auto take = [&](std::vector<float>& to, const Quantized& period, int columns) {
        const auto first = period.values.begin() + static_cast<std::ptrdiff_t>(from) * columns;
        to.insert(to.end(), first, first + columns);
      };
      take(one.k, k_period_, row.key);
      if (v_) take(one.v, v_period_, row.value);
    }
    const std::size_t query = numeric::index_of(request, head, step_.heads);
    const auto q = q_values_.begin() + static_cast<std::ptrdiff_t>(query) * row.key;
    one.q.assign(q, q + row.key);
    const auto columns = static_cast<std::size_t>(row.value);
    const Reference exact = reference_attention(one, roundings_of(step_.type, Scales::token));
    const std::vector<float> got = values_of(o_.download(query * columns, columns));
    for (std::size_t c = 0; c < columns; ++c) closest.add(got[c], exact.o[c], exact.o_bound[c]);
  }
  return closest;
}

}  // namespace tilestep::kv_cache
