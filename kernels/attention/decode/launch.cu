// What the host asks of the lesson's kernels; the same text for both backends. They are compiled in files of their own.

#include <algorithm>

#include "kernels/attention/decode/bench/read.cu"
#include "kernels/attention/decode/kernels.hpp"
#include "kernels/attention/decode/latent/kernels.hpp"
#include "kernels/attention/decode/latent/latent_explained.cu"
#include "kernels/attention/decode/paged/kernels.hpp"
#include "kernels/lessons.hpp"

namespace tilestep::decode::SIMT_BACKEND {
namespace {

class KernelsHere final : public Kernels {
 public:
  void explain(simt::Device& device, const paged::Problem& problem, const paged::Arrays& arrays,
               const paged::Explanation& what) const override {
    paged::SIMT_BACKEND::explain(device, problem, arrays, what);
  }
  void attend(simt::Device& device, const paged::Problem& problem,
              const paged::Arrays& arrays) const override {
    paged::SIMT_BACKEND::attend(device, problem, arrays);
  }
  void merge(simt::Device& device, const paged::Problem& problem,
             const paged::Arrays& arrays) const override {
    paged::SIMT_BACKEND::merge(device, problem, arrays);
  }
  simt::Resources resources(simt::Device& device, const paged::Problem& problem) const override {
    return paged::SIMT_BACKEND::resources(device, problem);
  }
  void explain(simt::Device& device, const latent::ExplainedProblem& problem,
               const latent::ExplainedArrays& a, const paged::Explanation& what) const override {
    namespace here = latent::SIMT_BACKEND;
    if (problem.most_rows * problem.most_requests > latent::most_heads(problem.value) ||
        problem.width % here::kChunk != 0) {
      throw Error(
          "explained mla: too many query rows of an item, or rows that are no multiple of 16 "
          "bytes");
    }
    const simt::Span<const std::uint16_t> cache{reinterpret_cast<const std::uint16_t*>(a.k.data),
                                                a.k.count / 2};
    const here::Memory memory{simt::global(a.q, "q"),
                              simt::global(cache, "latent rows"),
                              simt::global(a.table, "block table"),
                              simt::global(a.context, "context"),
                              simt::global(a.items, "work items"),
                              simt::global(a.first_item, "first items"),
                              simt::global(a.o, "O"),
                              simt::global(a.lse, "log-sum-exp"),
                              simt::global(a.part_o, "parts of O"),
                              simt::global(a.part_m, "maxima of parts"),
                              simt::global(a.part_l, "sums of parts"),
                              simt::global(a.parts, "parts of rows")};
    const here::Records records{simt::global(what.visits, "visits"),
                                simt::global(what.steps, "steps"),
                                simt::global(what.asked, "asked"),
                                simt::global(what.weights, "weights"),
                                what.request,
                                what.head,
                                what.component,
                                what.step_pitch,
                                what.traced_item,
                                what.tape};
    const auto blocks = static_cast<std::int64_t>(a.first_item.count) - 1;
    simt::launch(device,
                 simt::row_of_blocks("latent_explained", blocks, here::kThreads,
                                     latent::explained_shared_bytes(problem)),
                 here::latent_explained, memory, problem, records);
    simt::launch(device,
                 simt::row_of_blocks("latent_merge", static_cast<std::int64_t>(a.items.count),
                                     here::kThreads),
                 here::latent_merge, memory, problem, records);
  }

  void attend(simt::Device& device, const latent::Problem& problem,
              const latent::Arrays& arrays) const override {
    latent::SIMT_BACKEND::attend(device, problem, arrays);
  }
  void explain(simt::Device& device, const latent::Problem& problem, const latent::Arrays& arrays,
               const paged::Explanation& what) const override {
    latent::SIMT_BACKEND::explain(device, problem, arrays, what);
  }
  void merge(simt::Device& device, const latent::Problem& problem, const latent::Arrays& arrays,
             const paged::Explanation* what) const override {
    latent::SIMT_BACKEND::merge(device, problem, arrays, what);
  }
  simt::Resources resources(simt::Device& device, const latent::Problem& problem) const override {
    return latent::SIMT_BACKEND::resources(device, problem);
  }

  simt::LibraryStatus library(simt::Device&) const override { return simt::cudnn_status(); }
  int library_plans(simt::Device&,
                    [[maybe_unused]] const simt::LibraryAttention& attention) const override {
#if defined(__CUDACC__)
    return simt::cuda::Cudnn::loaded().plans(attention);
#else
    return 0;
#endif
  }
  void library_attend(simt::Device&, [[maybe_unused]] const simt::LibraryAttention& attention,
                      [[maybe_unused]] int plan,
                      [[maybe_unused]] const simt::LibraryAttentionArrays& arrays) const override {
#if defined(__CUDACC__)
    simt::cuda::Cudnn::loaded().attend(attention, plan, arrays);
#else
    throw Error(simt::cudnn_status().reason, ExitCode::unavailable);
#endif
  }

  void read(simt::Device& device, simt::Span<const std::uint8_t> k,
            simt::Span<const std::uint8_t> v, simt::Span<unsigned> sum, int blocks) const override {
    const auto words = static_cast<long long>(k.count / sizeof(uint4));
    const auto of = [&](simt::Span<const std::uint8_t> bytes, const char* name) {
      return simt::global(simt::Span<const uint4>{reinterpret_cast<const uint4*>(bytes.data),
                                                  static_cast<std::size_t>(words)},
                          name);
    };
    const int each = std::max(blocks * device.info().multiprocessors / 2, 1);
    simt::launch(device, simt::row_of_blocks("read_all", 2 * each, kReadThreads), read_all,
                 of(k, "K"), of(v, "V"), words, simt::global(sum, "sum"));
  }
};

}  // namespace
}  // namespace tilestep::decode::SIMT_BACKEND
SIMT_KERNEL_SET(decode, KernelsHere)
