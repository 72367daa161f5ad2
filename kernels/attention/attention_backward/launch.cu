// How the kernels of the backward pass are launched; the same text for both backends.

#include <cassert>
#include <iterator>

#include "kernels/attention/attention_backward/backward_recompute.cu"
#include "kernels/attention/attention_backward/hopper/launches.hpp"
#include "kernels/attention/shared/device/call.hpp"

namespace tilestep::attention_backward::SIMT_BACKEND {
namespace {

/// Rows of a head where whole tiles of queries are written.
std::int64_t padded_rows(const Task& task, int block_q) {
  return simt::blocks_for(task.length(), block_q) * block_q;
}

/// Throws Error unless the task is one that there are kernels for, and its arrays are as long as it says.
void check_backward(const simt::DeviceInfo& device, const Task& task, int block_q, int columns,
                    const Arrays& a) {
  simt::require_capability(device, "attention-backward", simt::kMmaCapability);
  simt::require_within("attention-backward: length", task.length(), 1, kMostLength);
  simt::require_within("attention-backward: heads", task.heads, 1, kMostHeads);
  simt::require_within("attention-backward: kv_heads", task.kv_heads, 1, task.heads);
  const auto rows = static_cast<std::size_t>(task.heads) * static_cast<std::size_t>(task.length());
  const auto kv_rows =
      static_cast<std::size_t>(task.kv_heads) * static_cast<std::size_t>(task.length());
  const auto head_dim = static_cast<std::size_t>(task.head_dim);
  const auto padded =
      static_cast<std::size_t>(task.heads) * static_cast<std::size_t>(padded_rows(task, block_q));
  const auto all = [](std::size_t count, const auto&... spans) {
    return ((spans.count == count) && ...);
  };
  const bool good =
      task.heads % task.kv_heads == 0 && all(rows * head_dim, a.q, a.o, a.d_o, a.dq) &&
      all(kv_rows * head_dim, a.k, a.v, a.dk, a.dv) && all(rows, a.lse) &&
      all(padded * 2, a.terms) && all(padded * static_cast<std::size_t>(columns), a.dq_sums) &&
      (task.rule.mask != Mask::document ||
       a.begins.count == static_cast<std::size_t>(task.length()));
  if (!good) throw Error("attention-backward: the arrays do not have the lengths of the task");
}

// ---- one pass -----------------------------------------------------------------------------------------

/// All kernels; asked for resources, the one that makes dK answers.
template <class T, class Tape>
void start_backward(const Call& call, const Task& task, const BackwardOperands<Tape>& arrays,
                    const T& tiles, const Tape& tape) {
  const TileSize size{tiles.block_q, tiles.block_k, tiles.columns};
  const std::int64_t padded = padded_rows(task, tiles.block_q);
  const auto multiply = [&] {
    call("backward_recompute", task.kv_heads * simt::blocks_for(task.length(), tiles.block_k),
         tiles.threads, backward_shared_bytes(size), backward_recompute<T, Tape>, arrays,
         setting_of(task), tiles, tape);
  };
  if (call.resources != nullptr) return multiply();
  call("output_times_gradient", simt::blocks_for(task.heads * padded, kRowThreads / 8), kRowThreads,
       0, output_times_gradient<Tape>, arrays, setting_of(task), task.head_dim,
       static_cast<int>(padded), tiles.columns);
  multiply();
  call("round_query_gradient", simt::blocks_for(task.heads * padded / kStrip, kRowThreads / 32),
       kRowThreads, bytes_of_numbers(kRowThreads / 32 * kStrip * tiles.columns),
       round_query_gradient<Tape>, arrays, setting_of(task), task.head_dim, tiles.columns,
       static_cast<int>(padded));
}

template <class Tape>
BackwardOperands<Tape> operands(const Arrays& a, const Tape& tape) {
  const auto of = [&](auto span, Tensor tensor) { return array_for(tape, span, tensor); };
  return {of(a.q, Tensor::q),     of(a.k, Tensor::k),     of(a.v, Tensor::v),
          of(a.o, Tensor::o),     of(a.d_o, Tensor::d_o), simt::global(a.begins, "begins"),
          of(a.lse, Tensor::lse), of(a.terms, Tensor::d), of(a.dq_sums, Tensor::dq_sums),
          of(a.dq, Tensor::dq),   of(a.dk, Tensor::dk),   of(a.dv, Tensor::dv)};
}

// ---- explained ----------------------------------------------------------------------------------------

void explain_backward(simt::Device& device, const TilePlan& plan, const Task& task, Break broken,
                      const Arrays& arrays, const Records& records) {
  check_backward(device.info(), task, plan.block_q, plan.columns, arrays);
  const AnyKeyTiles tiles{plan.block_q, plan.block_k, plan.columns, plan.head_dim,
                          plan.block_k / kStrip * 32};
  const simt::Tape tape = tape_of(records, task, broken);
  start_backward(Call{device}, task, operands(arrays, tape), tiles, tape);
}

// ---- timed --------------------------------------------------------------------------------------------

constexpr Configuration kConfigurations[] = {
    {64, 64, 128, 4, "64x128, 4 warps of 32 keys"},
    {128, 64, 128, 8, "64x128, 8 warps of 16 keys"},
};
constexpr int kConfigurationCount = static_cast<int>(std::size(kConfigurations));

/// Calls `run(tiles)` of configuration `number`, whose words in the table must say the same; scores of `kPart` queries
/// are in registers at a time, as many as do not spill.
template <int kNumber, int kQ, int kPart, int kK, int kD, int kWarps, int kBlocks, class Run>
void as(Run run) {
  constexpr const Configuration& kOne = kConfigurations[kNumber];
  static_assert(kOne.head_dim == kD && kOne.block_q == kQ && kOne.block_k == kK &&
                kOne.warps == kWarps);
  run(FixedKeyTiles<kQ, kPart, kK, kD, kWarps, kBlocks>{});
}
template <class Run>
void with_configuration(int number, Run run) {
  switch (number) {
    case 0:
      return as<0, 64, 16, 128, 64, 4, 2>(run);
    case 1:
      return as<1, 64, 64, 128, 128, 8, 1>(run);
    default:
      throw Error("attention-backward: there is no such configuration of the backward pass");
  }
}
static_assert(kConfigurationCount == 2);

class KernelsHere final : public Kernels {
 public:
  void explain(simt::Device& device, const TilePlan& plan, const Task& task, Break broken,
               const Arrays& arrays, const Records& records) const override {
    explain_backward(device, plan, task, broken, arrays, records);
  }

