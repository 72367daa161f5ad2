// The kernels on heads against double: every size of a head, both layouts, all ways to share the work, positions up to
// a million; where the cache has keys and values; what a broken launch leaves.

#include <cmath>

#include "kernels/attention/kv_cache/inputs.hpp"
#include "kernels/attention/positions/reference.hpp"
#include "kernels/attention/positions/run/run.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::positions;

namespace {

simt::KernelEntry kHeadsTable[] = {{"positions", kernels_emulated}};

std::unique_ptr<simt::Device> heads_device(simt::ThreadOrder order = simt::ThreadOrder::ascending) {
  simt::EmulationOptions options;
  options.order = order;
  return tests::device_under_test(kHeadsTable, options);
}

constexpr std::uint16_t kUnwritten = 0xFFFF;

/// Launches on random heads, and what they left.
struct Launched {
  HeadsShape shape;
  Turning turning;
  std::vector<int> positions, slots;
  Words qkv, q_gain, k_gain, q, k_cache, v_cache;

  Launched(simt::Device& device, const HeadsShape& of, const std::vector<Stage>& stages,
           const Turning& with, std::vector<int> at, std::vector<int> where)
      : shape(of), turning(with), positions(std::move(at)), slots(std::move(where)) {
    shape.size = size_of(turning);
    std::mt19937 generator = lab::generator_of(7 + shape.dim);
    qkv = lab::uniform_bf16(generator, words(rows_of(shape), shape.tokens));
    q_gain = lab::uniform_bf16(generator, words(1, 1));
    k_gain = lab::uniform_bf16(generator, words(1, 1));
    const auto there = lab::uploaded(device, qkv), its_q = lab::uploaded(device, q_gain),
               its_k = lab::uploaded(device, k_gain);
    const auto where_there = lab::uploaded(device, slots),
               at_there = lab::uploaded(device, positions);
    const auto rates = lab::uploaded(device, rates_of(turning));
    const auto room = words(shape.kv_heads, pages() * shape.page_size);
    auto out = lab::unwritten<std::uint16_t>(device, words(shape.heads, shape.tokens)),
         keys = lab::unwritten<std::uint16_t>(device, words(shape.kv_heads, shape.tokens)),
         k = lab::unwritten<std::uint16_t>(device, room),
         v = lab::unwritten<std::uint16_t>(device, room);
    for (const Stage stage : stages) {
      kernels_of(device).heads(
          device, stage, shape,
          {there.span(), out.span(), keys.span(), k.span(), v.span(), its_q.span(), its_k.span(),
           at_there.span(), where_there.span(), rates.span()});
    }
    device.synchronize();
    q = out.download();
    k_cache = k.download();
    v_cache = v.download();
  }
  std::size_t words(int rows, int tokens) const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(tokens) *
           static_cast<std::size_t>(shape.dim);
  }
  int pages() const { return (shape.tokens + shape.page_size - 1) / shape.page_size + 1; }
  std::span<const std::uint16_t> head(const Words& all, std::size_t first) const {
    return std::span(all).subspan(first, static_cast<std::size_t>(shape.dim));
  }
  /// A row of a token, as it came.
  std::span<const std::uint16_t> came(int token, int row) const {
    return head(qkv, words(rows_of(shape), token) + words(row, 1));
  }
};

void check_head(std::span<const std::uint16_t> got, const numeric::AllBounded& exact) {
  lab::Closest closest;
  for (std::size_t i = 0; i < got.size(); ++i)
    closest.add(numeric::Bf16::value(got[i]), exact.value[i], exact.bound[i],
                [i] { return std::to_string(i); });
  INFO(closest.where() << ": " << closest.error() << " of " << closest.bound());
  CHECK(closest.ok());
}

