// How the kernels of the backward pass are launched; the same text for both backends.

#include <cassert>
#include <iterator>

#include "kernels/attention/flash_attention/backward_hopper_start.hpp"
#include "kernels/attention/flash_attention/backward_recompute.cu"
#include "kernels/attention/flash_attention/backward_store.cu"
#include "kernels/attention/flash_attention/launching.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {
namespace {

/// Rows of a head where whole tiles of queries are written.
std::int64_t padded_rows(const Task& task, int block_q) {
  return simt::blocks_for(task.length(), block_q) * block_q;
}

/// Throws Error unless the task is one that there are kernels for, and its arrays are as long as it says.
template <class T>
void check_backward(const simt::DeviceInfo& device, Pass pass, const Task& task, int block_q,
                    int columns, const BackwardArrays<T>& a) {
  if constexpr (sizeof(T) == 2)
    simt::require_capability(device, "flash-attention", simt::kMmaCapability);
  simt::require_within("flash-attention: length", task.length(), 1, kMostLength);
  simt::require_within("flash-attention: heads", task.heads, 1, kMostHeads);
  simt::require_within("flash-attention: kv_heads", task.kv_heads, 1, task.heads);
  if (pass == Pass::forward) throw Error("flash-attention: this pass is not a backward one");
  const auto rows = static_cast<std::size_t>(task.heads) * static_cast<std::size_t>(task.length());
  const auto kv_rows =
      static_cast<std::size_t>(task.kv_heads) * static_cast<std::size_t>(task.length());
  const auto head_dim = static_cast<std::size_t>(task.head_dim);
  const auto padded =
      static_cast<std::size_t>(task.heads) * static_cast<std::size_t>(padded_rows(task, block_q));
  const std::size_t scores = rows * static_cast<std::size_t>(score_pitch(task.length()));
  const bool stores = pass == Pass::backward_store;
  const auto all = [](std::size_t count, const auto&... spans) {
    return ((spans.count == count) && ...);
  };
  const bool good = task.heads % task.kv_heads == 0 &&
                    all(rows * head_dim, a.q, a.o, a.d_o, a.dq) &&
                    all(kv_rows * head_dim, a.k, a.v, a.dk, a.dv) && all(rows, a.lse) &&
                    all(padded * 2, a.terms) &&
                    (stores ? all(scores, a.p, a.dp, a.ds)
                            : all(padded * static_cast<std::size_t>(columns), a.dq_sums)) &&
                    (!stores || task.mod != ScoreMod::softcap || all(scores, a.s)) &&
                    (task.rule.mask != Mask::document ||
                     a.begins.count == static_cast<std::size_t>(task.length()));
  if (!good) throw Error("flash-attention: the arrays do not have the lengths of the task");
}

// ---- one pass -----------------------------------------------------------------------------------------

template <class N, class W>
void start_rows(const Call& call, const Task& task, const BackwardOperands<N, W>& arrays,
                std::int64_t padded, int sums) {
  call("output_times_gradient", simt::blocks_for(task.heads * padded, kRowThreads / 8), kRowThreads,
       0, output_times_gradient<N, W>, arrays, setting_of(task), task.head_dim,
       static_cast<int>(padded), sums);
}

/// All kernels of the recomputing pass; asked for resources, the one that makes dK answers.
template <class N, class T, class W>
void start_recompute(const Call& call, const Task& task, const BackwardOperands<N, W>& arrays,
                     const T& tiles, const W& witness) {
  constexpr int kBytes = sizeof(typename N::Bits);
  const TileSize size{tiles.block_q, tiles.block_k, tiles.columns};
  const std::int64_t padded = padded_rows(task, tiles.block_q);
  const auto multiply = [&] {
    call("backward_recompute", task.kv_heads * simt::blocks_for(task.length(), tiles.block_k),
         tiles.threads, recompute_shared_bytes(size, kBytes), backward_recompute<N, T, W>, arrays,
         setting_of(task), tiles, witness);
  };
  if (call.resources != nullptr) return multiply();
  start_rows(call, task, arrays, padded, tiles.columns);
  multiply();
  call("round_query_gradient", simt::blocks_for(task.heads * padded / kStrip, kRowThreads / 32),
       kRowThreads, static_cast<std::size_t>(kRowThreads / 32 * kStrip * tiles.columns) * kBytes,
       round_query_gradient<N, W>, arrays, setting_of(task), task.head_dim, tiles.columns,
       static_cast<int>(padded));
}

/// As an array that is read alone, so that one kernel multiplies by it and by others.
template <class T>
Counted<const T> read_only(const Counted<T>& array) {
  return {array.array, array.asked};
}
template <class T>
simt::Global<const T> read_only(const simt::Global<T>& array) {
  return array;
}

/// All kernels of the storing pass, whose blocks have tiles of queries or of keys; asked for resources, the one that
/// makes dK answers.
template <class N, class Q, class K, class W>
void start_store(const Call& call, const Task& task, const BackwardOperands<N, W>& arrays,
                 const Q& by_queries, const K& by_keys, const W& witness) {
  constexpr int kBytes = sizeof(typename N::Bits);
  const TileSize size{by_queries.block_q, by_queries.block_k, by_queries.columns};
  const TileSize key_size{by_keys.block_q, by_keys.block_k, by_keys.columns};
  const Setting set = setting_of(task);
  const std::int64_t q_tiles = simt::blocks_for(task.length(), size.block_q);
  const std::int64_t k_tiles = simt::blocks_for(task.length(), size.block_k);
  const auto multiply = [&](const char* name, const auto& matrix, const auto& right, const auto& to,
                            float factor) {
    call(name, task.kv_heads * simt::blocks_for(task.length(), key_size.block_k), by_keys.threads,
         key_gradient_shared_bytes(key_size, kBytes),
         key_gradient<N, K, std::decay_t<decltype(matrix)>, std::decay_t<decltype(right)>,
                      std::decay_t<decltype(to)>>,
         matrix, right, to, factor, set, by_keys);
  };
  const auto ds = read_only(arrays.ds);
  if (call.resources != nullptr) return multiply("dK", ds, arrays.q, arrays.dk, set.scale);
  start_rows(call, task, arrays, q_tiles * size.block_q, 0);
  call("weights_gradient", task.heads * q_tiles * k_tiles, by_queries.threads,
       scores_shared_bytes(size, kBytes), weights_gradient<N, Q, W>, arrays, set, by_queries,
       witness);
  call("scores_gradient", std::int64_t{task.heads} * task.length(), kRowThreads, 0,
       scores_gradient<N, W>, arrays, set, static_cast<int>(q_tiles * size.block_q));
  call("query_gradient", task.heads * q_tiles, by_queries.threads,
       values_shared_bytes(size, kBytes), query_gradient<N, Q, W>, arrays, set, by_queries);
  multiply("dK", ds, arrays.q, arrays.dk, set.scale);
  multiply("dV", arrays.p, arrays.d_o, arrays.dv, 1.0f);
}

// ---- explained ----------------------------------------------------------------------------------------

template <class N>
BackwardOperands<N, Explained> counted(const BackwardArrays<typename N::Bits>& a,
                                       simt::Span<unsigned long long> asked) {
  const auto count = [&](auto span, Tensor tensor, const char* name) {
    using T = std::remove_pointer_t<decltype(span.data)>;
    return Counted<T>{simt::global(span, name),
                      simt::global(asked, "asked") + 2 * static_cast<int>(tensor)};
  };
  return {count(a.q, Tensor::q, "Q"),
          count(a.k, Tensor::k, "K"),
          count(a.v, Tensor::v, "V"),
          count(a.o, Tensor::o, "O"),
          count(a.d_o, Tensor::d_o, "dO"),
          simt::global(a.begins, "begins"),
          count(a.lse, Tensor::lse, "lse"),
          count(a.terms, Tensor::d, "D"),
          count(a.dq_sums, Tensor::dq_sums, "dQ sums"),
          count(a.s, Tensor::s, "S"),
          count(a.p, Tensor::p, "P"),
          count(a.dp, Tensor::dp, "dP"),
          count(a.ds, Tensor::ds, "dS"),
          count(a.dq, Tensor::dq, "dQ"),
          count(a.dk, Tensor::dk, "dK"),
          count(a.dv, Tensor::dv, "dV")};
}

template <class N>
void explain_backward_as(simt::Device& device, Pass pass, const Plan& plan, const Task& task,
                         Break broken, const BackwardArrays<typename N::Bits>& arrays,
                         const Records& records) {
  check_backward(device.info(), pass, task, plan.block_q, plan.columns, arrays);
  const std::size_t visits = static_cast<std::size_t>(task.heads) *
                             static_cast<std::size_t>(plan.q_tiles) *
                             static_cast<std::size_t>(plan.k_tiles);
  if (records.visits.count != visits || records.asked.count != 2 * kTensors ||
      records.rows.count != std::size_t{3} * static_cast<std::size_t>(task.length()) ||
      plan.head_dim != task.head_dim) {
    throw Error("flash-attention: the plan and its records do not belong to the task");
  }
  const auto threads = [](int rows) { return rows / kStrip * 32; };
  const AnyTiles by_queries{plan.block_q, plan.block_k, plan.columns, plan.head_dim,
                            threads(plan.block_q)};
  const AnyKeyTiles by_keys{plan.block_q, plan.block_k, plan.columns, plan.head_dim,
                            threads(plan.block_k)};
  const Explained witness{simt::global(records.visits, "visits"),
                          simt::global(records.steps, "steps"),
                          plan.q_tiles,
                          plan.k_tiles,
                          records.head,
                          records.query,
                          records.component,
                          task.length(),
                          broken,
                          simt::global(records.rows, "rows")};
  const auto operands = counted<N>(arrays, records.asked);
  if (pass == Pass::backward_recompute) {
    start_recompute<N>(Call{device}, task, operands, by_keys, witness);
  } else {
    start_store<N>(Call{device}, task, operands, by_queries, by_keys, witness);
  }
}

// ---- timed --------------------------------------------------------------------------------------------

constexpr Pass kRecompute = Pass::backward_recompute, kStore = Pass::backward_store;
constexpr BackwardConfiguration kConfigurations[] = {
    {kRecompute, DataType::bf16, 64, 64, 128, 4, "64x128, 4 warps of 32 keys"},
    {kRecompute, DataType::bf16, 128, 64, 128, 8, "64x128, 8 warps of 16 keys"},
    {kStore, DataType::bf16, 64, 128, 64, 4, "128x64, 4 warps"},
    {kStore, DataType::bf16, 128, 128, 64, 4, "128x64, 4 warps"},
};
constexpr int kConfigurationCount = static_cast<int>(std::size(kConfigurations));

/// Calls `run(tiles of queries, tiles of keys)` of configuration `number`, whose words in the table must say the
/// same; scores of `kPart` queries are in registers at a time, as many as do not spill. The recomputing pass has
/// only the second.
template <int kNumber, int kQ, int kPart, int kK, int kD, int kWarps, int kBlocks, class Run>
void as(Run run) {
  constexpr const BackwardConfiguration& kOne = kConfigurations[kNumber];
  static_assert(kOne.dtype == DataType::bf16 && kOne.head_dim == kD && kOne.block_q == kQ &&
                kOne.block_k == kK && kOne.warps == kWarps);
  if constexpr (kOne.pass == kStore) {
    run(FixedTiles<kQ, kK, kD, kWarps, kBlocks>{},
        FixedKeyTiles<kK, kPart, kQ, kD, kWarps, kBlocks>{});
  } else {
    run(nullptr, FixedKeyTiles<kQ, kPart, kK, kD, kWarps, kBlocks>{});
  }
}
template <class Run>
void with_configuration(int number, Run run) {
  switch (number) {
    case 0:
      return as<0, 64, 16, 128, 64, 4, 2>(run);
    case 1:
      return as<1, 64, 64, 128, 128, 8, 1>(run);
    case 2:
      return as<2, 128, 64, 64, 64, 4, 2>(run);
    case 3:
      return as<3, 128, 64, 64, 128, 4, 2>(run);
    default:
      throw Error("flash-attention: there is no such configuration of the backward pass");
  }
}
static_assert(kConfigurationCount == 4);

template <class N>
BackwardOperands<N, Timed> plain(const BackwardArrays<typename N::Bits>& a) {
  return {simt::global(a.q, "Q"),     simt::global(a.k, "K"),     simt::global(a.v, "V"),
          simt::global(a.o, "O"),     simt::global(a.d_o, "dO"),  simt::global(a.begins, "begins"),
          simt::global(a.lse, "lse"), simt::global(a.terms, "D"), simt::global(a.dq_sums, "sums"),
          simt::global(a.s, "S"),     simt::global(a.p, "P"),     simt::global(a.dp, "dP"),
          simt::global(a.ds, "dS"),   simt::global(a.dq, "dQ"),   simt::global(a.dk, "dK"),
          simt::global(a.dv, "dV")};
}

template <class Q, class K>
void start_timed(const Call& call, const Task& task, const BackwardOperands<Bf16, Timed>& arrays,
                 const Q& by_queries, const K& by_keys) {
  if constexpr (std::is_null_pointer_v<Q>) {
    start_recompute<Bf16>(call, task, arrays, by_keys, Timed{});
  } else {
    start_store<Bf16>(call, task, arrays, by_queries, by_keys, Timed{});
  }
}

class BackwardHere final : public BackwardKernels {
 public:
  void explain(simt::Device& device, Pass pass, const Plan& plan, const Task& task, Break broken,
               const BackwardArrays<std::uint16_t>& arrays, const Records& records) const override {
    explain_backward_as<Bf16>(device, pass, plan, task, broken, arrays, records);
  }
  void explain(simt::Device& device, Pass pass, const Plan& plan, const Task& task, Break broken,
               const BackwardArrays<float>& arrays, const Records& records) const override {
    explain_backward_as<Fp32>(device, pass, plan, task, broken, arrays, records);
  }

