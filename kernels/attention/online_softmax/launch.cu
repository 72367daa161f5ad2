// Online softmax: the shapes that the kernels of one_pass.cu accept, and their launches.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/attention/online_softmax/kernels.hpp"
#include "kernels/attention/online_softmax/one_pass.cu"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::online_softmax::SIMT_BACKEND {

/// Throws Error naming the size that is not allowed.
void check_attention(const AttentionShape& shape, simt::Span<const float> scores,
                     simt::Span<const float> values, simt::Span<float> output) {
  simt::require_within("online_softmax: queries", shape.queries, 1, 1 << 20);
  simt::require_within("online_softmax: keys", shape.keys, 1, 1 << 30);
  simt::require_within("online_softmax: tile_width", shape.tile_width, 1, 1024);
  simt::require_within("online_softmax: head_dim", shape.head_dim, 1, 128);
  assert(scores.count == numeric::elements_of(shape.queries, shape.keys));
  assert(values.count == numeric::elements_of(shape.keys, shape.head_dim));
  assert(output.count == numeric::elements_of(shape.queries, shape.head_dim));
  (void)scores, (void)values, (void)output;
}

/// The same for rows; of a rung's threads `Rows` says which are compiled.
void check_rows(Rung rung, const RowShape& shape, simt::Span<const float> input,
                simt::Span<float> output) {
  const std::string name(name_of(rung));
  const bool held = rung == Rung::online_one_read;
  simt::require_within((name + ": rows").c_str(), static_cast<std::int64_t>(shape.rows), 1);
  simt::require_within((name + ": columns").c_str(), shape.columns, 1,
                       held ? one_read_columns(shape.threads) : 1 << 30);
  assert(input.count == shape.rows * static_cast<std::size_t>(shape.columns));
  assert(output.count == input.count);
  (void)input, (void)output;
}

/// Rows as packs.
template <class Pack>
struct Rows {
  simt::Device& device;
  RowShape shape;
  simt::Span<const float> input;
  simt::Span<float> output;

  static constexpr int kWidth = sizeof(Pack) / sizeof(float);

  template <class Kernel>
  void launch(const char* name, Kernel kernel) const {
    simt::launch(device,
                 simt::row_of_blocks(name, static_cast<std::int64_t>(shape.rows), shape.threads),
                 kernel, simt::as<const Pack>(simt::global(input, "input")),
                 simt::as<Pack>(simt::global(output, "output")), shape.columns / kWidth);
  }

  template <int kThreads, int kPacks>
  void one_read_with() const {
    launch("online_one_read", online_one_read<kThreads, kPacks, Pack>);
  }

  /// The smallest compiled number of packs that holds the row. Rows of single floats are the rare
  /// case and have fewer sizes.
  template <int kThreads>
  void one_read() const {
    const int needed = (shape.columns / kWidth + kThreads - 1) / kThreads;
    if constexpr (kWidth == 4) {
      if (needed <= 1) return one_read_with<kThreads, 1>();
      if (needed <= 2) return one_read_with<kThreads, 2>();
      if (needed <= 4) return one_read_with<kThreads, 4>();
      if (needed <= 8) return one_read_with<kThreads, 8>();
    } else if (needed <= 8) {
      return one_read_with<kThreads, 8>();
    }
    return one_read_with<kThreads, one_read_columns(kThreads) / kThreads / kWidth>();
  }

  void run(Rung rung) const {
    simt::with_constant<128, 256, 512, 1024>("threads", shape.threads, [&](auto threads) {
      if (rung == Rung::three_pass) return launch("three_pass", three_pass<Pack>);
      if (rung == Rung::online_two_pass) return launch("online_two_pass", online_two_pass<Pack>);
      one_read<decltype(threads)::value>();
    });
  }
};

/// One launch of the lesson's kernel. A block has one thread per component and, up to 128, one per
/// key of a tile.
template <class Format, class Tape>
void launch_attention(simt::Device& device, const AttentionShape& shape,
                      simt::Span<const float> scores, simt::Span<const float> values,
                      simt::Span<float> output, int first_query, int blocks, const Tape& tape) {
  const int wanted = shape.tile_width > shape.head_dim ? shape.tile_width : shape.head_dim;
  const int warps = wanted >= 128 ? 4 : (wanted + 31) / 32;
  int lanes = 1;
  while (lanes < 32 && lanes < shape.tile_width) lanes *= 2;
  simt::launch(device,
               simt::row_of_blocks("online_softmax", blocks, warps * 32,
                                   static_cast<std::size_t>(shape.tile_width) * sizeof(float)),
               online_softmax<Format, Tape>, simt::global(scores, "scores"),
               simt::global(values, "values"), simt::global(output, "output"), shape, first_query,
               lanes, tape);
}

/// Calls `run` with an object of the format's type.
template <class Run>
void with_format(Accumulator format, Run run) {
  if (format == Accumulator::fp16) return run(numeric::Fp16{});
  if (format == Accumulator::bf16) return run(numeric::Bf16{});
  return run(numeric::Fp32{});
}

class KernelsHere final : public Kernels {
 public:
  void attention(simt::Device& device, const AttentionShape& shape, Accumulator format,
                 simt::Span<const float> scores, simt::Span<const float> values,
                 simt::Span<float> output, const simt::Tape& tape, int query) const override {
    check_attention(shape, scores, values, output);
    assert(query >= 0 && query < shape.queries);
    assert(tape.chosen_thread >= 0 && tape.chosen_thread < shape.head_dim);
    simt::with_tape(tape, [&](const auto& chosen) {
      with_format(format, [&](auto kind) {
        launch_attention<decltype(kind)>(device, shape, scores, values, output, query,
                                         tape ? 1 : shape.queries, chosen);
      });
    });
  }

  void naive_sums(simt::Device& device, simt::Span<const float> scores,
                  simt::Span<const float> values, simt::Span<float> sums) const override {
    assert(scores.count == values.count && sums.count == 2);
    simt::launch(device, {.name = "naive_softmax_sum", .grid = 1, .block = 128}, naive_softmax_sum,
                 simt::global(scores, "scores"), simt::global(values, "values"),
                 simt::global(sums, "sums"), static_cast<int>(scores.count));
  }

  void softmax_rows(simt::Device& device, Rung rung, const RowShape& shape,
                    simt::Span<const float> input, simt::Span<float> output) const override {
    check_rows(rung, shape, input, output);
    const auto aligned = [](const float* data) {
      return reinterpret_cast<std::uintptr_t>(data) % alignof(float4) == 0;
    };
    if (shape.columns % 4 == 0 && aligned(input.data) && aligned(output.data)) {
      Rows<float4>{device, shape, input, output}.run(rung);
    } else {
      Rows<float>{device, shape, input, output}.run(rung);
    }
  }
};

}  // namespace tilestep::online_softmax::SIMT_BACKEND
SIMT_KERNEL_SET(online_softmax, KernelsHere)
