#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernels/attention/flash_attention/kernels.hpp"

namespace tilestep::flash_attention {

/// The bytes that the kernels of `plan.runs` ask of memory: by formula, for any length, exactly what their accesses
/// come to (flash-3's timed kernels: what TMA copies). `begins` is read for `document` alone.
Ledger ledger_of(const Plan& plan, const Task& task, Break broken, const std::vector<int>& begins);

/// The same of the kernels of a backward pass; `plan` is backward_plan_of's. What the forward pass asked for is not
/// in it. Blocks that add to dQ's sums store.
Ledger backward_ledger_of(const Plan& plan, const Task& task, const std::vector<int>& begins);

/// Bytes of memory that each tensor takes while a backward pass runs, and what of them its forward pass left.
struct BackwardMemory {
  std::array<unsigned long long, kTensors> held{}, kept{};
};
BackwardMemory backward_memory_of(const Plan& plan, const Task& task);

/// Multiplications and additions of a backward pass, of all heads, as they are computed: five products of each tile that
/// is visited.
double backward_flops(const Plan& plan, const Task& task, const std::vector<int>& begins);

/// A backward pass to which naive left its weights, by arithmetic alone: P is read from memory, dP and dS are written
/// there and read back, and four products are made of every tile. In multiplications and additions, and bytes.
struct StoringPass {
  double flops = 0, asked = 0, kept = 0, held = 0;
};
StoringPass storing_pass_of(const Plan& plan, const Task& task);

/// Adds what flash-3 asks for one tile of queries of one head; `output_bytes` of a number of O.
void add_flash_3(Ledger& ledger, const Plan& plan, const Task& task, int q_tile,
                 std::size_t output_bytes);

/// Bytes of memory that each tensor takes, by Tensor; 0: the kernels have none.
std::array<unsigned long long, kTensors> held_by(const Plan& plan, const Task& task, Break broken);

/// Tiles of scores that a head computes: those that are visited, of naive all.
std::int64_t tiles_of(const Plan& plan, const std::vector<int>& begins);

/// Multiplications and additions of both products, forward, of all heads: whole tiles, as they are computed.
double tile_flops(const Plan& plan, const Task& task, const std::vector<int>& begins);

/// The same without tiles: 4 · head_dim for each pair of a query and a key that it sees.
double needed_flops(const Task& task, const std::vector<int>& begins);

}  // namespace tilestep::flash_attention
