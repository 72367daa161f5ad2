// Coalescing: the kernel of the lesson.
//
//   gather, scatter    out[i] = in[index(i)] and out[index(i)] = in[i], one element a thread. The
//                      patterns say which element that is: the rest of the kernel is the same
//
// The ladders of copies and transposes are in ladders.cu. What lies between kernel and
// accessors is in simt/simt.hpp: compiled by nvcc, an accessor is a plain pointer.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/base/simt/simt.hpp"
#include "kernels/memory/coalescing/launch.hpp"

namespace tilestep::coalescing::SIMT_BACKEND {

// ---- patterns: which element thread i takes -----------------------------------------------------

struct Sequential {
  static constexpr int kLine = __LINE__ + 1;
  __device__ Index operator()(Index i) const { return i; }
};

struct Strided {
  Index stride;
  static constexpr int kLine = __LINE__ + 1;
  __device__ Index operator()(Index i) const { return i * stride; }
};

struct Offset {
  Index offset;
  static constexpr int kLine = __LINE__ + 1;
  __device__ Index operator()(Index i) const { return i + offset; }
};

struct Reversed {
  Index elements;
  static constexpr int kLine = __LINE__ + 1;
  __device__ Index operator()(Index i) const { return elements - 1 - i; }
};

/// The warp's own 32 elements in another order: lane × odd number + addend, modulo 32.
struct PermutedWarp {
  unsigned multiplier;
  unsigned addend;
  __device__ Index operator()(Index i) const {
    const Index lane = i % 32;
    return i - lane + (lane * multiplier + addend) % 32;
  }
  static constexpr int kLine = __LINE__ - 2;
};

/// All elements in another order. Each step can be undone, so that no two threads meet; what falls
/// past the end goes round again.
struct Permuted {
  Index elements;
  unsigned multiplier;
  unsigned mask;
  unsigned shift;
  static constexpr int kLine = __LINE__ + 5;
  __device__ Index operator()(Index i) const {
    unsigned x = static_cast<unsigned>(i);
    do {
      for (int round = 0; round < 3; ++round) {
        x = (x * multiplier + round) & mask;
        x ^= x >> shift;
      }
    } while (x >= elements);
    return x;
  }
};

struct Broadcast {
  static constexpr int kLine = __LINE__ + 1;
  __device__ Index operator()(Index i) const { return i / 32; }
};

/// Field 1 of structure i, in an array of structures.
struct ArrayOfStructures {
  Index fields;
  static constexpr int kLine = __LINE__ + 1;
  __device__ Index operator()(Index i) const { return i * fields + 1; }
};

/// Field 1 of structure i, in a structure of arrays that are `pitch` elements apart.
struct StructureOfArrays {
  Index pitch;
  static constexpr int kLine = __LINE__ + 1;
  __device__ Index operator()(Index i) const { return 1 * pitch + i; }
};

/// Threads run along the rows of a row-major matrix.
struct MatrixRow {
  Index columns;
  __device__ Index operator()(Index i) const {
    const Index row = i / columns;
    const Index column = i % columns;
    return row * columns + column;
  }
  static constexpr int kLine = __LINE__ - 2;
};

/// Threads run down the columns of a row-major matrix.
struct MatrixColumn {
  Index rows;
  Index columns;
  __device__ Index operator()(Index i) const {
    const Index row = i % rows;
    const Index column = i / rows;
    return row * columns + column;
  }
  static constexpr int kLine = __LINE__ - 2;
};

// ---- the lesson's kernel ------------------------------------------------------------------------

constexpr int kGatherLine = __LINE__ + 5;
/// Loads by pattern, stores plainly.
template <class In, class Out, class IndexOf>
__global__ void gather(In in, Out out, IndexOf index, Index elements) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < elements) out[i] = in[index(i)];
}

constexpr int kScatterLine = __LINE__ + 5;
/// Loads plainly, stores by pattern.
template <class In, class Out, class IndexOf>
__global__ void scatter(In in, Out out, IndexOf index, Index elements) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < elements) out[index(i)] = in[i];
}

// ---- launches -----------------------------------------------------------------------------------

/// `bytes` as elements of type E.
template <class E, class Byte>
simt::Span<E> elements_of(simt::Span<Byte> bytes) {
  assert(reinterpret_cast<std::uintptr_t>(bytes.data) % sizeof(E) == 0);
  return {reinterpret_cast<E*>(bytes.data), bytes.count / sizeof(E)};
}

/// Calls `run` with the functor of the shape's pattern.
template <class Run>
void with_pattern(const PatternShape& s, Run run) {
  switch (s.pattern) {
    case Pattern::sequential:
      return run(Sequential{});
    case Pattern::strided:
      return run(Strided{s.stride});
    case Pattern::offset:
      return run(Offset{s.offset});
    case Pattern::reversed:
      return run(Reversed{s.elements});
    case Pattern::permuted_warp:
      return run(PermutedWarp{s.lane_multiplier, s.lane_addend});
    case Pattern::permuted:
      return run(Permuted{s.elements, s.multiplier, s.mask, s.shift});
    case Pattern::broadcast:
      return run(Broadcast{});
    case Pattern::aos:
      return run(ArrayOfStructures{s.fields});
    case Pattern::soa:
      return run(StructureOfArrays{s.pitch});
    case Pattern::matrix_row:
      return run(MatrixRow{s.columns});
    case Pattern::matrix_column:
      return run(MatrixColumn{s.rows, s.columns});
  }
  assert(false);
}

