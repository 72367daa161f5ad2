#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/simt/error.hpp"

/// Damages JSON in every way and sees what a reader makes of it: it must refuse with an Error, or
/// accept and mean what is written there. Anything else (another exception, a number that wrapped,
/// a member that was made up) is a complaint.
namespace tilestep::tests {

struct Damages {
  int tried = 0;
  int refused = 0;                      ///< with an Error
  std::vector<std::string> complaints;  ///< "'/tiles/3/kept' = -1: written back as 4294967295"
};

namespace damage_detail {

using nlohmann::json;

/// Of an array so many entries at each end are damaged; the same code reads the others.
inline constexpr std::size_t kEnds = 1;

class Walker {
 public:
  Walker(json good, const std::function<json(const json&)>& again,
         const std::vector<std::string>& unread)
      : json_(good), good_(std::move(good)), again_(again), unread_(unread) {}

  Damages walk() {
    // What is not damaged comes back as it is.
    if (again_(json_) != good_) found_.complaints.emplace_back("the undamaged JSON changes");
    visit(json::json_pointer());
    return std::move(found_);
  }

 private:
  void visit(const json::json_pointer& at) {
    const json value = json_.at(at);
    change_type(at, value);
    if (value.is_object()) {
      for (const auto& [name, member] : value.items()) {
        if (std::find(unread_.begin(), unread_.end(), name) != unread_.end()) continue;
        json less = value;
        less.erase(name);
        replace(at, less, "without '" + name + "'", Honest::stable);
        visit(at / name);
      }
    } else if (value.is_array()) {
      resize(at, value);
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (i < kEnds || i + kEnds >= value.size()) visit(at / i);
      }
    } else if (value.is_number()) {
      for (const json& number : {json(-1), json(1e300), json(-1e300), json(0.5),
                                 json(std::uint64_t{18446744073709551615u}),
                                 json(std::int64_t{-9223372036854775807}), json(4294967296)}) {
        replace(at, number, number.dump(), Honest::equal);
      }
    }
  }

  void change_type(const json::json_pointer& at, const json& value) {
    for (const json& other : {json(true), json("x"), json(3), json::array(), json::object()}) {
      if (other.type() == value.type() || (other.is_number() && value.is_number())) continue;
      replace(at, other, other.dump(), Honest::equal);
    }
    // Some readers take null for "absent".
    replace(at, nullptr, "null", Honest::stable);
  }

  void resize(const json::json_pointer& at, const json& value) {
    json longer = value;
    longer.push_back(value.empty() ? json(0) : value.back());
    replace(at, longer, "one entry more", Honest::equal);
    if (value.empty()) return;
    json shorter = value;
    shorter.erase(shorter.size() - 1);
    replace(at, shorter, "one entry less", Honest::equal);
    replace(at, json::array(), "no entries", Honest::equal);
  }

  /// What must hold of damage that is accepted: it is written as it was read, or, where something
  /// is absent, what is written for it is read the same.
  enum class Honest { equal, stable };

  void replace(const json::json_pointer& at, const json& value, const std::string& how,
               Honest honest) {
    json before = std::exchange(json_.at(at), value);
    ++found_.tried;
    try {
      json back = again_(json_);
      // A float has fewer digits than what it was read from.
      if (back.contains(at) && nearly(back.at(at), value)) back.at(at) = value;
      if (honest == Honest::equal && back != json_) {
        const bool there = back.contains(at);
        complain(at, how, "written back as " + (there ? brief(back.at(at)) : "nothing"));
      } else if (honest == Honest::stable && again_(back) != back) {
        complain(at, how, "reads differently once written");
      }
    } catch (const Error& error) {
      ++found_.refused;
      if (std::string(error.what()).empty()) complain(at, how, "refused without a word");
    } catch (const std::exception& error) {
      complain(at, how, std::string("not an Error but: ") + error.what());
    }
    json_.at(at) = std::move(before);
  }

  static bool nearly(const json& a, const json& b) {
    if (!a.is_number() || !b.is_number()) return false;
    return std::abs(a.get<double>() - b.get<double>()) <= 1e-6 * std::abs(b.get<double>());
  }

  void complain(const json::json_pointer& at, const std::string& how, const std::string& what) {
    found_.complaints.push_back("'" + at.to_string() + "' = " + how + ": " + what);
  }

  static std::string brief(const json& value) { return value.dump().substr(0, 60); }

  json json_;
  const json good_;
  const std::function<json(const json&)>& again_;
  const std::vector<std::string>& unread_;
  Damages found_;
};

}  // namespace damage_detail

/// Damages `good`: drops each member, changes each type, makes each array longer, shorter and
/// empty, puts numbers that are negative, huge, fractional or wider than 32 or 63 bits in place of
/// each number. `again` reads JSON and writes what it read:
///
///     const Damages found = damage(report.trace, [](const auto& json) {
///       return to_json(trace_from_json(json));
///     });
///     CHECK(found.complaints == std::vector<std::string>());
///     CHECK(found.refused > 100);
///
/// `unread` names members that are written for people and not read.
inline Damages damage(const nlohmann::json& good,
                      const std::function<nlohmann::json(const nlohmann::json&)>& again,
                      const std::vector<std::string>& unread = {"source"}) {
  return damage_detail::Walker(good, again, unread).walk();
}

}  // namespace tilestep::tests
