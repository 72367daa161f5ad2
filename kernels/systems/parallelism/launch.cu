// Many GPUs: the shapes that the kernels accept, and their launches.

#include "kernels/systems/parallelism/collectives.cu"
#include "kernels/systems/parallelism/gather/launch_gather.hpp"
#include "kernels/systems/parallelism/model.cu"
#if defined(__CUDACC__)
#include "kernels/base/simt/cuda/ranks_cuda.hpp"
#include "kernels/base/simt/ranks_blas.hpp"
#endif

namespace tilestep::parallelism::SIMT_BACKEND {
namespace {

constexpr int kThreads = 64;

simt::Launch small_launch(const char* name, std::int64_t threads) {
  return simt::row_of_blocks(name, simt::blocks_for(threads, kThreads), kThreads);
}
simt::Launch launch_of(const CallShape& shape) {
  return simt::row_of_blocks("collective", shape.blocks, shape.threads);
}

void check(const CallShape& shape) {
  simt::require_within("parallelism: ranks", shape.ranks, 1, kMostRanks);
  simt::require_within("parallelism: rank", shape.rank, 0, shape.ranks - 1);
  simt::require_within("parallelism: packs of a unit", shape.unit, 1, 1 << 20);
  const bool in_parts = shape.op != Op::all_to_all && shape.op != Op::pass;
  simt::require_within("parallelism: units", shape.units, in_parts ? shape.ranks : 0, 1 << 28);
  simt::require_within("parallelism: packs", shape.packs(), 0, 1 << 28);
  simt::require_within("parallelism: blocks", shape.blocks, 1, 1024);
  simt::require_within("parallelism: threads", shape.threads, 32, 512);
}

Peers peers_of(const CallArrays& from, int ranks) {
  Peers peers;
  const auto packs = [](auto span, const char* name) {
    using Number = std::remove_reference_t<decltype(*span.data)>;
    using Pack = std::conditional_t<std::is_const_v<Number>, const float4, float4>;
    return simt::as<Pack>(simt::global(span, name));
  };
  peers.in = packs(from.in, "in");
  for (int rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    peers.room[rank] = packs(from.room[at], "room");
    peers.out[rank] = packs(from.out[at], "out");
    peers.flags[rank] = simt::global(from.flags[at], "flags");
  }
  peers.epochs = simt::global(from.epochs, "epochs");
  return peers;
}

template <Op kOp>
using OpConstant = std::integral_constant<Op, kOp>;
template <Algorithm kAlgorithm>
using AlgorithmConstant = std::integral_constant<Algorithm, kAlgorithm>;

/// Calls run(op, algorithm) for the kernel of a shape; the algorithm is a choice for all-reduce, and a gather may go at once.
template <class Run>
void with_kernel(const CallShape& shape, Run run) {
  constexpr AlgorithmConstant<Algorithm::ring> kRing{};
  switch (shape.op) {
    case Op::all_reduce:
      if (shape.algorithm == Algorithm::ring) return run(OpConstant<Op::all_reduce>{}, kRing);
      if (shape.algorithm == Algorithm::tree)
        return run(OpConstant<Op::all_reduce>{}, AlgorithmConstant<Algorithm::tree>{});
      return run(OpConstant<Op::all_reduce>{}, AlgorithmConstant<Algorithm::one_shot>{});
    case Op::reduce_scatter:
      return run(OpConstant<Op::reduce_scatter>{}, kRing);
    case Op::all_gather:
      if (shape.algorithm == Algorithm::one_shot)
        return run(OpConstant<Op::all_gather>{}, AlgorithmConstant<Algorithm::one_shot>{});
      return run(OpConstant<Op::all_gather>{}, kRing);
    case Op::all_to_all:
      return run(OpConstant<Op::all_to_all>{}, kRing);
    case Op::pass:
      return run(OpConstant<Op::pass>{}, kRing);
  }
}

Attention attention_of(const AttendShape& shape, const AttendArrays& from) {
  return {shape,
          simt::global(from.q, "q"),
          simt::global(from.k, "k"),
          simt::global(from.v, "v"),
          simt::global(from.q_at, "q_at"),
          simt::global(from.k_at, "k_at"),
          simt::global(from.o, "o"),
          simt::global(from.m, "m"),
          simt::global(from.l, "l"),
          simt::global(from.d_o, "d_o"),
          simt::global(from.delta, "delta"),
          simt::global(from.d_q, "d_q"),
          simt::global(from.d_k, "d_k"),
          simt::global(from.d_v, "d_v")};
}

class KernelsHere final : public Kernels {
 public:
  std::unique_ptr<simt::Ranks> make_ranks(simt::Device& device, int count, std::uint64_t seed,
                                          simt::ThreadOrder order) const override {
#if defined(__CUDACC__)
    static_cast<void>(seed), static_cast<void>(order);
    std::vector<const void*> all = {
        reinterpret_cast<const void*>(&product),
        reinterpret_cast<const void*>(&product_bf16),
        reinterpret_cast<const void*>(&collective_bf16<Op::all_reduce>),
        reinterpret_cast<const void*>(&collective_bf16<Op::reduce_scatter>),
        reinterpret_cast<const void*>(&SIMT_BACKEND::attend),
        reinterpret_cast<const void*>(&SIMT_BACKEND::finish),
        reinterpret_cast<const void*>(&SIMT_BACKEND::products_of_rows),
        reinterpret_cast<const void*>(&SIMT_BACKEND::attend_back),
        reinterpret_cast<const void*>(&each_number),
        reinterpret_cast<const void*>(&adam_step),
        reinterpret_cast<const void*>(&SIMT_BACKEND::take_rows)};
    CallShape shape;
    for (const Op op : lab_ops()) {
      for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::one_shot}) {
        shape.op = op;
        shape.algorithm = algorithm;
        with_kernel(shape, [&](auto the_op, auto the_algorithm) {
          all.push_back(
              reinterpret_cast<const void*>(&collective<the_op, the_algorithm, simt::NoTape>));
          all.push_back(
              reinterpret_cast<const void*>(&collective<the_op, the_algorithm, simt::Tape>));
        });
      }
    }
    if (SIMT_BACKEND::multiplies_coming(device)) all.push_back(coming_kernel());
    return std::make_unique<simt::CudaRanks>(device, count, all);
#else
    return simt::make_emulated_ranks(device, {}, count, seed, order);
#endif
  }

