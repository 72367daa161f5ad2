// Triage: the launches of a decode step.

#include "kernels/systems/triage/attend.cu"
#include "kernels/systems/triage/block.cu"
#include "kernels/systems/triage/launch_products.hpp"

namespace tilestep::triage::SIMT_BACKEND {
namespace {

constexpr int kExpertThreads = 1024, kRowThreads = 512;

void check(const Shape& shape) {
  simt::require_within("triage: rows", shape.rows, 1, kMostRows);
  simt::require_multiple("triage: heads", shape.heads, kGroup);
  simt::require_multiple("triage: width", shape.width, 16);
  simt::require_multiple("triage: inner", shape.inner, 8);
  simt::require_within("triage: context", shape.context, 1, 1 << 20);
}

class KernelsHere final : public Kernels {
 public:
  void embed(simt::Device& device, const Shape& shape, simt::Span<const int> tokens,
             simt::Span<const float> table, simt::Span<float> h,
             const Watch& watch) const override {
    check(shape);
    with_watch(watch, [&](auto its) {
      start(device, watch, simt::row_of_blocks("embed", shape.rows, kRowThreads),
            SIMT_BACKEND::embed<decltype(its)>, simt::global(tokens, "tokens"),
            simt::as<const float4>(simt::global(table, "table")),
            simt::as<float4>(simt::global(h, "h")), shape.width, its);
    });
  }

  void norm(simt::Device& device, const Shape& shape, bool quick, simt::Span<const float> h,
            simt::Span<const float> gain, simt::Span<float> n, const Watch& watch) const override {
    check(shape);
    const simt::Launch launch =
        simt::row_of_blocks(quick ? "norm_quick" : "norm", shape.rows,
                            quick ? 2 * kRowThreads : kRowThreads, kSumBytes);
    with_watch(watch, [&](auto its) {
      start(device, watch, launch, SIMT_BACKEND::norm<decltype(its)>,
            simt::as<const float4>(simt::global(h, "h")),
            simt::as<const float4>(simt::global(gain, "gain")),
            simt::as<float4>(simt::global(n, "n")), shape.width, its);
    });
  }
  void squares(simt::Device& device, const Shape& shape, int row, simt::Span<const float> h,
               simt::Span<float> inverse, const Watch& watch) const override {
    with_watch(watch, [&](auto its) {
      start(device, watch, simt::row_of_blocks("squares", 1, kThreads, kSumBytes),
            SIMT_BACKEND::squares<decltype(its)>, simt::global(h, "h"),
            simt::global(inverse, "inverse"), row, shape.width, its);
    });
  }
  void scale(simt::Device& device, const Shape& shape, int row, simt::Span<const float> h,
             simt::Span<const float> gain, simt::Span<const float> inverse, simt::Span<float> n,
             const Watch& watch) const override {
    with_watch(watch, [&](auto its) {
      start(device, watch,
            simt::row_of_blocks("scale", simt::blocks_for(shape.width, kThreads), kThreads),
            SIMT_BACKEND::scale<decltype(its)>, simt::global(h, "h"), simt::global(gain, "gain"),
            simt::global(inverse, "inverse"), simt::global(n, "n"), row, shape.width, its);
    });
  }
  void add(simt::Device& device, const Shape& shape, int row, simt::Span<const float> d,
           simt::Span<float> h, const Watch& watch) const override {
    const int first = row < 0 ? 0 : row * shape.width;
    const int count = row < 0 ? shape.rows * shape.width : shape.width;
    with_watch(watch, [&](auto its) {
      start(device, watch, simt::row_of_blocks("add", simt::blocks_for(count, kThreads), kThreads),
            SIMT_BACKEND::add<decltype(its)>, simt::global(d, "d"), simt::global(h, "h"), first,
            count, its);
    });
  }

  void product(simt::Device& device, const char* name, Weights weights, const Product& product,
               const ProductArrays& arrays, const Watch& watch) const override {
    start_product(device, name, weights, product, arrays, watch);
  }
  void dequant(simt::Device& device, int rows, int k, simt::Span<const unsigned char> from,
               simt::Span<const float> scales, simt::Span<std::uint16_t> to,
               const Watch& watch) const override {
    start_dequant(device, rows, k, from, scales, to, watch);
  }

  void store(simt::Device& device, const Shape& shape, simt::Span<const float> qkv,
             simt::Span<std::uint16_t> keys, simt::Span<std::uint16_t> values,
             const Watch& watch) const override {
    check(shape);
    with_watch(watch, [&](auto its) {
      start(device, watch, simt::row_of_blocks("store", shape.rows, kThreads),
            SIMT_BACKEND::store<decltype(its)>, simt::global(qkv, "qkv"),
            simt::global(keys, "keys"), simt::global(values, "values"), shape, its);
    });
  }

