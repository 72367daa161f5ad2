#pragma once

#include <cstddef>

#include "kernels/attention/flash_attention_3/params.hpp"

namespace tilestep::flash_attention_3 {

/// Adds what a block asks TMA for one tile of queries of one head; `output_bytes` of a number of O.
void add_tile(Ledger& ledger, const TilePlan& plan, const attention::Task& task, int q_tile,
              std::size_t output_bytes);
/// The bytes that a launch asks for: by formula, for any length.
Ledger ledger_of(const TilePlan& plan, const attention::Task& task,
                 std::size_t output_bytes = kElementBytes);
/// Bytes of memory that each tensor takes.
Held held_by(const attention::Task& task);

/// Multiplications and additions of both products of all heads, whole tiles.
double flops_of(const TilePlan& plan, const attention::Task& task);

}  // namespace tilestep::flash_attention_3
