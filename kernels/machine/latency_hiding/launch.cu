// Latency hiding: how the kernels are launched.

#include <cassert>
#include <iterator>
#include <utility>

#include "kernels/machine/latency_hiding/bulk/launch_bulk.hpp"
#include "kernels/machine/latency_hiding/chase.cu"
#include "kernels/machine/latency_hiding/copy.cu"
#include "kernels/machine/latency_hiding/diverge.cu"
#include "kernels/machine/latency_hiding/fma.cu"
#include "kernels/machine/latency_hiding/kernels.hpp"
#include "kernels/machine/latency_hiding/occupancy/spill.cu"
#include "kernels/machine/latency_hiding/occupancy/tail.cu"

namespace tilestep::latency_hiding::SIMT_BACKEND {

/// A thread for each of `count` elements.
simt::Launch launch_over(const char* name, Index count) {
  constexpr int kThreads = 256;
  return simt::row_of_blocks(name, simt::blocks_for(count, kThreads), kThreads);
}

simt::Launch launch_of(const char* name, const Grid& grid) {
  return simt::row_of_blocks(name, grid.blocks, grid.threads,
                             static_cast<std::size_t>(grid.shared_bytes));
}

/// Calls `run` with the vector type of so many bytes and the number of loads as constants.
template <class Run>
void with_copy(int bytes_per_load, int loads, Run run) {
  simt::with_constant<1, 2, 4, 8>("latency-hiding: loads_in_flight", loads, [&](auto count) {
    switch (bytes_per_load) {
      case 4:
        return run(float{}, count);
      case 8:
        return run(float2{}, count);
      case 16:
        return run(float4{}, count);
      default:
        throw Error("latency-hiding: bytes_per_load is " + std::to_string(bytes_per_load) +
                    "; allowed: 4, 8, 16");
    }
  });
}

template <class Run>
void with_chains(int chains, Run run) {
  simt::with_constant<1, 2, 3, 4, 5, 6, 7, 8>("latency-hiding: ilp", chains, run);
}
template <class Run>
void with_registers(int registers, Run run) {
  simt::with_constant<24, 32, 40, 48, 64, 96, 128, 168>("latency-hiding: max_registers", registers,
                                                        run);
}

#if defined(__CUDACC__)
void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // so that the next call does not report it again
  throw Error(std::string("latency-hiding: ") + what + ": " + cudaGetErrorString(result),
              ExitCode::unavailable);
}
Variant variant_of(std::string name, const void* kernel) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel), "asking what a kernel takes");
  return {std::move(name), attributes.numRegs, static_cast<int>(attributes.sharedSizeBytes),
          static_cast<int>(attributes.localSizeBytes)};
}
#else
Variant variant_of(std::string name, const void*) {
  return {std::move(name), 0, 0, 0};
}
#endif

template <class... Params>
const void* address_of(void (*kernel)(Params...)) {
  return reinterpret_cast<const void*>(kernel);
}

/// Launches a kernel, or with `resources` says what the launch takes.
struct Call {
  simt::Device& device;
  simt::Resources* resources = nullptr;

  template <class... Params, class... Args>
  void operator()(const char* name, const Grid& grid, void (*kernel)(Params...),
                  const Args&... args) const {
    const simt::Launch launch = launch_of(name, grid);
    if (resources != nullptr) {
      *resources = simt::resources_of(launch, kernel);
    } else {
      simt::launch(device, launch, kernel, args...);
    }
  }
};

template <class Tape>
void start(const Call& call, const CopyShape& shape, simt::Span<const float> in,
           simt::Span<float> out, Tape tape) {
  with_copy(shape.bytes_per_load, shape.loads, [&](auto vector, auto loads) {
    call("copy", shape.grid, copy<decltype(vector), decltype(loads)::value, Tape>,
         simt::global(in, "in"), simt::global(out, "out"), static_cast<Index>(in.count),
         shape.order, shape.ways, tape);
  });
}

