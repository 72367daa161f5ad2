// Fusion: the launches of sampling.cu, and of its steps apart.

#include <algorithm>
#include <cmath>

#include "kernels/systems/fusion/launch.hpp"
#include "kernels/systems/fusion/sampling/apart.cu"

namespace tilestep::fusion::SIMT_BACKEND {
namespace {

/// Throws Error naming what is not allowed.
void check_sample(const SampleShape& shape, const SampleRule& rule) {
  simt::require_within("sample: rows", shape.rows, 1, 1 << 16);
  simt::require_within("sample: vocabulary", shape.vocabulary, 1, 1 << 20);
  simt::require_within("sample: top_k", rule.top_k, 0);
  const float t = rule.temperature, p = rule.top_p;
  if (t != 0 && !(t >= 0.001f && t <= 1000)) {
    throw Error("sample: temperature is " + std::to_string(t) + "; allowed: 0, 0.001–1000");
  }
  if (!(p > 0 && p <= 1)) {
    throw Error("sample: top_p is " + std::to_string(p) + "; allowed: above 0, up to 1");
  }
}

template <class Run>
void with_logits(Dtype type, int vocabulary, Run run) {
  with_packs(RowShape{.type = type, .rows = 1, .width = vocabulary}, 1,
             [&](auto pack, auto) { run(pack); });
}

/// What the list is for. A nucleus is thought to be within as many logits as a quarter of the threads; the fewer they
/// are beside the threads, the closer these threads' largest logits bound them.
int listed_of(const SampleShape& shape, const SampleRule& rule) {
  if (rule.greedy()) return 0;
  if (rule.top_k > 0) return rule.top_k;
  return rule.top_p < 1 ? shape.threads / 4 : 0;
}

}  // namespace

void start_sample(simt::Device& device, Dtype type, const SampleShape& shape,
                  const SampleRule& rule, simt::Span<const unsigned char> logits,
                  simt::Span<int> tokens) {
  check_sample(shape, rule);
  simt::with_constant<32, 64, 128, 256, 512>("sample: threads", shape.threads, [](auto) {});
  simt::with_constant<1, 2, 4, 8>("sample: cluster", shape.cluster, [](auto) {});
  with_logits(type, shape.vocabulary, [&](auto pack) {
    using OfRow = Row<decltype(pack)>;
    using Memory = typename OfRow::Memory;
    Sampling sampling{};
    sampling.packs = shape.vocabulary / OfRow::Pack::kNumbers;
    sampling.segments = static_cast<int>(simt::blocks_for(sampling.packs, OfRow::kSegment));
    sampling.cluster = shape.cluster;
    sampling.scale = rule.greedy() ? 1.0f : 1.4426950408889634f / rule.temperature;
    sampling.top_k = rule.top_k;
    sampling.listed = listed_of(shape, rule);
    sampling.by_mass = rule.top_p < 1;
    sampling.top_p =
        sampling.by_mass ? static_cast<Mass>(std::ldexp(static_cast<double>(rule.top_p), 64)) : 0;
    sampling.greedy = rule.greedy();
    sampling.seed = rule.seed;
    const Places places =
        places_of(shape.threads / 32, sampling.segments, sizeof(Memory), sampling.listed > 0);
    simt::Launch launch = simt::row_of_blocks("sample", std::int64_t{shape.rows} * shape.cluster,
                                              shape.threads, static_cast<std::size_t>(places.end));
    launch.cluster = static_cast<unsigned>(shape.cluster);
    simt::launch(device, launch, sample_rows<OfRow>,
                 simt::as<const Memory>(simt::global(logits, "logits")),
                 simt::global(tokens, "tokens"), sampling);
  });
}

void start_sample_apart(simt::Device& device, Dtype type, const SampleShape& shape,
                        const SampleRule& rule, simt::Span<const unsigned char> logits,
                        simt::Span<float> scratch, simt::Span<int> tokens) {
  check_sample(shape, rule);
  const auto launch = [&](const char* name) {
    return simt::row_of_blocks(name, shape.rows, kMostThreads);
  };
  const auto picked = simt::global(tokens, "tokens");
  const std::size_t rows = static_cast<std::size_t>(shape.rows),
                    count = rows * static_cast<std::size_t>(shape.vocabulary);
  const auto values = simt::global(simt::Span<float>{scratch.data, count}, "scaled");
  const auto thresholds = simt::global(simt::Span<float>{scratch.data + count, rows}, "thresholds");
  with_logits(type, shape.vocabulary, [&](auto pack) {
    using Pack = decltype(pack);
    simt::launch(device, launch("scale"), scale_logits<Pack>,
                 simt::as<const typename Pack::Memory>(simt::global(logits, "logits")), values,
                 shape.vocabulary / Pack::kNumbers, 1.0f / rule.temperature);
  });
  simt::launch(device, launch("softmax"), softmax_logits, values, shape.vocabulary);
  simt::launch(device, launch("threshold"), find_threshold, values, thresholds, shape.vocabulary,
               rule.top_k, rule.top_p);
  simt::launch(device, launch("pick"), pick_token, values, thresholds, picked, shape.vocabulary,
               rule.seed);
}

}  // namespace tilestep::fusion::SIMT_BACKEND
