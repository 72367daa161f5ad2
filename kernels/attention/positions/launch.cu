// Positions: the shapes that the kernels accept, and their launches.

#include <bit>
#include <string>

#include "kernels/attention/positions/heads.cu"
#include "kernels/attention/positions/scores.cu"

namespace tilestep::positions::SIMT_BACKEND {
namespace {

Arrays arrays_of(const HeadsArrays& from) {
  const auto packs = [](auto span, const char* name) {
    using Number = std::remove_reference_t<decltype(*span.data)>;
    using Pack = std::conditional_t<std::is_const_v<Number>, const uint4, uint4>;
    return simt::as<Pack>(simt::global(span, name));
  };
  return {packs(from.qkv, "qkv"),
          packs(from.q, "q"),
          packs(from.keys, "keys"),
          packs(from.k_cache, "k_cache"),
          packs(from.v_cache, "v_cache"),
          packs(from.q_gain, "q_gain"),
          packs(from.k_gain, "k_gain"),
          simt::global(from.positions, "positions"),
          simt::global(from.slots, "slots"),
          packs(from.rates, "rates")};
}

void check(const HeadsShape& shape) {
  simt::require_within("positions: tokens", shape.tokens, 1, 1 << 24);
  simt::require_within("positions: heads", shape.heads, 1, 1024);
  simt::require_within("positions: K/V heads", shape.kv_heads, 1, 1024);
  simt::require_within("positions: page size", shape.page_size, 1, 1 << 16);
  for (const int dim : {16, 32, 64, 128, 256}) {
    if (shape.dim == dim) return;
  }
  throw Error("positions: a head of " + std::to_string(shape.dim) +
              " numbers; allowed: 16, 32, 64, 128, 256");
}

/// The rows of a token that a stage is about, from its first on.
std::pair<int, int> rows_at(Stage stage, const HeadsShape& shape) {
  switch (stage) {
    case Stage::norm_queries:
      return {0, shape.heads};
    case Stage::norm_keys:
      return {shape.heads, shape.kv_heads};
    case Stage::rotate:
      return {0, shape.heads + shape.kv_heads};
    case Stage::store:
      return {shape.heads, 2 * shape.kv_heads};
    default:
      return {0, rows_of(shape)};
  }
}

Job job_of(Stage stage, const HeadsShape& shape) {
  const int lanes = shape.dim / kNumbersEach;
  const auto rows = rows_at(stage, shape);
  return {.heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .page_size = shape.page_size,
          .first = rows.first,
          .rows = rows.second,
          .lanes = lanes,
          .lane_bits = std::countr_zero(static_cast<unsigned>(lanes)),
          .per_dim = 1.0f / static_cast<float>(shape.dim),
          .size = shape.size};
}

/// A block has heads of one token: no more warps than they need.
simt::Launch launch_of(const HeadsShape& shape, const Job& job) {
  int threads = shape.threads;
  const auto blocks = [&] {
    return simt::blocks_for(job.rows, threads / job.lanes * shape.rows_each);
  };
  while (threads % 64 == 0 && blocks() == 1 && threads / 2 >= job.lanes &&
         simt::blocks_for(job.rows, threads / 2 / job.lanes * shape.rows_each) == 1)
    threads /= 2;
  const std::size_t shared = sizeof(float4) * kTwosEach * static_cast<std::size_t>(job.lanes);
  simt::Launch launch = simt::row_of_blocks("heads", shape.tokens, threads, shared);
  launch.grid.y = static_cast<unsigned>(blocks());
  launch.early = shape.early;
  return launch;
}

template <class Run>
void with_stage(Stage stage, Run run) {
  switch (stage) {
    case Stage::fused:
      return run(std::integral_constant<Stage, Stage::fused>{});
    case Stage::norm_queries:
      return run(std::integral_constant<Stage, Stage::norm_queries>{});
    case Stage::norm_keys:
      return run(std::integral_constant<Stage, Stage::norm_keys>{});
    case Stage::rotate:
      return run(std::integral_constant<Stage, Stage::rotate>{});
    case Stage::store:
      return run(std::integral_constant<Stage, Stage::store>{});
  }
}
template <class Run>
void with_pairs(Pairs pairs, Run run) {
  if (pairs == Pairs::interleaved) return run(std::integral_constant<Pairs, Pairs::interleaved>{});
  run(std::integral_constant<Pairs, Pairs::half_split>{});
}

class KernelsHere final : public Kernels {
 public:
  void heads(simt::Device& device, Stage stage, const HeadsShape& shape,
             const HeadsArrays& arrays) const override {
    check(shape);
    if (shape.early) simt::require_capability(device.info(), "positions: an early launch", 90);
    const Job job = job_of(stage, shape);
    with_stage(stage, [&](auto the_stage) {
      with_pairs(shape.pairs, [&](auto pairs) {
        simt::with_constant<1, 2, 3, 4>(
            "positions: heads of a thread", shape.rows_each, [&](auto rows) {
              simt::launch(device, launch_of(shape, job), heads_kernel<the_stage, pairs, rows>,
                           arrays_of(arrays), job, shape.early);
            });
      });
    });
  }

  void explained_heads(simt::Device& device, Stage stage, const HeadsShape& shape,
                       const HeadsArrays& arrays, Break broken,
                       const simt::Tape& tape) const override {
    check(shape);
    HeadsShape one = shape;
    one.rows_each = 1;
    const Job job = job_of(stage, one);
    with_stage(stage, [&](auto the_stage) {
      with_pairs(shape.pairs, [&](auto pairs) {
        simt::launch(device, launch_of(one, job), explained_kernel<the_stage, pairs>,
                     arrays_of(arrays), job, broken, tape);
      });
    });
  }

  void scores(simt::Device& device, const ScoresShape& shape, const ScoresArrays& arrays,
              const simt::Tape& tape) const override {
    simt::require_within("positions: keys", shape.keys, 1, 1 << 24);
    const Keys keys{simt::global(arrays.q, "q"), simt::global(arrays.k_cache, "k_cache"),
                    simt::global(arrays.positions, "positions"),
                    simt::global(arrays.slots, "slots"), simt::global(arrays.scores, "scores")};
    const simt::Launch launch = simt::row_of_blocks("scores", simt::blocks_for(shape.keys, 32), 32);
    simt::with_tape(tape, [&](const auto& its) {
      simt::launch(device, launch, scores_kernel<std::decay_t<decltype(its)>>, keys, shape, its);
    });
  }

  void nothing(simt::Device& device) const override {
    simt::launch(device, {.name = "nothing", .block = dim3(32)}, nothing_kernel);
  }
};

}  // namespace
}  // namespace tilestep::positions::SIMT_BACKEND
SIMT_KERNEL_SET(positions, KernelsHere)
