#include "kernels/base/lab/json.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tilestep::lab {
namespace {

using nlohmann::json;

/// Beyond this a double cannot represent every whole number.
constexpr double kMostWholeDouble = 0x1p53;
/// From here on a number rounds to an infinite float: FLT_MAX and half a step.
constexpr double kPastFloat = 0x1.ffffffp127;

/// The value in a few words, whatever it is.
std::string brief(const json& value) {
  constexpr std::size_t kLongest = 40;
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_string() && value.get_ref<const std::string&>().size() > kLongest) {
    return fmt::format("a text of {} bytes", value.get_ref<const std::string&>().size());
  }
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// `value` as a whole number, if it is one and fits an int64. Some writers spell 4 as
/// 4.0.
std::optional<std::int64_t> whole_of(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(kMostWhole)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  if (!(std::abs(number) <= kMostWholeDouble) || number != std::trunc(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::string range_text(std::int64_t least, std::int64_t most) {
  if (least > most) return "no number at all";
  if (least == kLeastWhole && most == kMostWhole) return "a whole number of at most 63 bits";
  if (most == kMostWhole) return fmt::format("a whole number, {} or more", least);
  return fmt::format("{}{}{} (a whole number)", least, least < 0 ? " to " : "–", most);
}

}  // namespace

json number_to_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

json shortest_to_json(float value) {
  if (!std::isfinite(value)) return number_to_json(static_cast<double>(value));
  char digits[32];
  const auto written = std::to_chars(digits, digits + sizeof digits, value);
  double shortest = 0;
  std::from_chars(digits, written.ptr, shortest);
  return shortest;
}

Place Place::at(std::string_view member) const& {
  require_object();
  const auto found = json_->find(member);
  if (found == json_->end()) {
    const Place missing(this, *json_, member, kNoIndex);
    throw Error(fmt::format("{}: member '{}' is missing", where(), missing.way()));
  }
  return {this, *found, member, kNoIndex};
}

std::optional<Place> Place::find(std::string_view member) const& {
  require_object();
  const auto found = json_->find(member);
  if (found == json_->end() || found->is_null()) return std::nullopt;
  return Place(this, *found, member, kNoIndex);
}

Place Place::at(std::size_t index) const& {
  return {this, json_->at(index), {}, index};
}

std::size_t Place::size() const {
  if (!json_->is_array()) refuse("an array");
  return json_->size();
}

void Place::require_size(std::size_t count) const {
  if (size() == count) return;
  throw Error(fmt::format("{}: {} must have {} {}, but has {}", where(), subject(), count,
                          count == 1 ? "entry" : "entries", size()));
}

const std::string* Place::text_if_any() const {
  return json_->get_ptr<const std::string*>();
}

std::int64_t Place::whole_number(std::int64_t least, std::int64_t most) const {
  const auto number = whole_of(*json_);
  if (!number || *number < least || *number > most) refuse(range_text(least, most));
  return *number;
}

double Place::real_number() const {
  if (json_->is_number()) return json_->get<double>();
  if (*json_ == "inf") return std::numeric_limits<double>::infinity();
  if (*json_ == "-inf") return -std::numeric_limits<double>::infinity();
  if (*json_ == "nan") return std::numeric_limits<double>::quiet_NaN();
  refuse(R"(a number, "inf", "-inf" or "nan")");
}

float Place::float_number() const {
  const double number = real_number();
  if (std::isfinite(number) && std::abs(number) >= kPastFloat) {
    refuse(R"(what fits a float (up to ±3.4e38), "inf", "-inf" or "nan")");
  }
  return static_cast<float>(number);
}

bool Place::flag() const {
  if (!json_->is_boolean()) refuse("true or false");
  return json_->get<bool>();
}

std::string Place::text() const {
  if (!json_->is_string()) refuse("a text");
  return json_->get<std::string>();
}

void Place::require_object() const {
  if (!json_->is_object()) refuse("a JSON object");
}

void Place::refuse(std::string_view allowed) const {
  throw Error(fmt::format("{}: {} is {}; allowed: {}", where(), subject(), brief(*json_), allowed));
}

void Place::fail(std::string_view sentence) const {
  const std::string in = way();
  throw Error(fmt::format("{}: {}{}{}", where(), in, in.empty() ? "" : ": ", sentence));
}

std::string Place::subject() const {
  return from_ == nullptr ? "the document" : fmt::format("'{}'", way());
}

std::string_view Place::where() const {
  return from_ == nullptr ? name_ : from_->where();
}

std::string Place::way() const {
  if (from_ == nullptr) return {};
  const std::string before = from_->way();
  if (index_ != kNoIndex) return fmt::format("{}[{}]", before, index_);
  return before.empty() ? std::string(name_) : fmt::format("{}.{}", before, name_);
}

}  // namespace tilestep::lab
