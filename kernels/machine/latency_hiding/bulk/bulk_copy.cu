// Latency hiding: the same copy by TMA. One thread requests whole stages; bytes in flight occupy no
// registers, and they arrive in shared memory.
//
//   shared memory   stage 0 … stage n − 1, then a barrier for each
//
// PTX ISA, "cp.async.bulk.tensor".

#include "kernels/base/simt/hopper.hpp"
#include "kernels/machine/latency_hiding/kernels.hpp"
#include "kernels/machine/latency_hiding/probes/clocks.hpp"

namespace tilestep::latency_hiding::SIMT_BACKEND {

namespace hopper = simt::hopper;

template <class Tape>
__global__ void bulk_copy(const __grid_constant__ hopper::TensorMap in_map,
                          const __grid_constant__ hopper::TensorMap out_map,
                          simt::Global<const float> in, simt::Global<float> out, Index count,
                          BulkShape shape, int shared_bytes, Tape tape) {
  const auto memory = simt::dynamic_shared<unsigned char>(static_cast<std::size_t>(shared_bytes));
  const unsigned stages = (simt::shared_address(memory) + 127) / 128 * 128;  // as TMA requires
  const unsigned barriers = stages + shape.stages * shape.stage_bytes();
  const Index rows = count / shape.columns;
  const Index tiles = (rows + shape.rows - 1) / shape.rows;
  // This block's tiles: neighbours, or every gridDim-th one.
  const bool neighbours = shape.of_block > 0;
  const Index begin = neighbours ? Index{blockIdx.x} * shape.of_block : Index{blockIdx.x};
  const Index apart = neighbours ? 1 : Index{gridDim.x};
  const Index end = neighbours && begin + shape.of_block < tiles ? begin + shape.of_block : tiles;
  const Index mine = end > begin ? (end - begin - 1) / apart + 1 : 0;
  if (threadIdx.x == 0) {
    for (int s = 0; s < shape.stages; ++s) hopper::barrier_init(barriers + 8 * s, 1);
    hopper::publish_barriers();
    Clocks<Tape> probe(tape, kFirstProbed);
    probe.start();
    unsigned issued[kMostStages];
    const auto fetch = [&](Index n) {
      const int stage = static_cast<int>(n % shape.stages);
      issued[stage] = probe.now();
      hopper::arrive_expecting(barriers + 8 * stage, shape.stage_bytes());
      hopper::fetch(in_map, stages + stage * shape.stage_bytes(), barriers + 8 * stage, 0,
                    static_cast<int>((begin + n * apart) * shape.rows));  // [step: issue]
    };
    for (Index n = 0; n < mine && n < shape.stages; ++n) fetch(n);
    for (Index n = 0; n < mine; ++n) {
      const int stage = static_cast<int>(n % shape.stages);
      hopper::wait_for(barriers + 8 * stage,
                       static_cast<unsigned>(n / shape.stages % 2));  // [step: use]
      probe.used(static_cast<int>(n), issued[stage], true);
      hopper::store(out_map, stages + stage * shape.stage_bytes(), 0,
                    static_cast<int>((begin + n * apart) * shape.rows));
      hopper::store_commit();
      // A stage is refilled once its store has read it: with several stages, the previous one.
      if (shape.stages == 1) {
        hopper::store_wait<0>();
        if (n + 1 < mine) fetch(n + 1);
      } else if (n > 0 && n - 1 + shape.stages < mine) {
        hopper::store_wait<1>();
        fetch(n - 1 + shape.stages);
      }
    }
    hopper::store_wait<0>();  // the stages must stay until all stores have read them
    probe.finish();
  }
  // The rest, less than a row.
  const Index rest = rows * shape.columns + threadIdx.x;
  if (blockIdx.x == 0) {
    for (Index i = rest; i < count; i += blockDim.x) out[i] = in[i];
  }
}

}  // namespace tilestep::latency_hiding::SIMT_BACKEND
