// What a backward pass holds in memory, and what it multiplies. The bytes that it asks for are in ledger.cpp.

#include "kernels/attention/flash_attention/ledger.hpp"

namespace tilestep::flash_attention {

BackwardMemory backward_memory_of(Pass pass, const Plan& plan, const Task& task, DataType dtype) {
  using Count = unsigned long long;
  BackwardMemory memory;
  const auto bytes = static_cast<Count>(element_bytes(dtype));
  const Count rows = static_cast<Count>(task.heads) * static_cast<Count>(task.length());
  const Count numbers = rows * static_cast<Count>(task.head_dim);
  const Count keys = numbers / static_cast<Count>(task.heads) * static_cast<Count>(task.kv_heads);
  const Count scores = rows * static_cast<Count>(score_pitch(task.length()));
  const Count padded =
      static_cast<Count>(task.heads) * static_cast<Count>(plan.q_tiles * plan.block_q);
  const bool stores = pass == Pass::backward_store;
  const auto hold = [&](Tensor tensor, Count size) {
    memory.held[static_cast<std::size_t>(tensor)] = size;
  };
  const auto keep = [&](Tensor tensor, Count size) {
    hold(tensor, size);
    memory.kept[static_cast<std::size_t>(tensor)] = size;
  };
  for (const Tensor tensor : {Tensor::q, Tensor::o}) keep(tensor, numbers * bytes);
  for (const Tensor tensor : {Tensor::k, Tensor::v}) keep(tensor, keys * bytes);
  keep(Tensor::lse, rows * sizeof(float));
  if (stores) keep(Tensor::p, scores * bytes);
  if (stores && task.mod == ScoreMod::softcap) keep(Tensor::s, scores * bytes);
  for (const Tensor tensor : {Tensor::d_o, Tensor::dq}) hold(tensor, numbers * bytes);
  for (const Tensor tensor : {Tensor::dk, Tensor::dv}) hold(tensor, keys * bytes);
  hold(Tensor::d, padded * 2 * sizeof(float));  // beside each a log-sum-exp
  if (stores) {
    for (const Tensor tensor : {Tensor::dp, Tensor::ds}) hold(tensor, scores * bytes);
  } else {
    hold(Tensor::dq_sums, padded * static_cast<Count>(plan.columns) * sizeof(float));
  }
  return memory;
}

double backward_flops(Pass pass, const Plan& plan, const Task& task,
                      const std::vector<int>& begins) {
  // tile_flops has two products of each tile: of naive, which stores, of all.
  const double products = pass == Pass::backward_store ? 4 : 5;
  return products / 2 * tile_flops(plan, task, begins);
}

}  // namespace tilestep::flash_attention