  std::span<const BackwardConfiguration> configurations() const override { return kConfigurations; }

  void run(simt::Device& device, int configuration, const Task& task,
           const BackwardArrays<std::uint16_t>& arrays) const override {
    with_configuration(configuration, [&](const auto& by_queries, const auto& by_keys) {
      const BackwardConfiguration& one = kConfigurations[configuration];
      check_backward(device.info(), one.pass, task, one.block_q, by_keys.columns, arrays);
      if (task.head_dim != by_keys.head_dim || task.mod != ScoreMod::none) {
        throw Error("flash-attention: this configuration has head dimension " +
                    std::to_string(by_keys.head_dim) + " and no score modifier");
      }
      start_timed(Call{device}, task, plain<Bf16>(arrays), by_queries, by_keys);
    });
  }

  simt::Resources resources(simt::Device& device, int configuration) const override {
    simt::Resources r;
    with_configuration(configuration, [&](const auto& by_queries, const auto& by_keys) {
      const Task task{{Mask::none, 1, 0, 0}, 1, 1, by_keys.head_dim, ScoreMod::none};
      start_timed(Call{device, &r}, task, {}, by_queries, by_keys);
    });
    return r;
  }

  void run(simt::Device& device, const backward_hopper::Problem& problem,
           const backward_hopper::Arrays& arrays) const override {
    backward_hopper::SIMT_BACKEND::run(device, problem, arrays);
  }
  simt::Resources resources(simt::Device& device,
                            const backward_hopper::Problem& problem) const override {
    return backward_hopper::SIMT_BACKEND::resources(device, problem);
  }
};

}  // namespace

const BackwardKernels& backward_kernels() {
  static const BackwardHere kernels;
  return kernels;
}

}  // namespace tilestep::flash_attention::SIMT_BACKEND
