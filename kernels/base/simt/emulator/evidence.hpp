#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/simt/backends.hpp"

/// \file
/// What the host's side of a run has got of its device: where its memory lay, the bytes that it copied out, which launches
/// failed, and what was logged. With that the run can be had again, its checks and all, by a process that runs no kernel:
/// one that does not trust the process in which the kernels ran.

namespace tilestep::simt {

/// Bytes of a run's evidence. Those of the lessons' trial settings have less (tested).
inline constexpr std::size_t kMostEvidence = std::size_t{11} << 18;

/// Evidence as it comes, of all devices of a run in the order in which they are used.
class EvidenceWriter {
 public:
  void allocated(const void* memory);
  void copied_out(const void* host, std::size_t bytes);
  void logged(const AsyncEvent& event);
  void failed(std::string_view sentence);

  /// There is more than kMostEvidence.
  bool full() const { return full_; }
  /// All of it. Throws Error, naming the limit, where it is full.
  std::string take();

 private:
  void add(char kind, std::string_view bytes);

  std::string bytes_;
  bool full_ = false;
};

/// Evidence from somebody who may write what he likes. Each call takes what is next; it throws Error where that is not of
/// its kind or size, or the Error of a launch that failed there.
class EvidenceReader {
 public:
  explicit EvidenceReader(std::string_view bytes) : rest_(bytes) {}

  /// An address of `bytes` bytes, not to be followed.
  void* allocated(std::size_t bytes);
  void copied_out(void* host, std::size_t bytes);
  /// Takes what happened before the next copy: to `log`, which may be null, what was logged. Throws the Error of a launch
  /// that failed.
  void catch_up(std::vector<AsyncEvent>* log);
  /// Throws Error where there is more.
  void require_end();

 private:
  std::string_view take(char kind);

  std::string_view rest_;
};

/// An emulated device as make_emulated_device makes it, and those made like it: `evidence`, which must outlive them, gets
/// what is got of them.
std::unique_ptr<Device> make_witnessed_device(std::span<const KernelEntry> table,
                                              const EmulationOptions& options,
                                              EvidenceWriter& evidence);
/// A device on which nothing runs and nothing is kept: what is got of it is `evidence`, which must outlive it. Its
/// addresses are those of the evidence, and no memory of this process.
std::unique_ptr<Device> make_replaying_device(std::span<const KernelEntry> table,
                                              const EmulationOptions& options,
                                              EvidenceReader& evidence);

}  // namespace tilestep::simt
