// How the paged kernels that write down what happens are launched.

#include "kernels/attention/decode/paged.cu"
#include "kernels/attention/decode/paged_launch.hpp"

namespace tilestep::decode::paged::SIMT_BACKEND {

void explain(simt::Device& device, const Problem& problem, const Arrays& arrays,
             const Explanation& what) {
  check(device.info(), problem);
  const Explained witness = witness_of(what);
  const auto run = [&](auto format, auto query) {
    simt::with_constant<32, 64, 128>("paged decode: head_dim", problem.head_dim, [&](auto dim) {
      using T = Shape<typename decltype(format)::type, typename decltype(query)::type,
                      decltype(dim)::value, 2, kExplainedTile, 2, 0>;
      launch<T, Explained>(device, paged<T, Explained>, problem, arrays, witness);
    });
  };
  if (problem.number == Number::fp16) {
    if (problem.cache != Cache::same) {
      throw Error("paged decode: queries of a quantized cache are BF16");
    }
    run(std::type_identity<Plain<Fp16>>{}, std::type_identity<Fp16>{});
  } else {
    with_format(problem, [&](auto format) { run(format, std::type_identity<Bf16>{}); });
  }
}

}  // namespace tilestep::decode::paged::SIMT_BACKEND
