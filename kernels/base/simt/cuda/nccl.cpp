#include "kernels/base/simt/cuda/nccl.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "kernels/base/simt/error.hpp"

namespace tilestep::simt {
namespace {

// nccl.h: no header is needed, and no link.
constexpr int kFloat32 = 7, kSum = 0;

}  // namespace

const Nccl& Nccl::loaded() {
  static const Nccl nccl;
  return nccl;
}

Nccl::Nccl() {
  std::vector<std::string> files;
  if (const char* named = std::getenv("TILESTEP_NCCL"); named != nullptr && *named != '\0')
    files = {named, std::string(named) + "/libnccl.so.2"};
  files.emplace_back("libnccl.so.2");
  void* library = nullptr;
  for (const std::string& file : files) {
    if (library == nullptr) library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    reason_ =
        "NCCL was not found; install libnccl2, or set TILESTEP_NCCL to the file libnccl.so.2 or "
        "its "
        "folder";
    return;
  }
  bool all = true;
  const auto load = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, symbol));
    all = all && function != nullptr;
  };
  int (*version)(int*) = nullptr;
  load(version, "ncclGetVersion");
  load(init_all_, "ncclCommInitAll");
  load(destroy_, "ncclCommDestroy");
  load(all_reduce_, "ncclAllReduce");
  load(all_gather_, "ncclAllGather");
  load(reduce_scatter_, "ncclReduceScatter");
  load(send_, "ncclSend");
  load(receive_, "ncclRecv");
  load(begin_, "ncclGroupStart");
  load(end_, "ncclGroupEnd");
  load(text_, "ncclGetErrorString");
  if (!all) {
    reason_ = "the NCCL that was found is older than 2.7";
    return;
  }
  int number = 0;
  version(&number);
  name_ = fmt::format("NCCL {}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

void Nccl::check(int status, const char* what) const {
  if (status == 0) return;
  throw Error(fmt::format("{} did not {}: {}", name_, what, text_(status)), ExitCode::unavailable);
}
std::vector<void*> Nccl::make(const std::vector<int>& gpus) const {
  if (!available()) throw Error(reason_, ExitCode::unavailable);
  std::vector<void*> ranks(gpus.size());
  check(init_all_(ranks.data(), static_cast<int>(gpus.size()), gpus.data()), "start");
  return ranks;
}
void Nccl::destroy(const std::vector<void*>& ranks) const {
  for (void* rank : ranks) destroy_(rank);
}
void Nccl::begin() const {
  check(begin_(), "begin a call");
}
void Nccl::end() const {
  check(end_(), "make a call");
}
void Nccl::all_reduce(const void* in, void* out, std::size_t count, void* rank,
                      void* stream) const {
  check(all_reduce_(in, out, count, kFloat32, kSum, rank, stream), "add up");
}
void Nccl::all_gather(const void* in, void* out, std::size_t count, void* rank,
                      void* stream) const {
  check(all_gather_(in, out, count, kFloat32, rank, stream), "gather");
}
void Nccl::reduce_scatter(const void* in, void* out, std::size_t count, void* rank,
                          void* stream) const {
  check(reduce_scatter_(in, out, count, kFloat32, kSum, rank, stream), "add up parts");
}
void Nccl::all_to_all(const float* in, float* out, std::size_t count, int ranks, void* rank,
                      void* stream) const {
  for (int other = 0; other < ranks; ++other) {
    const std::size_t block = static_cast<std::size_t>(other) * count;
    check(send_(in + block, count, kFloat32, other, rank, stream), "send");
    check(receive_(out + block, count, kFloat32, other, rank, stream), "receive");
  }
}

}  // namespace tilestep::simt
