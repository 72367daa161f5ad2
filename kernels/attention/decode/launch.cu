// The host's interface to the lesson's kernels; the same text for both backends. They are compiled in separate files.

#include "kernels/attention/decode/kernels.hpp"
#include "kernels/attention/decode/latent/kernels.hpp"
#include "kernels/attention/decode/latent/latent_explained.cu"
#include "kernels/attention/kv_cache/paged/kernel_set.hpp"
#include "kernels/lessons.hpp"

namespace tilestep::decode::SIMT_BACKEND {
namespace {

using Paged = kv_cache::SIMT_BACKEND::PagedKernelsHere<Kernels>;

class KernelsHere final : public Paged {
 public:
  using Paged::attend, Paged::explain, Paged::merge, Paged::resources;

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
};

}  // namespace
}  // namespace tilestep::decode::SIMT_BACKEND
SIMT_KERNEL_SET(decode, KernelsHere)
