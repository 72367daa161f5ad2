#include "kernels/base/simt/cuda/cuda_module.hpp"

#include "tests/catch.hpp"
#include "tests/kernels/base/simt/testing.hpp"
#include "tests/paths.hpp"

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

TEST_CASE("simt: a CUDA module built from the same sources is used", "[simt]") {
  const CudaModule module = load_cuda_module(tilestep::tests::paths::kFakeModuleSame);
  CHECK(module.built);
  CHECK(module.reason == "");
  REQUIRE(module.status != nullptr);
  CudaStatus status;
  module.status(status);
  CHECK(status.device.name == "a GPU that nobody has");
}

TEST_CASE("simt: a CUDA module built from other sources is refused", "[simt]") {
  for (const std::string path :
       {tilestep::tests::paths::kFakeModuleOther, tilestep::tests::paths::kFakeModuleUnhashed}) {
    const CudaModule module = load_cuda_module(path);
    CHECK(module.built);
    CHECK(module.status == nullptr);
    CHECK(module.make_device == nullptr);
    CHECK(module.reason ==
          "the CUDA backend " + path +
              " was built from other sources than this program, so it is not used; build both "
              "again or, if that was just done, start tilestep again");
  }
}

TEST_CASE("simt: a CUDA module that is not there or no library is named", "[simt]") {
  const CudaModule absent = load_cuda_module("/no/such/module.so");
  CHECK_FALSE(absent.built);
  CHECK(missing_in(absent.reason, {"/no/such/module.so is not there", "build again"}) == "");
  const CudaModule text =
      load_cuda_module(tilestep::tests::paths::kSource + std::string("/README.md"));
  CHECK(text.built);
  CHECK(missing_in(text.reason, {"cannot be loaded: ", "README.md"}) == "");
}

}  // namespace
}  // namespace tilestep::simt
