#pragma once

#include <vector>

#include "kernels/attention/attention_backward/params.hpp"

namespace tilestep::attention_backward {

/// The bytes that the kernels of a backward pass ask of memory: by formula, for any length, exactly what their accesses
/// come to. What the forward pass asked for is not in it. Blocks that add to dQ's sums store. `begins` is read for
/// `document` alone.
Ledger ledger_of(const TilePlan& plan, const Task& task, const std::vector<int>& begins);

/// Bytes of memory that each tensor takes while a backward pass runs, and what of them its forward pass left.
struct Memory {
  Held held{}, kept{};
};
Memory memory_of(const TilePlan& plan, const Task& task);

/// Multiplications and additions of a backward pass, of all heads, as they are computed: five products of each tile that
/// is visited.
double flops_of(const TilePlan& plan, const Task& task, const std::vector<int>& begins);

/// A backward pass to which naive left its weights, by arithmetic alone: P is read from memory, dP and dS are written
/// there and read back, and four products are made of every tile. In multiplications and additions, and bytes.
struct StoringPass {
  double flops = 0, asked = 0, kept = 0, held = 0;
};
StoringPass storing_pass_of(const TilePlan& plan, const Task& task);

}  // namespace tilestep::attention_backward