  std::span<const Configuration> configurations() const override { return kConfigurations; }

  void run(simt::Device& device, int configuration, const Task& task,
           const Arrays& arrays) const override {
    with_configuration(configuration, [&](const auto& tiles) {
      check_backward(device.info(), task, tiles.block_q, tiles.columns, arrays);
      if (task.head_dim != tiles.head_dim || task.mod != ScoreMod::none) {
        throw Error("attention-backward: this configuration has head dimension " +
                    std::to_string(tiles.head_dim) + " and no score modifier");
      }
      const simt::NoTape none;
      start_backward(Call{device}, task, operands(arrays, none), tiles, none);
    });
  }

  simt::Resources resources(simt::Device& device, int configuration) const override {
    simt::Resources r;
    with_configuration(configuration, [&](const auto& tiles) {
      const Task task{{Mask::none, 1, 0, 0}, 1, 1, tiles.head_dim, ScoreMod::none};
      start_backward(Call{device, &r}, task, BackwardOperands<simt::NoTape>{}, tiles,
                     simt::NoTape{});
    });
    return r;
  }

  void run(simt::Device& device, const hopper::Problem& problem,
           const hopper::Arrays& arrays) const override {
    hopper::SIMT_BACKEND::run(device, problem, arrays);
  }
  simt::Resources resources(simt::Device& device, const hopper::Problem& problem) const override {
    return hopper::SIMT_BACKEND::resources(device, problem);
  }
};

}  // namespace

}  // namespace tilestep::attention_backward::SIMT_BACKEND
SIMT_KERNEL_SET(attention_backward, KernelsHere)
