#include "kernels/base/simt/emulator/evidence.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/base/simt/emulator/emulated_device.hpp"

namespace tilestep::simt {
namespace {

// A record: its kind, the number of its bytes in 8, and those.
constexpr char kAllocated = 'a', kCopiedOut = 'o', kLogged = 'e', kFailed = 'f';
constexpr std::size_t kHead = 1 + sizeof(std::uint64_t);
/// Where the addresses of programs end, on x86-64 and on AArch64.
constexpr std::uint64_t kEndOfAddresses = std::uint64_t{1} << 48;

[[noreturn]] void refuse() {
  throw Error("the kernel's process gave other outputs than the lesson reads",
              ExitCode::check_failed);
}

/// Calls `take` with each member of an event but its text, which comes last.
template <class Event, class Take>
void each_number(Event& event, Take take) {
  take(event.kind), take(event.block), take(event.depth), take(event.number);
  take(event.barrier_address), take(event.phase), take(event.source_block), take(event.thread);
  take(event.address), take(event.bytes), take(event.pending_bytes), take(event.pending_arrivals);
  take(event.n), take(event.product);
}

AsyncEvent event_of(std::string_view bytes) {
  AsyncEvent event;
  each_number(event, [&](auto& member) {
    if (bytes.size() < sizeof member) refuse();
    // An enum may not hold just any number.
    if constexpr (std::is_enum_v<std::remove_reference_t<decltype(member)>>) {
      int number = 0;
      std::memcpy(&number, bytes.data(), sizeof number);
      if (number < 0 || number > static_cast<int>(AsyncEvent::Kind::product_done)) refuse();
    }
    std::memcpy(&member, bytes.data(), sizeof member);
    bytes.remove_prefix(sizeof member);
  });
  event.barrier = bytes;
  return event;
}

}  // namespace

void EvidenceWriter::add(char kind, std::string_view bytes) {
  full_ = full_ || bytes.size() + kHead > kMostEvidence - bytes_.size();
  if (full_) return;
  const std::uint64_t size = bytes.size();
  bytes_ += kind;
  bytes_.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes_ += bytes;
}

std::string EvidenceWriter::take() {
  if (full_) {
    throw Error(
        fmt::format("what the lesson reads of its kernels is more than {:.3g} MiB, the "
                    "most that is checked of a run; choose smaller values",
                    static_cast<double>(kMostEvidence) / (1 << 20)));
  }
  return std::move(bytes_);
}

void EvidenceWriter::allocated(const void* memory) {
  add(kAllocated, {reinterpret_cast<const char*>(&memory), sizeof memory});
}

void EvidenceWriter::copied_out(const void* host, std::size_t bytes) {
  add(kCopiedOut, {static_cast<const char*>(host), bytes});
}

void EvidenceWriter::logged(const AsyncEvent& event) {
  std::string bytes;
  each_number(event, [&](const auto& member) {
    bytes.append(reinterpret_cast<const char*>(&member), sizeof member);
  });
  add(kLogged, bytes + event.barrier);
}

void EvidenceWriter::failed(std::string_view sentence) {
  add(kFailed, sentence);
}

std::string_view EvidenceReader::take(char kind) {
  if (rest_.size() < kHead || rest_[0] != kind) refuse();
  std::uint64_t size = 0;
  std::memcpy(&size, rest_.data() + 1, sizeof size);
  if (size > rest_.size() - kHead) refuse();
  const std::string_view bytes = rest_.substr(kHead, size);
  rest_.remove_prefix(kHead + size);
  return bytes;
}

void* EvidenceReader::allocated(std::size_t bytes) {
  catch_up(nullptr);
  const std::string_view text = take(kAllocated);
  std::uint64_t address = 0;
  if (text.size() != sizeof address) refuse();
  std::memcpy(&address, text.data(), sizeof address);
  if (address == 0 || address >= kEndOfAddresses || bytes > kEndOfAddresses - address) refuse();
  return reinterpret_cast<void*>(address);
}

void EvidenceReader::copied_out(void* host, std::size_t bytes) {
  const std::string_view text = take(kCopiedOut);
  if (text.size() != bytes) refuse();
  text.copy(static_cast<char*>(host), bytes);
}

void EvidenceReader::catch_up(std::vector<AsyncEvent>* log) {
  while (rest_.starts_with(kLogged)) {
    AsyncEvent event = event_of(take(kLogged));
    if (log != nullptr) log->push_back(std::move(event));
  }
  if (!rest_.starts_with(kFailed)) return;
  const std::string sentence(take(kFailed));
  if (sentence.empty() || sentence.front() == '\0') refuse();
  throw Error(sentence);
}

void EvidenceReader::require_end() {
  catch_up(nullptr);
  if (!rest_.empty()) refuse();
}

namespace emulated {
namespace {

class WitnessedDevice final : public EmulatedDevice {
 public:
  WitnessedDevice(std::span<const KernelEntry> table, const EmulationOptions& options,
                  EvidenceWriter& evidence)
      : EmulatedDevice(table, options), log_(options.log), evidence_(evidence) {}

