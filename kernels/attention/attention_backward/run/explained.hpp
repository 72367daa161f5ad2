#pragma once

#include <vector>

#include "kernels/attention/attention_backward/kernels.hpp"
#include "kernels/attention/attention_backward/params.hpp"
#include "kernels/attention/flash_attention/run/explained.hpp"

namespace tilestep::attention_backward {

/// What an explained backward pass wrote and recorded, on the host, and the forward pass before it.
struct Outcome {
  TilePlan plan;                     ///< of the backward pass
  flash_attention::Outcome forward;  ///< of flash-2
  std::vector<float> dq, dk, dv;
  std::vector<float> d;       ///< [heads × length]
  std::vector<Visit> visits;  ///< [heads × q_tiles × k_tiles]; block −1: not visited
  /// [k_tiles]: `o` is what the tile added to the chosen component of dQ's sum; order −1: none was.
  std::vector<StepRecord> steps;
  /// Of the chosen query, [length], as they were in registers. 0: not visited.
  std::vector<float> p, dp, ds;
  Ledger asked{}, formula{};  ///< of the backward pass alone
  int blocks = 0;             ///< of the launch that visits tiles of scores
};

/// The forward pass, flash-2, that leaves what the backward pass needs. Of what is broken it has skip-rescale.
flash_attention::Params forward_of(const Params& params);

/// A pass's arrays on the device: what it is given, and room for the rest. `o` and `d_o` become BF16.
class PassBuffers {
 public:
  PassBuffers(simt::Device& device, const Scratch& scratch, const Inputs& inputs,
              const std::vector<float>& d_output, const std::vector<float>& o,
              const std::vector<float>& lse);
  Arrays arrays();

 private:
  simt::Buffer<std::uint16_t> q_, k_, v_, o_, d_o_;
  simt::Buffer<int> begins_;
  simt::Buffer<float> lse_;

 public:
  simt::Buffer<float> terms, dq_sums;
  simt::Buffer<std::uint16_t> dq, dk, dv;
};

/// Runs that and the backward pass on the gradient of O that is given. Throws Error as run_explained does.
Outcome run_explained(simt::Device& device, const Params& params, const Inputs& inputs,
                      const std::vector<float>& d_output, const Chosen& chosen = {});

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