  void attend(simt::Device& device, const Shape& shape, int reads, int room,
              const AttentionArrays& arrays, const Watch& watch) const override {
    check(shape);
    simt::require_within("triage: reads of the cache", reads, 1, 2);
    const int groups = kThreads / (shape.dim / kNumbers);
    const simt::Launch launch{
        .name = reads > 1 ? "attend_half" : "attend",
        .grid =
            dim3(static_cast<unsigned>(shape.splits), static_cast<unsigned>(shape.cache_heads()),
                 static_cast<unsigned>(shape.rows * reads)),
        .block = dim3(kThreads),
        .shared_bytes = sizeof(float) * static_cast<std::size_t>(groups * (shape.dim + 2)) +
                        static_cast<std::size_t>(room)};
    const auto run = [&](auto heads, auto lanes) {
      with_watch(watch, [&](auto its) {
        start(device, watch, launch,
              SIMT_BACKEND::attend<decltype(heads)::value, decltype(lanes)::value, decltype(its)>,
              simt::global(arrays.qkv, "qkv"),
              simt::as<const uint4>(simt::global(arrays.keys, "keys")),
              simt::as<const uint4>(simt::global(arrays.values, "values")),
              simt::global(arrays.parts, "parts"), shape, its);
      });
    };
    simt::with_constant<8, 16>("triage: dimension of a head / 8", shape.dim / kNumbers,
                               [&](auto lanes) {
                                 if (reads > 1)
                                   return run(std::integral_constant<int, kGroup / 2>{}, lanes);
                                 run(std::integral_constant<int, kGroup>{}, lanes);
                               });
  }

  void merge(simt::Device& device, const Shape& shape, simt::Span<const float> parts,
             simt::Span<float> attended, const Watch& watch) const override {
    with_watch(watch, [&](auto its) {
      start(device, watch, simt::row_of_blocks("merge", shape.rows * shape.heads, kThreads),
            SIMT_BACKEND::merge<decltype(its)>, simt::global(parts, "parts"),
            simt::global(attended, "attended"), shape, its);
    });
  }

  void route(simt::Device& device, const Shape& shape, int capacity, simt::Span<const float> n,
             simt::Span<const float> router, simt::Span<const float> bias, simt::Span<int> chosen,
             const Watch& watch) const override {
    check(shape);
    simt::require_within("triage: capacity of an expert", capacity,
                         (shape.rows + kExperts - 1) / kExperts, kMostRows);
    with_watch(watch, [&](auto its) {
      start(device, watch,
            simt::row_of_blocks("route", 1, 32 * kMostRows * kExperts,
                                sizeof(float) * kMostRows * kExperts),
            SIMT_BACKEND::route<decltype(its)>, simt::as<const float4>(simt::global(n, "n")),
            simt::as<const float4>(simt::global(router, "router")), simt::global(bias, "bias"),
            simt::global(chosen, "chosen"), shape.rows, shape.width, capacity, its);
    });
  }
  void up(simt::Device& device, const Shape& shape, const ExpertArrays& arrays,
          const Watch& watch) const override {
    check(shape);
    with_watch(watch, [&](auto its) {
      start(device, watch, expert_launch("experts_up", shape), experts_up<decltype(its)>,
            simt::as<const uint4>(simt::global(arrays.gate, "gate")),
            simt::as<const uint4>(simt::global(arrays.up, "up")),
            simt::global(arrays.chosen, "chosen"), simt::global(arrays.n, "n"),
            simt::global(arrays.a, "a"), shape, its);
    });
  }
  void down(simt::Device& device, const Shape& shape, const ExpertArrays& arrays,
            const Watch& watch) const override {
    check(shape);
    with_watch(watch, [&](auto its) {
      start(device, watch, expert_launch("experts_down", shape), experts_down<decltype(its)>,
            simt::as<const uint4>(simt::global(arrays.down, "down")),
            simt::global(arrays.chosen, "chosen"),
            simt::global(simt::Span<const float>(arrays.a), "a"), simt::global(arrays.d, "d"),
            shape, its);
    });
  }

  void sample(simt::Device& device, const Shape& shape, simt::Span<const float> logits,
              simt::Span<int> sampled, const Watch& watch) const override {
    constexpr int kSampleThreads = 1024;
    with_watch(watch, [&](auto its) {
      start(device, watch,
            simt::row_of_blocks("sample", shape.rows, kSampleThreads, 8 * kSampleThreads),
            SIMT_BACKEND::sample<decltype(its)>, simt::global(logits, "logits"),
            simt::global(sampled, "sampled"), shape.vocabulary, its);
    });
  }
  void move(simt::Device& device, simt::Span<const std::uint16_t> from,
            simt::Span<std::uint16_t> to, const Watch& watch) const override {
    const auto packs = static_cast<long long>(from.count / kPack);
    with_watch(watch, [&](auto its) {
      start(device, watch,
            simt::row_of_blocks(
                "move", std::min<std::int64_t>(simt::blocks_for(packs, kThreads), 1024), kThreads),
            SIMT_BACKEND::move<decltype(its)>, simt::as<const uint4>(simt::global(from, "from")),
            simt::as<uint4>(simt::global(to, "to")), packs, its);
    });
  }

 private:
  static simt::Launch expert_launch(const char* name, const Shape& shape) {
    return {.name = name,
            .grid = dim3(static_cast<unsigned>(shape.expert_blocks), kExperts),
            .block = dim3(kExpertThreads)};
  }
};

}  // namespace
}  // namespace tilestep::triage::SIMT_BACKEND
SIMT_KERNEL_SET(triage, KernelsHere)