template <class Tape>
void start(const Call& call, const Compute& what, simt::Span<const float> from,
           simt::Span<float> to, Tape tape) {
  const auto in = simt::global(from, "in");
  const auto out = simt::global(to, "out");
  if (what.kernel == Kernel::fma) {
    with_chains(what.chains, [&](auto chains) {
      call("fma", what.grid, fma<decltype(chains)::value, Tape>, in, out, kScale, what.rounds,
           what.steps, what.active, tape);
    });
  } else if (what.kernel == Kernel::spill) {
    with_registers(what.registers, [&](auto registers) {
      call("spill", what.grid, spill<decltype(registers)::value, Tape>, in, out, what.rounds, tape);
    });
  } else if (what.kernel == Kernel::diverge) {
    call("diverge", what.grid, diverge<Tape>, in, out, simt::global(what.voted, "voted"), kScale,
         what.ways, what.rounds, what.steps, tape);
  } else {
    assert(what.kernel == Kernel::tail);
    call("tail", what.grid, tail<Tape>, in, out, static_cast<Index>(to.count), kScale, what.steps,
         tape);
  }
}

class KernelsHere final : public Kernels {
 public:
  void copy(simt::Device& device, const CopyShape& shape, simt::Span<const float> in,
            simt::Span<float> out, const simt::Tape& on) const override {
    assert(in.count == out.count);
    simt::with_tape(on, [&](auto tape) { start({device}, shape, in, out, tape); });
  }
  void bulk_copy(simt::Device& device, const Grid& grid, const BulkShape& shape,
                 simt::Span<const float> in, simt::Span<float> out,
                 const simt::Tape& on) const override {
    start_bulk_copy(device, grid, shape, in, out, on);
  }
  void fill_words(simt::Device& device, simt::Span<unsigned> words, unsigned seed) const override {
    const auto count = static_cast<Index>(words.count);
    if (count == 0) return;
    simt::launch(device, launch_over("fill_words", count), SIMT_BACKEND::fill_words,
                 simt::global(words, "words"), count, seed);
  }
  void count_wrong(simt::Device& device, simt::Span<const unsigned> words, unsigned seed,
                   simt::Span<unsigned long long> wrong) const override {
    const auto count = static_cast<Index>(words.count);
    if (count == 0) return;
    simt::launch(device, launch_over("count_wrong", count), SIMT_BACKEND::count_wrong,
                 simt::global(words, "words"), count, seed, simt::global(wrong, "wrong"));
  }

  void link(simt::Device& device, simt::Span<Node> nodes,
            simt::Span<const unsigned> order) const override {
    const auto count = static_cast<Index>(order.count);
    simt::launch(device, launch_over("link", count), SIMT_BACKEND::link,
                 simt::global(nodes, "nodes"), simt::global(order, "order"), count);
  }
  void chase(simt::Device& device, const Grid& grid, simt::Span<const Node> nodes,
             simt::Span<const unsigned> starts, simt::Span<unsigned long long> visited,
             const simt::Tape& on) const override {
    simt::with_tape(on, [&](auto tape) {
      simt::launch(device, launch_of("chase", grid), SIMT_BACKEND::chase<decltype(tape)>,
                   simt::global(nodes, "nodes"), simt::global(starts, "starts"),
                   simt::global(visited, "visited"), tape);
    });
  }
  void walk(simt::Device& device, bool past_l1, simt::Span<const Node> nodes, std::int64_t warm,
            std::int64_t hops, simt::Span<Walked> walked) const override {
    simt::launch(device, simt::row_of_blocks("walk", 1, 1),
                 past_l1 ? SIMT_BACKEND::walk<true> : SIMT_BACKEND::walk<false>,
                 simt::global(nodes, "nodes"), warm, hops, simt::global(walked, "walked"));
  }
  void walk_shared(simt::Device& device, std::int64_t hops,
                   simt::Span<Walked> walked) const override {
    simt::launch(device, simt::row_of_blocks("walk_shared", 1, kLanes, kRingBytes),
                 SIMT_BACKEND::walk_shared, hops, simt::global(walked, "walked"));
  }
  void time_hops(simt::Device& device, simt::Span<const Node> nodes, std::int64_t warm,
                 simt::Span<unsigned> visited, simt::Span<unsigned> cycles) const override {
    assert(cycles.count == visited.count + 1);
    simt::launch(device, simt::row_of_blocks("time_hops", 1, 1), SIMT_BACKEND::time_hops,
                 simt::global(nodes, "nodes"), warm, static_cast<Index>(visited.count),
                 simt::global(visited, "visited"), simt::global(cycles, "cycles"));
  }

