// How the lesson's kernels are launched, up to flash-2; the same text for both backends.

#include <array>
#include <tuple>

#include "kernels/attention/flash_attention/flash_1.cu"
#include "kernels/attention/flash_attention/flash_2.cu"
#include "kernels/attention/flash_attention/naive.cu"
#include "kernels/attention/flash_attention/quantized/launches.hpp"
#include "kernels/attention/shared/device/call.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {
namespace {

/// Throws Error unless the task is one that there are kernels for, and its arrays are as long as it says.
void check(const simt::DeviceInfo& device, const Task& task, const Arrays& arrays) {
  simt::require_capability(device, "flash-attention", simt::kMmaCapability);
  simt::require_within("flash-attention: length", task.length(), 1, kMostLength);
  simt::require_within("flash-attention: heads", task.heads, 1, kMostHeads);
  simt::require_within("flash-attention: kv_heads", task.kv_heads, 1, task.heads);
  const auto rows = [&](int heads) {
    return static_cast<std::size_t>(heads) * static_cast<std::size_t>(task.length());
  };
  const auto head_dim = static_cast<std::size_t>(task.head_dim);
  if (task.heads % task.kv_heads != 0 || arrays.q.count != rows(task.heads) * head_dim ||
      arrays.o.count != arrays.q.count || arrays.k.count != rows(task.kv_heads) * head_dim ||
      arrays.v.count != arrays.k.count || arrays.lse.count != rows(task.heads) ||
      (task.rule.mask == Mask::document && arrays.begins.count != rows(1))) {
    throw Error("flash-attention: the arrays do not have the lengths of the task");
  }
}

// ---- one launch ---------------------------------------------------------------------------------------

/// All kernels of a variant, one after the other; asked for resources, the last answers. The variant is a constant, so
/// that only its kernels are compiled for these tiles.
template <Variant kVariant, class T, class Tape>
void start(const Call& call, const Setting& set, const Operands<Tape>& arrays, const T& tiles,
           const Tape& tape) {
  const TileSize size{tiles.block_q, tiles.block_k, tiles.columns};
  const std::int64_t length = set.rule.length;
  const std::int64_t q_blocks = set.heads * simt::blocks_for(length, tiles.block_q);
  if constexpr (kVariant == Variant::flash_1) {
    call("flash_1", set.heads, tiles.threads, flash_1_shared_bytes(size), flash_1<T, Tape>, arrays,
         set, tiles, tape);
  } else if constexpr (kVariant == Variant::flash_2) {
    call("flash_2", q_blocks, tiles.threads, flash_2_shared_bytes(size), flash_2<T, Tape>, arrays,
         set, tiles, tape);
  } else {
    call("scores_to_memory", q_blocks * simt::blocks_for(length, tiles.block_k), tiles.threads,
         scores_shared_bytes(size), scores_to_memory<T, Tape>, arrays, set, tiles, tape);
    call("softmax_rows", set.heads * length, kSoftmaxThreads,
         bytes_of_numbers(score_pitch(set.rule.length)), softmax_rows<Tape>, arrays, set);
    call("weights_times_values", q_blocks, tiles.threads, values_shared_bytes(size),
         weights_times_values<T, Tape>, arrays, set, tiles, tape);
  }
}

template <class Tape>
Operands<Tape> operands(const Arrays& a, const Tape& tape) {
  const auto of = [&](auto span, Tensor tensor) { return array_for(tape, span, tensor); };
  return {of(a.q, Tensor::q),           of(a.k, Tensor::k),
          of(a.v, Tensor::v),           simt::global(a.begins, "begins"),
          of(a.o, Tensor::o),           of(a.lse, Tensor::lse),
          of(a.s, Tensor::s),           of(a.p, Tensor::p),
          of(a.o_sums, Tensor::o_sums), of(a.m, Tensor::m_l),
          of(a.l, Tensor::m_l)};
}

// ---- explained ----------------------------------------------------------------------------------------

void explain_kernels(simt::Device& device, const Plan& plan, const Task& task, Break broken,
                     const Arrays& arrays, const Records& records) {
  check(device.info(), task, arrays);
  const AnyTiles tiles{plan.block_q, plan.block_k, plan.columns, plan.head_dim, plan.threads};
  const simt::Tape tape = tape_of(records, task, broken);
  const auto start_as = [&](auto variant) {
    start<decltype(variant)::value>(Call{device}, setting_of(task), operands(arrays, tape), tiles,
                                    tape);
  };
  switch (plan.runs) {
    case Variant::naive:
      return start_as(std::integral_constant<Variant, Variant::naive>{});
    case Variant::flash_1:
      return start_as(std::integral_constant<Variant, Variant::flash_1>{});
    default:
      return start_as(std::integral_constant<Variant, Variant::flash_2>{});
  }
}

// ---- timed --------------------------------------------------------------------------------------------

/// A kernel compiled for tiles of one size.
template <Variant kVariant, int kQ, int kK, int kD, int kWarps, int kBlocks>
struct Compiled : std::integral_constant<Variant, kVariant> {
  FixedTiles<kQ, kK, kD, kWarps, kBlocks> tiles;

