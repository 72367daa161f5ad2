#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/lesson.hpp"

/// What reads data from outside, each as a target of libFuzzer. A target may throw Error; whatever else it
/// throws, and whatever a sanitizer sees, is a find.
namespace tilestep::fuzz {

using Read = void (*)(std::string_view bytes);

/// Names a target: TILESTEP_FUZZ in the environment chooses it.
class Target {
 public:
  Target(const char* name, Read read);
};

/// Ends the program unless `holds`: what was read is not what was written.
void require(bool holds, const char* what);

/// Bytes that choose; once they are used up they choose the first of everything.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::uint8_t byte();
  std::size_t below(std::size_t count) { return count == 0 ? 0 : byte() % count; }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

/// `good` with members gone, numbers of other sizes and signs, other types, longer and shorter arrays in
/// its place: as `choices` say until they are used up. A text of this form is what a mutation of bytes
/// would hardly reach.
nlohmann::json damaged(nlohmann::json good, Choices choices);

/// JSON as `bytes` have it: damage to one of `good` where the first byte is below 0x10, which says to
/// which one; else they are the text itself.
std::string text_of(std::string_view bytes, const std::vector<nlohmann::json>& good);

/// A run of each lesson, short, made once.
const std::vector<lab::Report>& short_runs();
/// The same as JSON.
const std::vector<nlohmann::json>& short_run_texts();

/// Shows a report as the window would, at a few places: pictures, words, numbers, questions.
void show(const lab::Report& report);
/// Shows a bench in the Measured tab.
void show_bench(const lab::Report& bench);

}  // namespace tilestep::fuzz