  void compute(simt::Device& device, const Compute& what, simt::Span<const float> in,
               simt::Span<float> out, const simt::Tape& on) const override {
    simt::with_tape(on, [&](auto tape) { start({device}, what, in, out, tape); });
  }

  simt::Resources resources(simt::Device& device, const Params& params,
                            const Grid& grid) const override {
    if (params.kernel == Kernel::bulk_copy) return bulk_resources(device, grid);
    if (params.kernel == Kernel::chase)
      return simt::resources_of(launch_of("chase", grid), SIMT_BACKEND::chase<simt::Tape>);
    simt::Resources found;
    const Call call{device, &found};
    if (params.kernel == Kernel::copy) {
      start(call, copy_shape(params, grid), {}, {}, simt::Tape());
    } else {
      start(call, compute_of(params, grid), {}, {}, simt::Tape());
    }
    return found;
  }

  std::vector<Variant> variants(simt::Device&) const override {
    std::vector<Variant> all;
    for (const Named& one : named()) all.push_back(variant_of(one.name, one.kernel));
    return all;
  }
  int runtime_blocks(simt::Device& device, [[maybe_unused]] int variant,
                     [[maybe_unused]] int threads, [[maybe_unused]] int shared_bytes,
                     [[maybe_unused]] int carveout) const override {
#if defined(__CUDACC__)
    const void* kernel = named().at(static_cast<std::size_t>(variant)).kernel;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, carveout),
          "the carve-out");
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
          "the dynamic shared memory");
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads,
                                                        static_cast<std::size_t>(shared_bytes)),
          "the occupancy");
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, -1),
          "the carve-out");
    static_cast<void>(device);
    return blocks;
#else
    simt::refuse_device(device.info(), "the occupancy of a compiled kernel", "an NVIDIA GPU");
#endif
  }

 private:
  struct Named {
    std::string name;
    const void* kernel;
  };
  /// As they are timed: without probes.
  static const std::vector<Named>& named() {
    static const std::vector<Named> all = [] {
      std::vector<Named> made;
      for (const int bytes : {4, 8, 16}) {
        for (const int loads : {1, 2, 4, 8}) {
          with_copy(bytes, loads, [&](auto vector, auto count) {
            made.push_back(
                {"copy " + std::to_string(bytes) + " x " + std::to_string(loads),
                 address_of(
                     SIMT_BACKEND::copy<decltype(vector), decltype(count)::value, simt::NoTape>)});
          });
        }
      }
      for (int ilp = 1; ilp <= 8; ++ilp) {
        with_chains(ilp, [&](auto chains) {
          made.push_back({"fma " + std::to_string(ilp),
                          address_of(SIMT_BACKEND::fma<decltype(chains)::value, simt::NoTape>)});
        });
      }
      for (const int limit : kRegisterLimits) {
        with_registers(limit, [&](auto registers) {
          made.push_back(
              {"spill " + std::to_string(limit),
               address_of(SIMT_BACKEND::spill<decltype(registers)::value, simt::NoTape>)});
        });
      }
      return made;
    }();
    return all;
  }
};

}  // namespace tilestep::latency_hiding::SIMT_BACKEND
SIMT_KERNEL_SET(latency_hiding, KernelsHere)
