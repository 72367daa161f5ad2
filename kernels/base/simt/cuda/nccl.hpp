#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tilestep::simt {

/// NVIDIA's library of collectives, loaded at run time where it is: libnccl.so.2 of the system, or the file or folder that
/// TILESTEP_NCCL names. NCCL documentation, "API".
class Nccl {
 public:
  static const Nccl& loaded();

  bool available() const { return reason_.empty(); }
  const std::string& reason() const {
    return reason_;
  }  ///< why not, and what to do; empty: it is there
  const std::string& name() const { return name_; }  ///< "NCCL 2.27.3"

  /// Communicators of ranks 0 … in this process, on these GPUs. Throws Error (unavailable).
  std::vector<void*> make(const std::vector<int>& gpus) const;
  void destroy(const std::vector<void*>& ranks) const;
  /// Calls between these two are one, of all ranks.
  void begin() const;
  void end() const;
  /// FP32 numbers, in a stream.
  void all_reduce(const void* in, void* out, std::size_t count, void* rank, void* stream) const;
  /// `count`: of each rank's part.
  void all_gather(const void* in, void* out, std::size_t count, void* rank, void* stream) const;
  void reduce_scatter(const void* in, void* out, std::size_t count, void* rank, void* stream) const;
  /// `count` numbers from rank to rank, block after block.
  void all_to_all(const float* in, float* out, std::size_t count, int ranks, void* rank,
                  void* stream) const;

 private:
  Nccl();
  void check(int status, const char* what) const;

  std::string reason_, name_;
  int (*init_all_)(void**, int, const int*) = nullptr;
  int (*destroy_)(void*) = nullptr;
  int (*all_reduce_)(const void*, void*, std::size_t, int, int, void*, void*) = nullptr;
  int (*all_gather_)(const void*, void*, std::size_t, int, void*, void*) = nullptr;
  int (*reduce_scatter_)(const void*, void*, std::size_t, int, int, void*, void*) = nullptr;
  int (*send_)(const void*, std::size_t, int, int, void*, void*) = nullptr;
  int (*receive_)(void*, std::size_t, int, int, void*, void*) = nullptr;
  int (*begin_)() = nullptr;
  int (*end_)() = nullptr;
  const char* (*text_)(int) = nullptr;
};

}  // namespace tilestep::simt
