#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "app/cli/interrupt.hpp"
#include "kernels/base/lab/lesson.hpp"

namespace tilestep::app {

/// Makes the three standard descriptors safe to write to: where one is closed, no file may take its
/// number, and a full disk or a reader that is gone is an error to report, not a signal that kills.
void prepare_output();

/// Writes to standard output. What goes wrong is said by flush_output.
void print(std::string_view text);
void print_line(std::string_view text);
/// A remark for the person, on standard error, after "tilestep: ".
void remark(std::string_view sentence);
/// Where `backend` is auto and emulation must stand in for a CUDA module that cannot be used: a remark
/// that says why.
void remark_refused_cuda(std::string_view backend);
/// Says why a report's timings may have met others' on its GPU, if they may.
void remark_refused_turn(const lab::Report& report);

/// JSON as every command prints it; bytes that are no UTF-8 are replaced.
std::string json_text(const nlohmann::json& json, int indent = 2);
/// Throws Error (unavailable) if standard output did not take everything (a full disk).
void flush_output();

/// Today's date in UTC: "2026-01-31".
std::string today();
/// "NVIDIA H200" → "nvidia-h200".
std::string slug(std::string_view name);

/// Progress on one line of a terminal on standard error; silent if that is no terminal. Ctrl-C gives
/// the run up.
class TerminalProgress final : public lab::Progress {
 public:
  TerminalProgress();
  ~TerminalProgress() override;
  void report(double fraction, std::string_view note) override;
  bool cancelled() const override { return Interrupt::pressed(); }

 private:
  Interrupt interrupt_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point shown_at_;
};

}  // namespace tilestep::app