  int gpus() const override {
    int count = 2;
#if defined(__CUDACC__)
    if (cudaGetDeviceCount(&count) != cudaSuccess) count = 1;
#endif
    return count;
  }

  void call(simt::Ranks& ranks, int number, const CallShape& shape, const CallArrays& arrays,
            const simt::Tape& tape) const override {
    check(shape);
    const Peers peers = peers_of(arrays, shape.ranks);
    const simt::World world = ranks.world(shape.rank, number);
    if (shape.bf16) {
      const bool sums = shape.op == Op::all_reduce || shape.op == Op::reduce_scatter;
      if (!sums || shape.algorithm != Algorithm::ring)
        throw Error("parallelism: BF16 is added in a ring");
      const auto kernel = shape.op == Op::all_reduce ? collective_bf16<Op::all_reduce>
                                                     : collective_bf16<Op::reduce_scatter>;
      simt::launch_at(ranks, shape.rank, launch_of(shape), kernel, peers, shape, world);
      return;
    }
    with_kernel(shape, [&](auto op, auto algorithm) {
      simt::with_tape(tape, [&](const auto& its) {
        simt::launch_at(ranks, shape.rank, launch_of(shape),
                        collective<op, algorithm, std::decay_t<decltype(its)>>, peers, shape, world,
                        its);
      });
    });
  }