/// Calls `run` with a value of an element type of `bytes`.
template <class Run>
void with_element(int bytes, Run run) {
  switch (bytes) {
    case 1:
      return run(static_cast<unsigned char>(0));
    case 2:
      return run(static_cast<unsigned short>(0));
    case 4:
      return run(0u);
    case 8:
      return run(uint2{});
    case 16:
      return run(uint4{});
    default:
      throw Error("element_bytes is " + std::to_string(bytes) + "; allowed: 1, 2, 4, 8, 16");
  }
}

/// Starts gather or scatter on `blocks` blocks, with accessors made for one site each.
template <class In, class Out>
void launch_access(simt::Device& device, const PatternShape& shape, dim3 blocks, const In& in,
                   const Out& out) {
  const bool load = shape.access == Access::load;
  const simt::Launch launch{.name = load ? "gather" : "scatter",
                            .grid = blocks,
                            .block = dim3(static_cast<unsigned>(kThreadsPerBlock))};
  with_pattern(shape, [&](auto index) {
    using IndexOf = decltype(index);
    simt::launch(device, launch, load ? gather<In, Out, IndexOf> : scatter<In, Out, IndexOf>, in,
                 out, index, shape.elements);
  });
}

class KernelsHere final : public Kernels {
 public:
  void access(simt::Device& device, const PatternShape& shape, simt::Span<const unsigned char> in,
              simt::Span<unsigned char> out) const override {
    check_access(shape, in.count, out.count);
    with_element(shape.element_bytes, [&](auto element) {
      using E = decltype(element);
      launch_access(device, shape, blocks_for(shape.elements, kThreadsPerBlock),
                    simt::global(elements_of<const E>(in), "in"),
                    simt::global(elements_of<E>(out), "out"));
    });
  }

  void access_traced(simt::Device& device, const PatternShape& shape, int blocks,
                     simt::Span<const unsigned char> in, simt::Span<unsigned char> out,
                     const simt::TraceBuffer& trace) const override {
    check_access(shape, in.count, out.count);
    const bool load = shape.access == Access::load;
    with_element(shape.element_bytes, [&](auto element) {
      using E = decltype(element);
      launch_access(
          device, shape, dim3(static_cast<unsigned>(blocks)),
          simt::traced(elements_of<const E>(in), "in", trace, load ? kPatternSite : kPlainSite),
          simt::traced(elements_of<E>(out), "out", trace, load ? kPlainSite : kPatternSite));
    });
  }

  SourceLines lines(Pattern pattern, Access access) const override {
    SourceLines lines;
    lines.access = access == Access::load ? kGatherLine : kScatterLine;
    PatternShape shape;
    shape.pattern = pattern;
    with_pattern(shape, [&](auto index) { lines.index = decltype(index)::kLine; });
    return lines;
  }

  void fill_random(simt::Device& device, simt::Span<unsigned> words, unsigned seed) const override {
    launch_fill_random(device, words, seed);
  }
  void copy(simt::Device& device, CopyRung rung, const CopyConfig& config,
            simt::Span<const float> in, simt::Span<float> out) const override {
    launch_copy(device, rung, config, in, out);
  }
  void transpose(simt::Device& device, TransposeRung rung, const TransposeShape& shape,
                 simt::Span<const float> in, simt::Span<float> out) const override {
    launch_transpose(device, rung, shape, in, out);
  }
  void transpose_traced(simt::Device& device, TransposeRung rung, int rows, int columns,
                        simt::Span<const float> in, simt::Span<float> out,
                        const simt::TraceBuffer& trace) const override {
    launch_transpose_traced(device, rung, rows, columns, in, out, trace);
  }
  void count_wrong(simt::Device& device, std::int64_t rows, std::int64_t columns, unsigned seed,
                   simt::Span<const unsigned> out,
                   simt::Span<unsigned long long> wrong) const override {
    launch_count_wrong(device, rows, columns, seed, out, wrong);
  }

 private:
  static void check_access(const PatternShape& shape, std::size_t in_bytes, std::size_t out_bytes) {
    const bool load = shape.access == Access::load;
    [[maybe_unused]] const auto room = [&](std::int64_t elements) {
      return static_cast<std::size_t>(elements) * static_cast<std::size_t>(shape.element_bytes);
    };
    assert(in_bytes >= room(load ? shape.array_elements : shape.elements));
    assert(out_bytes >= room(load ? shape.elements : shape.array_elements));
    (void)load, (void)in_bytes, (void)out_bytes;
  }
};

}  // namespace tilestep::coalescing::SIMT_BACKEND

namespace tilestep::coalescing {

const simt::KernelSet& SIMT_KERNELS(kernels)() {
  static const SIMT_BACKEND::KernelsHere kernels;
  return kernels;
}

}  // namespace tilestep::coalescing
