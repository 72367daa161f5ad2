#include "tests/fuzz/fuzz.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include "kernels/answer.hpp"
#include "kernels/base/lab/json.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::fuzz {
namespace {

using nlohmann::json;

constexpr std::size_t kDeepest = 12;
constexpr std::uint8_t kDamage = 0x10;  ///< first bytes below this ask for damage

std::vector<std::pair<std::string_view, Read>>& targets() {
  static std::vector<std::pair<std::string_view, Read>> all;
  return all;
}

Read chosen() {
  const char* name = std::getenv("TILESTEP_FUZZ");
  for (const auto& [each, read] : targets()) {
    if (name != nullptr && each == name) return read;
  }
  std::fprintf(stderr, "TILESTEP_FUZZ is '%s'; allowed:", name == nullptr ? "" : name);
  for (const auto& [each, read] : targets()) std::fprintf(stderr, " %s", each.data());
  std::fprintf(stderr, "\n");
  std::exit(static_cast<int>(ExitCode::bad_input));
}

/// The next `choices` lead from the root down; each may stop there.
json& place_in(json& root, Choices& choices) {
  json* at = &root;
  for (std::size_t depth = 0; depth < kDeepest && at->is_structured() && !at->empty(); ++depth) {
    // Wide arrays need two bytes; what is left over stops here.
    std::size_t chosen = choices.byte();
    if (at->size() >= 200) chosen |= static_cast<std::size_t>(choices.byte()) << 8;
    chosen %= at->size() + 1;
    if (chosen == at->size()) break;
    at = &*std::next(at->begin(), static_cast<std::ptrdiff_t>(chosen));
  }
  return *at;
}

json number_from(Choices& choices) {
  static const std::array<json, 16> kEdges = {json(0),
                                              json(-1),
                                              json(1),
                                              json(2),
                                              json(127),
                                              json(1 << 16),
                                              json(2147483647),
                                              json(2147483648LL),
                                              json(-2147483648LL),
                                              json(std::numeric_limits<std::int64_t>::max()),
                                              json(std::numeric_limits<std::uint64_t>::max()),
                                              json(0.5),
                                              json(1e308),
                                              json("nan"),
                                              json("inf"),
                                              json("-inf")};
  return kEdges[choices.below(kEdges.size())];
}

void damage(json& root, Choices& choices) {
  json& at = place_in(root, choices);
  enum { number, small, up, down, text, flag, nothing, list, object, gone, twice, half, other };
  switch (choices.below(other + 1)) {
    case number:
      at = number_from(choices);
      break;
    case small:
      at = static_cast<int>(choices.byte()) - 64;
      break;
    case up:
      if (at.is_number_integer()) at = at.get<std::int64_t>() / 2 + 1 + choices.byte();
      break;
    case down:
      if (at.is_number()) at = -at.get<double>();
      break;
    case text:
      at = std::string(choices.rest().substr(0, choices.below(16)));
      break;
    case flag:
      at = choices.below(2) == 1;
      break;
    case nothing:
      at = nullptr;
      break;
    case list:
      at = json::array();
      break;
    case object:
      at = json::object();
      break;
    case gone:
      if (at.is_structured() && !at.empty()) {
        at.erase(std::next(at.begin(), static_cast<std::ptrdiff_t>(choices.below(at.size()))));
      }
      break;
    case twice:
      if (at.is_array() && !at.empty()) at.push_back(json(at[choices.below(at.size())]));
      break;
    case half:
      if (at.is_array())
        at.erase(at.begin() + static_cast<std::ptrdiff_t>(at.size() / 2), at.end());
      break;
    case other: {
      json copy = place_in(root, choices);
      if (copy.size() < 100) place_in(root, choices) = std::move(copy);
      break;
    }
  }
}

}  // namespace

Target::Target(const char* name, Read read) {
  targets().emplace_back(name, read);
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

std::uint8_t Choices::byte() {
  if (bytes_.empty()) return 0;
  const auto first = static_cast<std::uint8_t>(bytes_.front());
  bytes_.remove_prefix(1);
  return first;
}

json damaged(json good, Choices choices) {
  constexpr int kMost = 32;
  for (int n = 0; n < kMost && !choices.empty(); ++n) damage(good, choices);
  return good;
}

std::string text_of(std::string_view bytes, const std::vector<json>& good) {
  if (bytes.empty() || static_cast<std::uint8_t>(bytes[0]) >= kDamage) return std::string(bytes);
  const json& chosen = good[static_cast<std::uint8_t>(bytes[0]) % good.size()];
  return damaged(chosen, Choices(bytes.substr(1)))
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

const std::vector<lab::Report>& short_runs() {
  static const std::vector<lab::Report> all = [] {
    // What makes a run short, where the lesson has such a knob.
    const lab::Settings small = {{"keys", std::int64_t{8}},   {"tokens", std::int64_t{8}},
                                 {"m", std::int64_t{16}},     {"n", std::int64_t{16}},
                                 {"k", std::int64_t{16}},     {"elements", std::int64_t{64}},
                                 {"terms", std::int64_t{16}}, {"accesses", std::int64_t{32}}};
    std::vector<lab::Report> runs;
    lab::NoProgress unwatched;
    for (const lab::Lesson* lesson : lessons()) {
      lab::Request request{lesson->info().id, {}, lab::Request::Action::run, "emulated"};
      for (const auto& [id, value] : small) {
        lab::Request shorter = request;
        shorter.params[id] = value;
        try {
          answer(shorter, unwatched);
          request = shorter;
        } catch (const Error&) {  // it has no such knob, or not this value
        }
      }
      runs.push_back(answer(request, unwatched));
    }
    return runs;
  }();
  return all;
}

const std::vector<json>& short_run_texts() {
  static const std::vector<json> all = [] {
    std::vector<json> texts;
    for (const lab::Report& run : short_runs()) texts.push_back(lab::to_json(run));
    return texts;
  }();
  return all;
}

}  // namespace tilestep::fuzz

extern "C" {

/// What UndefinedBehaviorSanitizer says would else be printed and forgotten.
const char* __ubsan_default_options() {
  return "halt_on_error=1:print_stacktrace=1";
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tilestep::fuzz::Read read = tilestep::fuzz::chosen();
  try {
    read({reinterpret_cast<const char*>(data), size});
  } catch (const tilestep::Error& error) {
    tilestep::fuzz::require(*error.what() != '\0', "an Error has a sentence");
  }
  return 0;
}

/// What is made once (runs, fonts) is made before the clock of the first input starts.
int LLVMFuzzerInitialize(int*, char***) {
  const std::uint8_t first = 0;
  return LLVMFuzzerTestOneInput(&first, 1);
}
}