/// All heads of all tokens, and every place of the cache that no token has.
void check_launched(const Launched& done, bool apart) {
  const HeadsShape& shape = done.shape;
  kv_cache::Inputs cache;  // which knows where a paged cache has a token
  cache.layer.cached_heads = shape.kv_heads;
  cache.layer.row = {.key = shape.dim, .value = shape.dim, .stored = 2 * shape.dim};
  cache.page_size = shape.page_size;
  std::vector<bool> written(done.k_cache.size());
  for (int token = 0; token < shape.tokens; ++token) {
    const auto at = static_cast<std::size_t>(token);
    for (int row = 0; row < shape.heads; ++row) {
      INFO("token " << token << ", query head " << row);
      check_head(done.head(done.q, done.words(shape.heads, token) + done.words(row, 1)),
                 reference_head(done.came(token, row), done.q_gain, done.turning, shape.pairs,
                                done.positions[at], apart));
    }
    const int slot = done.slots[at];
    for (int head = 0; head < shape.kv_heads && slot >= 0; ++head) {
      INFO("token " << token << ", K/V head " << head);
      const std::size_t there = cache.key_at(slot / shape.page_size, head, slot % shape.page_size);
      check_head(done.head(done.k_cache, there),
                 reference_head(done.came(token, shape.heads + head), done.k_gain, done.turning,
                                shape.pairs, done.positions[at], apart));
      const auto value = done.came(token, shape.heads + shape.kv_heads + head);
      const auto stored = done.head(done.v_cache, there);
      CHECK(std::equal(value.begin(), value.end(), stored.begin()));
      for (std::size_t i = 0; i < value.size(); ++i) written[there + i] = true;
    }
  }
  int stray = 0;
  for (std::size_t i = 0; i < written.size(); ++i)
    stray +=
        !written[i] && (done.k_cache[i] != kUnwritten || done.v_cache[i] != kUnwritten) ? 1 : 0;
  CHECK(stray == 0);
}

const std::vector<Stage> kFusedAlone = {Stage::fused};
const std::vector<Stage> kAllApart(std::begin(kApart), std::end(kApart));

std::vector<int> far_apart(int tokens) {
  std::vector<int> all;
  for (int t = 0; t < tokens; ++t)
    all.push_back(static_cast<int>(std::int64_t{kMostPosition} * t / std::max(tokens - 1, 1)));
  return all;
}
std::vector<int> slots_for(int tokens) {
  std::vector<int> all;
  for (int t = 0; t < tokens; ++t) all.push_back(t % 5 == 3 ? -1 : tokens - 1 - t);
  return all;
}

}  // namespace

TEST_CASE("Positions: heads of every size, in both layouts, fused and apart, are double's",
          "[positions]") {
  const auto device = heads_device();
  for (const int dim : {16, 32, 64, 128, 256}) {
    for (const Pairs pairs : {Pairs::interleaved, Pairs::half_split}) {
      for (const bool apart : {false, true}) {
        INFO(dim << " " << name_of(pairs) << " " << apart);
        const HeadsShape shape{
            .tokens = 7, .heads = 3, .kv_heads = 2, .dim = dim, .page_size = 4, .pairs = pairs};
        check_launched(Launched(*device, shape, apart ? kAllApart : kFusedAlone, {.dim = dim},
                                far_apart(7), slots_for(7)),
                       apart);
      }
    }
  }
}

TEST_CASE("Positions: however heads are shared among threads, the numbers are the same",
          "[positions]") {
  const auto device = heads_device();
  std::optional<Launched> first;
  for (const int threads : {64, 128, 256, 512}) {
    for (const int each : {1, 2, 3, 4}) {
      INFO(threads << " threads, " << each);
      const HeadsShape shape{.tokens = 3,
                             .heads = 17,
                             .kv_heads = 5,
                             .dim = 64,
                             .page_size = 1,
                             .rows_each = each,
                             .threads = threads};
      const Launched done(*device, shape, kFusedAlone, {.dim = 64}, far_apart(3), slots_for(3));
      if (!first) {
        check_launched(done, false);
        first = done;
      }
      CHECK(done.q == first->q);
      CHECK(done.k_cache == first->k_cache);
      CHECK(done.v_cache == first->v_cache);
    }
  }
}

TEST_CASE("Positions: any order of threads leaves the same", "[positions]") {
  const HeadsShape shape{.tokens = 5, .heads = 4, .kv_heads = 1, .dim = 128};
  for (const auto order : {simt::ThreadOrder::descending, simt::ThreadOrder::shuffled}) {
    const auto device = heads_device(order);
    for (const Method method : {Method::rope, Method::yarn})
      check_launched(Launched(*device, shape, kFusedAlone, {.method = method, .dim = 128},
                              far_apart(5), slots_for(5)),
                     false);
  }
}

TEST_CASE("Positions: what is not allowed is refused by name", "[positions]") {
  const auto device = heads_device();
  HeadsShape shape{.tokens = 1, .dim = 48};
  const auto refused = [&](const HeadsShape& of) {
    try {
      kernels_of(*device).heads(*device, Stage::fused, of, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused(shape).find("16, 32, 64, 128, 256") != std::string::npos);
  shape.dim = 64;
  shape.tokens = 0;
  CHECK(refused(shape).find("tokens") != std::string::npos);
  shape.tokens = 1;
  shape.rows_each = 5;
  CHECK(refused(shape).find("1, 2, 3, 4") != std::string::npos);
}
