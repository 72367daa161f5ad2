#include "tests/catch.hpp"
#include "tests/kernels/base/simt/testing.hpp"

namespace tilestep::simt {
namespace {

TEST_CASE("simt: the CUDA backend works, or says in a sentence why not", "[simt]") {
  const CudaStatus status = cuda_status();
  if (status.available) {
    CHECK(status.built);
    CHECK(status.reason.empty());
    const auto device = make_cuda_device();
    CHECK(device->info().backend == "cuda");
    CHECK(device->info().name == status.device.name);
    Buffer<int> buffer(*device, counting<int>(100));
    CHECK(buffer.download() == counting<int>(100));
  } else {
    CHECK(status.reason.size() > 20);
    CHECK(outcome_of([] { make_cuda_device(); }) == status.reason);
  }
}

}  // namespace
}  // namespace tilestep::simt
