// Launches: the shapes that the kernels accept, and their launches.

#include "kernels/systems/launches/launch.hpp"
#include "kernels/systems/launches/step.cu"

namespace tilestep::launches::SIMT_BACKEND {
namespace {

constexpr int kThreads = 128;

class KernelsHere final : public Kernels {
 public:
  void embed(simt::Device& device, const StepShape& shape, simt::Span<const int> tokens,
             simt::Span<const float> table, simt::Span<float> h,
             const Stamps& stamps) const override {
    with_clock(stamps, [&](auto clock) {
      simt::launch(device, simt::row_of_blocks("embed", shape.batch, kThreads),
                   SIMT_BACKEND::embed<decltype(clock)>, simt::global(tokens, "tokens"),
                   simt::global(table, "table"), simt::global(h, "h"), shape.width, clock);
    });
  }

  void norm(simt::Device& device, const StepShape& shape, simt::Span<const float> h,
            simt::Span<const float> gain, simt::Span<float> n,
            const Stamps& stamps) const override {
    with_clock(stamps, [&](auto clock) {
      simt::launch(device, simt::row_of_blocks("norm", shape.batch, kThreads, kSumBytes),
                   SIMT_BACKEND::norm<decltype(clock)>, simt::global(h, "h"),
                   simt::global(gain, "gain"), simt::global(n, "n"), shape.width, clock);
    });
  }

  void product(simt::Device& device, const char* name, Loads loads, const ProductShape& shape,
               const ProductArrays& arrays, const Stamps& stamps) const override {
    simt::require_within("launches: rows", shape.rows, 1, 1 << 20);
    simt::require_within("launches: k", shape.k, 1, 1 << 20);
    if (loads == Loads::vectors) simt::require_multiple("launches: k", shape.k, kPack);
    // A warp per row.
    const simt::Launch launch =
        simt::row_of_blocks(name, simt::blocks_for(shape.rows, kThreads / 32), kThreads);
    with_clock(stamps, [&](auto clock) {
      with_tokens(shape.batch, [&](auto tokens) {
        using Its = decltype(clock);
        constexpr int kTokens = decltype(tokens)::value;
        const auto x = simt::global(arrays.x, "x");
        const auto y = simt::global(arrays.y, "y");
        if (loads == Loads::vectors) {
          simt::launch(device, launch, SIMT_BACKEND::product<kTokens, Its>,
                       simt::as<const uint4>(simt::global(arrays.w, "w")), x, y, shape.rows,
                       shape.k, shape.batch, clock);
        } else {
          simt::launch(device, launch, product_single<kTokens, Its>, simt::global(arrays.w, "w"), x,
                       y, shape.rows, shape.k, shape.batch, clock);
        }
      });
    });
  }

  void act(simt::Device& device, const StepShape& shape, simt::Span<const float> gate,
           simt::Span<const float> up, simt::Span<float> a, const Stamps& stamps) const override {
    const int count = shape.batch * shape.inner;
    with_clock(stamps, [&](auto clock) {
      simt::launch(device, simt::row_of_blocks("act", simt::blocks_for(count, kThreads), kThreads),
                   SIMT_BACKEND::act<decltype(clock)>, simt::global(gate, "gate"),
                   simt::global(up, "up"), simt::global(a, "a"), count, clock);
    });
  }

  void add(simt::Device& device, const StepShape& shape, simt::Span<const float> d,
           simt::Span<float> h, const Stamps& stamps) const override {
    const int count = shape.batch * shape.width;
    with_clock(stamps, [&](auto clock) {
      simt::launch(device, simt::row_of_blocks("add", simt::blocks_for(count, kThreads), kThreads),
                   SIMT_BACKEND::add<decltype(clock)>, simt::global(d, "d"), simt::global(h, "h"),
                   count, clock);
    });
  }

  void persistent(simt::Device& device, const StepShape& shape, const ModelArrays& arrays,
                  const Stamps& stamps, bool barriers) const override {
    start_persistent(device, shape, arrays, stamps, barriers, {});
  }
  void persistent_noted(simt::Device& device, const StepShape& shape, const ModelArrays& arrays,
                        bool barriers, const simt::Tape& tape) const override {
    start_persistent(device, shape, arrays, {}, barriers, tape);
  }

  void nothing(simt::Device& device, const Stamps& stamps) const override {
    with_clock(stamps, [&](auto clock) {
      simt::launch(device, simt::row_of_blocks("nothing", 1, 32),
                   SIMT_BACKEND::nothing<decltype(clock)>, clock);
    });
  }
};

}  // namespace
}  // namespace tilestep::launches::SIMT_BACKEND
SIMT_KERNEL_SET(launches, KernelsHere)
