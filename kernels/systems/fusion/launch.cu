// Fusion: the shapes that the kernels accept, and their launches.

#include "kernels/systems/fusion/launch.hpp"
#include "kernels/systems/fusion/loss.cu"

namespace tilestep::fusion::SIMT_BACKEND {
namespace {

class KernelsHere final : public Kernels {
 public:
  void multiply(simt::Device& device, Epilogue epilogue, TileSize size, const ProductShape& shape,
                const ProductArrays& arrays) const override {
    start_product(device, epilogue, size, shape, arrays);
  }
  void add_bias(simt::Device& device, const ProductShape& shape,
                const ProductArrays& arrays) const override {
    start_bias(device, shape, arrays);
  }

  void rows(simt::Device& device, const RowShape& shape, const Parts& parts,
            const RowArrays& arrays) const override {
    start_rows(device, shape, parts, arrays);
  }

  void explained_row(simt::Device& device, const RowShape& shape, const Parts& parts,
                     const RowArrays& arrays, Break broken, const simt::Tape& tape) const override {
    check_threads(shape.threads);
    simt::require_within("fusion: explained rows", shape.rows, 1, 1);
    const int cluster = checked_cluster(shape);
    const simt::Launch launch = launch_of("explained_row", shape, cluster);
    with_packs(shape, cluster, [&](auto pack, auto held) {
      using Pack = decltype(pack);
      using Held = decltype(held);
      simt::launch(device, launch, explained_kernel<Pack, Held::kPacks, Held::kShared>,
                   arrays_of<Pack>(arrays), rows_of(shape, cluster), parts, broken, tape);
    });
  }

  void rows_holding(simt::Device& device, int values, const RowShape& shape,
                    const RowArrays& arrays) const override {
    start_rows_holding(device, values, shape, arrays);
  }
  simt::Resources resources_holding(int values, int width) const override {
    return holding(values, width);
  }

  void cross_entropy(simt::Device& device, const LossShape& shape,
                     simt::Span<const unsigned char> logits, simt::Span<const int> targets,
                     simt::Span<float> loss) const override {
    check_threads(shape.threads);
    simt::require_within("cross_entropy: rows", shape.rows, 1, 1 << 24);
    simt::require_within("cross_entropy: vocabulary", shape.vocabulary, 1, 1 << 24);
    const simt::Launch launch = simt::row_of_blocks("cross_entropy", shape.rows, shape.threads);
    RowShape as_rows{.type = shape.type, .rows = 1, .width = shape.vocabulary};
    with_packs(as_rows, 1, [&](auto pack, auto) {
      using Pack = decltype(pack);
      simt::launch(device, launch, SIMT_BACKEND::cross_entropy<Pack>,
                   simt::as<const typename Pack::Memory>(simt::global(logits, "logits")),
                   simt::global(targets, "targets"), simt::global(loss, "loss"), shape.vocabulary);
    });
  }

  void sample(simt::Device& device, Dtype type, const SampleShape& shape, const SampleRule& rule,
              simt::Span<const unsigned char> logits, simt::Span<int> tokens) const override {
    start_sample(device, type, shape, rule, logits, tokens);
  }
  void sample_apart(simt::Device& device, Dtype type, const SampleShape& shape,
                    const SampleRule& rule, simt::Span<const unsigned char> logits,
                    simt::Span<float> scratch, simt::Span<int> tokens) const override {
    start_sample_apart(device, type, shape, rule, logits, scratch, tokens);
  }
};

}  // namespace
}  // namespace tilestep::fusion::SIMT_BACKEND
SIMT_KERNEL_SET(fusion, KernelsHere)