  void* allocate(std::size_t bytes) override {
    void* memory = EmulatedDevice::allocate(bytes);
    evidence_.allocated(memory);
    return memory;
  }
  void copy_out(void* host, const void* device, std::size_t bytes) override {
    EmulatedDevice::copy_out(host, device, bytes);
    evidence_.copied_out(host, bytes);
  }
  void run(const Launch& launch, ThreadFunction thread, void* data) override {
    const std::size_t before = log_ == nullptr ? 0 : log_->size();
    const auto note_events = [&] {
      for (std::size_t i = before; log_ != nullptr && i < log_->size(); ++i) {
        evidence_.logged((*log_)[i]);
      }
    };
    try {
      EmulatedDevice::run(launch, thread, data);
      note_events();
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& error) {
      note_events();
      evidence_.failed(error.what());
      throw;
    }
  }
  std::unique_ptr<Device> like(const EmulationOptions& options) const override {
    return make_witnessed_device(table(), options, evidence_);
  }

 private:
  std::vector<AsyncEvent>* log_;
  EvidenceWriter& evidence_;
};

class ReplayingDevice final : public EmulatedDevice {
 public:
  ReplayingDevice(std::span<const KernelEntry> table, const EmulationOptions& options,
                  EvidenceReader& evidence)
      : EmulatedDevice(table, options), log_(options.log), evidence_(evidence) {}

  void* allocate(std::size_t bytes) override { return evidence_.allocated(bytes); }
  void release(void*) noexcept override {}
  void copy_in(void*, const void*, std::size_t) override {}
  // In a stream they are part of its log all the same.
  void copy_on_device(void* to, const void* from, std::size_t bytes) override {
    if (streams() != nullptr)
      streams()->submit({"copy", {{from, bytes, false}, {to, bytes, true}}, nullptr});
  }
  void fill(void* device, int, std::size_t bytes) override {
    if (streams() != nullptr) streams()->submit({"fill", {{device, bytes, true}}, nullptr});
  }
  void copy_out(void* host, const void*, std::size_t bytes) override {
    evidence_.catch_up(log_);
    evidence_.copied_out(host, bytes);
  }
  void run(const Launch&, ThreadFunction, void*) override { evidence_.catch_up(log_); }
  std::unique_ptr<Device> like(const EmulationOptions& options) const override {
    return make_replaying_device(table(), options, evidence_);
  }

 private:
  std::vector<AsyncEvent>* log_;
  EvidenceReader& evidence_;
};

}  // namespace
}  // namespace emulated

std::unique_ptr<Device> make_witnessed_device(std::span<const KernelEntry> table,
                                              const EmulationOptions& options,
                                              EvidenceWriter& evidence) {
  return std::make_unique<emulated::WitnessedDevice>(table, options, evidence);
}

std::unique_ptr<Device> make_replaying_device(std::span<const KernelEntry> table,
                                              const EmulationOptions& options,
                                              EvidenceReader& evidence) {
  return std::make_unique<emulated::ReplayingDevice>(table, options, evidence);
}

}  // namespace tilestep::simt