  constexpr Configuration said() const {
    return {kVariant,
            kD,
            kQ,
            kK,
            kWarps,
            kVariant == Variant::flash_1 ? "128x128, 8 warps of 16 keys"
                                         : "128x64, 4 warps of 32 queries"};
  }
};
constexpr std::tuple<
    Compiled<Variant::naive, 128, 64, 64, 4, 2>, Compiled<Variant::naive, 128, 64, 128, 4, 2>,
    Compiled<Variant::flash_1, 128, 128, 64, 8, 1>, Compiled<Variant::flash_1, 128, 128, 128, 8, 1>,
    Compiled<Variant::flash_2, 128, 64, 64, 4, 2>, Compiled<Variant::flash_2, 128, 64, 128, 4, 2>>
    kCompiled{};
constexpr auto kConfigurations =
    std::apply([](auto... each) { return std::array{each.said()...}; }, kCompiled);

/// Calls `run` with the kernel of a number.
template <class Run>
void with_configuration(int number, Run run) {
  int at = 0;
  const auto is_it = [&](auto kernel) {
    if (at++ != number) return false;
    run(kernel);
    return true;
  };
  if (!std::apply([&](auto... each) { return (is_it(each) || ...); }, kCompiled)) {
    throw Error("flash-attention: there is no such configuration");
  }
}

class KernelsHere final : public Kernels {
 public:
  void explain(simt::Device& device, const Plan& plan, const Task& task, Break broken,
               const Arrays& arrays, const Records& records) const override {
    explain_kernels(device, plan, task, broken, arrays, records);
  }

  std::span<const Configuration> configurations() const override { return kConfigurations; }

  void run(simt::Device& device, int configuration, const Task& task,
           const Arrays& arrays) const override {
    with_configuration(configuration, [&](auto kernel) {
      const auto& tiles = kernel.tiles;
      check(device.info(), task, arrays);
      if (task.head_dim != tiles.head_dim || task.mod != ScoreMod::none) {
        throw Error("flash-attention: this configuration has head dimension " +
                    std::to_string(tiles.head_dim) + " and no score modifier");
      }
      start<decltype(kernel)::value>(Call{device}, setting_of(task),
                                     operands(arrays, simt::NoTape{}), tiles, simt::NoTape{});
    });
  }

  simt::Resources resources(simt::Device& device, int configuration) const override {
    simt::Resources r;
    with_configuration(configuration, [&](auto kernel) {
      const auto& tiles = kernel.tiles;
      const Setting set = setting_of({{Mask::none, 1, 0, 0}, 1, 1, tiles.head_dim, ScoreMod::none});
      start<decltype(kernel)::value>(Call{device, &r}, set, Operands<simt::NoTape>{}, tiles,
                                     simt::NoTape{});
    });
    return r;
  }

  void explain(simt::Device& device, const QuantizedProblem& problem, Break broken,
               const QuantizedArrays& arrays, const Records& records) const override {
    explain_quantized(device, problem, broken, arrays, records);
  }
  void run(simt::Device& device, const QuantizedProblem& problem,
           const QuantizedArrays& arrays) const override {
    run_quantized(device, problem, arrays);
  }
  simt::Resources resources(simt::Device& device, const QuantizedProblem& problem) const override {
    return quantized_resources(device, problem);
  }

  simt::LibraryStatus library(simt::Device&) const override { return simt::cudnn_status(); }
  int library_plans(simt::Device&,
                    [[maybe_unused]] const simt::LibraryAttention& attention) const override {
#if defined(__CUDACC__)
    return simt::cuda::Cudnn::loaded().plans(attention);
#else
    return 0;
#endif
  }
  void library_attend(simt::Device&, [[maybe_unused]] const simt::LibraryAttention& attention,
                      [[maybe_unused]] int plan,
                      [[maybe_unused]] const simt::LibraryAttentionArrays& arrays) const override {
#if defined(__CUDACC__)
    simt::cuda::Cudnn::loaded().attend(attention, plan, arrays);
#else
    throw Error(simt::cudnn_status().reason, ExitCode::unavailable);
#endif
  }
};

}  // namespace
}  // namespace tilestep::flash_attention::SIMT_BACKEND
SIMT_KERNEL_SET(flash_attention, KernelsHere)
