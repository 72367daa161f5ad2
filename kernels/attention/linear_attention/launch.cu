// Linear attention: the shapes that the kernels accept, and their launches.

#include "kernels/attention/linear_attention/chunked.cu"
#include "kernels/attention/linear_attention/recurrent.cu"
#include "kernels/attention/linear_attention/weights.cu"
#include "kernels/base/simt/launch.hpp"

namespace tilestep::linear_attention::SIMT_BACKEND {
namespace {

void check(const Shape& shape) {
  simt::require_within("linear attention: tokens", shape.tokens, 1, 1 << 24);
  simt::require_within("linear attention: heads", shape.heads, 1, 65535);
}
template <class Run>
void with_dim(int dim, Run run) {
  simt::with_constant<16, 32, 64, 128>("linear attention: numbers of a head", dim, run);
}

Chunked chunked_of(const Arrays& from) {
  return {simt::global(from.q, "q"),
          simt::global(from.k, "k"),
          simt::global(from.v, "v"),
          simt::global(from.log_gates, "log_gates"),
          simt::global(from.betas, "betas"),
          simt::global(from.o, "o"),
          simt::global(from.state, "state"),
          simt::global(from.decays, "decays"),
          simt::global(from.states, "states"),
          simt::global(from.values, "values"),
          simt::global(from.readers, "readers")};
}

simt::Launch per_head(const char* name, int across, const Shape& shape, int threads,
                      std::size_t shared) {
  simt::Launch launch = simt::row_of_blocks(name, across, threads, shared);
  launch.grid.y = static_cast<unsigned>(shape.heads);
  return launch;
}

class KernelsHere final : public Kernels {
 public:
  void features(simt::Device& device, const FeatureShape& shape, simt::Span<const std::uint16_t> x,
                simt::Span<const float> omega, simt::Span<std::uint16_t> out) const override {
    simt::require_within("linear attention: rows", shape.rows, 1, 1 << 30);
    with_dim(shape.dim, [](auto) {});
    simt::launch(device, simt::row_of_blocks("features", shape.rows, shape.dim), features_kernel,
                 simt::global(x, "x"), simt::global(omega, "omega"), simt::global(out, "out"),
                 shape);
  }

  void weights(simt::Device& device, const Shape& shape, const WeightsArrays& from,
               const simt::Tape& tape) const override {
    simt::require_within("linear attention: keys of a query", shape.tokens, 1, 4096);
    with_dim(shape.dim, [](auto) {});
    const Compared arrays{simt::global(from.q, "q"),
                          simt::global(from.k, "k"),
                          simt::global(from.mapped_q, "mapped q"),
                          simt::global(from.mapped_k, "mapped k"),
                          simt::global(from.v, "v"),
                          simt::global(from.answers, "answers")};
    const std::size_t shared = 2 * sizeof(float) * static_cast<std::size_t>(shape.tokens);
    simt::launch(device, simt::row_of_blocks("weights", 1, 128, shared), weights_kernel, arrays,
                 shape.tokens, shape.dim, tape);
  }

  void recurrent(simt::Device& device, const Shape& shape, const Arrays& from, bool resume,
                 const Probes& probes, const simt::Tape& tape) const override {
    check(shape);
    simt::require_within("linear attention: probes", probes.count, 0, kMostProbes);
    const Recurrence arrays{
        simt::global(from.q, "q"),         simt::global(from.k, "k"),
        simt::global(from.v, "v"),         simt::global(from.log_gates, "log_gates"),
        simt::global(from.betas, "betas"), simt::global(from.o, "o"),
        simt::global(from.state, "state"), simt::global(probes.keys, "probes")};
    with_dim(shape.dim, [&](auto dim) {
      simt::with_tape(tape, [&](const auto& its) {
        simt::launch(device, simt::row_of_blocks("recurrent", shape.heads, dim),
                     recurrent_kernel<dim, std::decay_t<decltype(its)>>, arrays, shape.tokens,
                     shape.rule, resume, probes.count, its);
      });
    });
  }

  void chunked(simt::Device& device, const Shape& shape, const Arrays& from, Break broken,
               const simt::Tape& tape) const override {
    check(shape);
    if (corrects(shape.rule)) {
      simt::with_constant<16, 32, 64>("linear attention: tokens of a chunk with the delta rule",
                                      shape.chunk, [](auto) {});
    } else {
      simt::with_constant<16, 32, 64, 128>("linear attention: tokens of a chunk", shape.chunk,
                                           [](auto) {});
    }
    const Chunked arrays = chunked_of(from);
    Job job{.tokens = shape.tokens,
            .chunk = shape.chunk,
            .chunks = chunks_of(shape),
            .gated = gates(shape.rule)};
    if (tape) {
      job.undecayed = broken == Break::no_decay;
      job.stale = broken == Break::stale_state;
      job.unmasked = broken == Break::unmasked_chunk;
    }
    if (job.gated)
      simt::launch(device, per_head("decays", job.chunks, shape, 32, 0), decays_kernel, arrays,
                   job);
    with_dim(shape.dim, [&](auto dim) {
      if (corrects(shape.rule)) {
        prepare<dim>(device, shape, arrays, job);
        run<dim, true>(device, shape, arrays, job, tape);
      } else {
        run<dim, false>(device, shape, arrays, job, tape);
      }
    });
  }

 private:
  template <int kDim>
  static void prepare(simt::Device& device, const Shape& shape, const Chunked& arrays,
                      const Job& job) {
    const auto chunk = static_cast<std::size_t>(job.chunk);
    const std::size_t shared = chunk * ((kDim + kPadding) * sizeof(Bits) +
                                        (chunk + kSolveRows + 2 * kDim) * sizeof(float));
    simt::launch(device, per_head("prepare", job.chunks, shape, 2 * kDim, shared),
                 prepare_kernel<kDim>, arrays, job);
  }
  template <int kDim, bool kCorrects>
  static void run(simt::Device& device, const Shape& shape, const Chunked& arrays, const Job& job,
                  const simt::Tape& tape) {
    simt::with_tape(tape, [&](const auto& its) {
      using Its = std::decay_t<decltype(its)>;
      const StateTiles<kDim, kCorrects> state_tiles{job.chunk};
      simt::launch(device,
                   per_head("states", kDim / kColumns<kDim>, shape, 2 * kDim, state_tiles.bytes()),
                   states_kernel<kDim, kCorrects, Its>, arrays, job, its);
      const OutputTiles<kDim> output_tiles{job.chunk};
      simt::launch(device,
                   per_head("outputs", job.chunks, shape, 2 * job.chunk, output_tiles.bytes()),
                   outputs_kernel<kDim, kCorrects, Its>, arrays, job, its);
    });
  }
};

}  // namespace
}  // namespace tilestep::linear_attention::SIMT_BACKEND
SIMT_KERNEL_SET(linear_attention, KernelsHere)
