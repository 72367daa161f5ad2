#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernels/attention/flash_attention/kernels.hpp"

namespace tilestep::flash_attention {

/// The bytes that the kernels of `plan.runs` ask of memory: by formula, for any length, exactly what their accesses
/// come to. `begins` is read for `document` alone.
Ledger ledger_of(const Plan& plan, const Task& task, Break broken, const std::vector<int>& begins);

/// Bytes of memory that each tensor takes, by Tensor; 0: the kernels have none.
Held held_by(const Plan& plan, const Task& task, Break broken);

/// Tiles of scores that a head computes: those that are visited, of naive all.
std::int64_t tiles_of(const Plan& plan, const std::vector<int>& begins);

/// Multiplications and additions of both products, forward, of all heads: whole tiles, as they are computed.
double tile_flops(const Plan& plan, const Task& task, const std::vector<int>& begins);

/// The same without tiles: 4 · head_dim for each pair of a query and a key that it sees.
double needed_flops(const Task& task, const std::vector<int>& begins);

}  // namespace tilestep::flash_attention
