// How the lesson's kernels are launched, up to flash-2; the same text for both backends.

#include <iterator>

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
template <Variant kVariant, class T, class W>
void start(const Call& call, const Setting& set, const Operands<W>& arrays, const T& tiles,
           const W& witness) {
  const TileSize size{tiles.block_q, tiles.block_k, tiles.columns};
  const std::int64_t length = set.rule.length;
  const std::int64_t q_blocks = set.heads * simt::blocks_for(length, tiles.block_q);
  if constexpr (kVariant == Variant::flash_1) {
    call("flash_1", set.heads, tiles.threads, flash_1_shared_bytes(size), flash_1<T, W>, arrays,
         set, tiles, witness);
  } else if constexpr (kVariant == Variant::flash_2) {
    call("flash_2", q_blocks, tiles.threads, flash_2_shared_bytes(size), flash_2<T, W>, arrays, set,
         tiles, witness);
  } else {
    call("scores_to_memory", q_blocks * simt::blocks_for(length, tiles.block_k), tiles.threads,
         scores_shared_bytes(size), scores_to_memory<T, W>, arrays, set, tiles, witness);
    call("softmax_rows", set.heads * length, kSoftmaxThreads,
         bytes_of_numbers(score_pitch(set.rule.length)), softmax_rows<W>, arrays, set);
    call("weights_times_values", q_blocks, tiles.threads, values_shared_bytes(size),
         weights_times_values<T, W>, arrays, set, tiles, witness);
  }
}

// ---- explained ----------------------------------------------------------------------------------------

Operands<Explained> counted(const Arrays& a, simt::Span<unsigned long long> asked) {
  const auto count = [&](auto span, Tensor tensor) {
    const char* const kNames[] = {"Q", "K", "V", "S", "P", "O", "lse", "O sums", "m, l"};
    const auto which = static_cast<int>(tensor);
    using T = std::remove_pointer_t<decltype(span.data)>;
    return Counted<T>{simt::global(span, kNames[which]), simt::global(asked, "asked") + 2 * which};
  };
  return {count(a.q, Tensor::q),           count(a.k, Tensor::k),
          count(a.v, Tensor::v),           simt::global(a.begins, "begins"),
          count(a.o, Tensor::o),           count(a.lse, Tensor::lse),
          count(a.s, Tensor::s),           count(a.p, Tensor::p),
          count(a.o_sums, Tensor::o_sums), count(a.m, Tensor::m_l),
          count(a.l, Tensor::m_l)};
}

void explain_kernels(simt::Device& device, const Plan& plan, const Task& task, Break broken,
                     const Arrays& arrays, const Records& records) {
  check(device.info(), task, arrays);
  const std::size_t visits = static_cast<std::size_t>(task.heads) *
                             static_cast<std::size_t>(plan.q_tiles) *
                             static_cast<std::size_t>(plan.k_tiles);
  if (records.visits.count != visits || records.asked.count != 2 * kTensors ||
      records.steps.count != static_cast<std::size_t>(plan.k_tiles) ||
      plan.head_dim != task.head_dim) {
    throw Error("flash-attention: the plan and its records do not belong to the task");
  }
  const AnyTiles tiles{plan.block_q, plan.block_k, plan.columns, plan.head_dim, plan.threads};
  Explained witness{simt::global(records.visits, "visits"),
                    simt::global(records.steps, "steps"),
                    plan.q_tiles,
                    plan.k_tiles,
                    records.head,
                    records.query,
                    records.component,
                    task.length(),
                    broken};
  const auto start_as = [&](auto variant) {
    start<decltype(variant)::value>(Call{device}, setting_of(task), counted(arrays, records.asked),
                                    tiles, witness);
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

constexpr Configuration kConfigurations[] = {
    {Variant::naive, 64, 128, 64, 4, "128x64, 4 warps of 32 queries"},
    {Variant::naive, 128, 128, 64, 4, "128x64, 4 warps of 32 queries"},
    {Variant::flash_1, 64, 128, 128, 8, "128x128, 8 warps of 16 keys"},
    {Variant::flash_1, 128, 128, 128, 8, "128x128, 8 warps of 16 keys"},
    {Variant::flash_2, 64, 128, 64, 4, "128x64, 4 warps of 32 queries"},
    {Variant::flash_2, 128, 128, 64, 4, "128x64, 4 warps of 32 queries"},
};
constexpr int kConfigurationCount = static_cast<int>(std::size(kConfigurations));

/// Calls `run(variant, tiles)` of configuration `number`, whose words in the table must say the same.
template <int kNumber, int kQ, int kK, int kD, int kWarps, int kBlocks, class Run>
void as(Run run) {
  constexpr const Configuration& kOne = kConfigurations[kNumber];
  static_assert(kOne.head_dim == kD && kOne.block_q == kQ && kOne.block_k == kK &&
                kOne.warps == kWarps);
  run(std::integral_constant<Variant, kOne.variant>{}, FixedTiles<kQ, kK, kD, kWarps, kBlocks>{});
}
template <class Run>
void with_configuration(int number, Run run) {
  switch (number) {
    case 0:
      return as<0, 128, 64, 64, 4, 2>(run);
    case 1:
      return as<1, 128, 64, 128, 4, 2>(run);
    case 2:
      return as<2, 128, 128, 64, 8, 1>(run);
    case 3:
      return as<3, 128, 128, 128, 8, 1>(run);
    case 4:
      return as<4, 128, 64, 64, 4, 2>(run);
    case 5:
      return as<5, 128, 64, 128, 4, 2>(run);
    default:
      throw Error("flash-attention: there is no such configuration");
  }
}
static_assert(kConfigurationCount == 6);

Operands<Timed> plain(const Arrays& a) {
  return {
      simt::global(a.q, "Q"),           simt::global(a.k, "K"), simt::global(a.v, "V"),
      simt::global(a.begins, "begins"), simt::global(a.o, "O"), simt::global(a.lse, "lse"),
      simt::global(a.s, "S"),           simt::global(a.p, "P"), simt::global(a.o_sums, "O sums"),
      simt::global(a.m, "m"),           simt::global(a.l, "l")};
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
    with_configuration(configuration, [&](auto variant, const auto& tiles) {
      check(device.info(), task, arrays);
      if (task.head_dim != tiles.head_dim || task.mod != ScoreMod::none) {
        throw Error("flash-attention: this configuration has head dimension " +
                    std::to_string(tiles.head_dim) + " and no score modifier");
      }
      start<decltype(variant)::value>(Call{device}, setting_of(task), plain(arrays), tiles,
                                      Timed{});
    });
  }

  simt::Resources resources(simt::Device& device, int configuration) const override {
    simt::Resources r;
    with_configuration(configuration, [&](auto variant, const auto& tiles) {
      const Setting set = setting_of({{Mask::none, 1, 0, 0}, 1, 1, tiles.head_dim, ScoreMod::none});
      start<decltype(variant)::value>(Call{device, &r}, set, Operands<Timed>{}, tiles, Timed{});
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
