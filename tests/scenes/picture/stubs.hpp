#pragma once

#include "scenes/picture/picture.hpp"

/// Pictures of lessons to come, in a few lines each: what the vocabulary has to be able to say.
namespace tilestep::tests {

/// Scores of queries and keys with a causal mask, tile by tile; the tile `now` is worked on.
picture::Picture attention_grid(int tiles, int now);
/// A producer that fills stages of shared memory and a consumer that drains them, at `clock`.
picture::Picture copy_ring(int stages, int clock);
/// Warps of a scheduler over time, until `clock`.
picture::Picture warps_over_time(int warps, int clock);
/// Sequences whose KV cache lies in pages of a pool, after `written` tokens.
picture::Picture page_table(int sequences, int written);
/// Bytes that each kernel of a chain reads and writes; the first `ran` have run.
picture::Picture byte_ledger(int ran);
/// Two GPUs that add up their gradients in chunks, after `steps` of the ring.
picture::Picture two_gpus(int chunks, int steps);

}  // namespace tilestep::tests