  void multiply(simt::Ranks& ranks, int rank, const Product& shape, simt::Span<const float> a,
                simt::Span<const float> b, simt::Span<float> c) const override {
    simt::launch_at(ranks, rank, small_launch("product", std::int64_t{shape.m} * shape.n), product,
                    shape, simt::global(a, "a"), simt::global(b, "b"), simt::global(c, "c"));
  }
  void multiply_bf16(simt::Ranks& ranks, int rank, const Product& shape,
                     simt::Span<const std::uint16_t> a, simt::Span<const std::uint16_t> b,
                     simt::Span<std::uint16_t> c) const override {
#if defined(__CUDACC__)
    const simt::cuda::RanksBlas& blas = simt::cuda::RanksBlas::loaded();
    if (blas.status().available) {
      blas.multiply(ranks, rank, {shape.m, shape.n, shape.k}, {a.data, shape.lda, shape.turn_a},
                    {b.data, shape.ldb, shape.turn_b}, c.data, shape.ldc, shape.adds);
      return;
    }
#endif
    simt::launch_at(ranks, rank, small_launch("product_bf16", std::int64_t{shape.m} * shape.n),
                    product_bf16, shape, simt::global(a, "a"), simt::global(b, "b"),
                    simt::global(c, "c"));
  }
  bool multiplies_coming(simt::Device& device) const override {
    return SIMT_BACKEND::multiplies_coming(device);
  }
  void multiply_coming(simt::Ranks& ranks, int rank, const ComingShape& shape,
                       const ComingArrays& arrays) const override {
    start_coming(ranks, rank, shape, arrays);
  }
  simt::LibraryStatus library() const override {
#if defined(__CUDACC__)
    return simt::cuda::RanksBlas::loaded().status();
#else
    return simt::library_status();
#endif
  }
  void attend(simt::Ranks& ranks, int rank, const AttendShape& shape,
              const AttendArrays& arrays) const override {
    simt::launch_at(ranks, rank, small_launch("attend", std::int64_t{shape.queries} * shape.heads),
                    SIMT_BACKEND::attend, attention_of(shape, arrays));
  }
  void finish(simt::Ranks& ranks, int rank, const AttendShape& shape,
              const AttendArrays& arrays) const override {
    simt::launch_at(ranks, rank,
                    small_launch("finish", std::int64_t{shape.queries} * shape.heads * shape.dim),
                    SIMT_BACKEND::finish, attention_of(shape, arrays));
  }
  void products_of_rows(simt::Ranks& ranks, int rank, const AttendShape& shape,
                        simt::Span<const float> d_o, simt::Span<const float> o,
                        simt::Span<float> delta) const override {
    simt::launch_at(ranks, rank,
                    small_launch("products_of_rows", std::int64_t{shape.queries} * shape.heads),
                    SIMT_BACKEND::products_of_rows, shape, simt::global(d_o, "d_o"),
                    simt::global(o, "o"), simt::global(delta, "delta"));
  }
  void attend_back(simt::Ranks& ranks, int rank, const AttendShape& shape,
                   const AttendArrays& arrays) const override {
    const std::int64_t rows = std::int64_t{shape.queries} + shape.keys;
    simt::launch_at(ranks, rank, small_launch("attend_back", rows * shape.heads),
                    SIMT_BACKEND::attend_back, attention_of(shape, arrays));
  }
  void each(simt::Ranks& ranks, int rank, Each what, simt::Span<float> a, simt::Span<const float> b,
            float value) const override {
    const auto count = static_cast<int>(a.count);
    if (count == 0) return;
    simt::launch_at(ranks, rank, small_launch("each_number", count), each_number, what,
                    simt::global(a, "a"), simt::global(b, "b"), value, count);
  }
  void adam(simt::Ranks& ranks, int rank, simt::Span<float> weights,
            simt::Span<const float> gradients, simt::Span<float> moments) const override {
    const auto count = static_cast<int>(weights.count);
    simt::launch_at(ranks, rank, small_launch("adam_step", count), adam_step,
                    simt::global(weights, "weights"), simt::global(gradients, "gradients"),
                    simt::global(moments, "moments"), count);
  }
  void take_rows(simt::Ranks& ranks, int rank, int width, simt::Span<const int> rows, bool back,
                 simt::Span<const float> from, simt::Span<float> to) const override {
    const auto count = static_cast<int>(rows.count);
    if (count == 0) return;
    simt::launch_at(ranks, rank, small_launch("take_rows", std::int64_t{count} * width),
                    SIMT_BACKEND::take_rows, width, simt::global(rows, "rows"), count, back,
                    simt::global(from, "from"), simt::global(to, "to"));
  }

#if defined(__CUDACC__)
 private:
  static std::array<Op, 5> lab_ops() {
    return {Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::all_to_all, Op::pass};
  }
#endif
};

}  // namespace
}  // namespace tilestep::parallelism::SIMT_BACKEND
SIMT_KERNEL_SET(parallelism, KernelsHere)
