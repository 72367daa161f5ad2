#include "kernels/base/lab/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "kernels/base/lab/json.hpp"

namespace tilestep::lab {
namespace {

using nlohmann::json;

constexpr std::size_t kMostShown = 60;  ///< bytes of a value in a sentence

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "…";
  return text;
}

std::string joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

// ---- reports as objects with a name for everything ----------------------------------------------

bool is_of_this_run(const Measurement& m) {
  return m.provenance == Provenance::traced || m.provenance == Provenance::derived;
}

std::string key_of(const Measurement& m) {
  return m.variant.empty() ? m.id : m.id + "/" + m.variant;
}

/// The rows of a table that repeats the report's measurements, except those that are not compared.
bool repeats_unmeasured(const Report& report, const Table& table, std::size_t row,
                        const std::set<std::string>& skipped) {
  if (table.id != "readouts" || table.columns.empty()) return false;
  const std::string id = table.text(row, 0);
  const auto is_it = [&](const Measurement& m) { return m.id == id && is_of_this_run(m); };
  return skipped.contains("measurements." + id) ||
         std::none_of(report.measurements.begin(), report.measurements.end(), is_it);
}

/// A column: what it is called, and its cells.
json column_json(const json& column, const json& rows, std::size_t place,
                 const std::vector<std::size_t>& kept) {
  json cells = json::array();
  for (const std::size_t row : kept) cells.push_back(rows[row][place]);
  return {{"label", column["label"]}, {"unit", column["unit"]}, {"cells", std::move(cells)}};
}

/// A table by columns: {"title": …, "end": {"label": …, "unit": …, "cells": […]}}.
json table_json(const Report& report, const Table& table, const json& as_json,
                const std::set<std::string>& skipped, const Replay& replay) {
  std::vector<std::size_t> kept;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (!repeats_unmeasured(report, table, row, skipped)) kept.push_back(row);
  }
  const json& rows = as_json["rows"];
  for (const Replay::Order& order : replay.any_order) {
    if (order.path != "tables." + table.id) continue;
    const auto cells = [&](std::size_t row) {
      json key = json::array();
      for (const std::string& by : order.by) {
        for (std::size_t c = 0; c < table.columns.size(); ++c) {
          if (table.columns[c].id == by) key.push_back(rows[row][c]);
        }
      }
      return key;
    };
    std::stable_sort(kept.begin(), kept.end(),
                     [&](std::size_t a, std::size_t b) { return cells(a) < cells(b); });
  }
  json to = {{"title", table.title}};
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    to[table.columns[c].id] = column_json(as_json["columns"][c], rows, c, kept);
  }
  return to;
}

/// Sorts lists of the trace whose order depends on the machine: an object of columns.
void put_in_order(json& trace, const Replay& replay) {
  for (const Replay::Order& order : replay.any_order) {
    const std::string start = "trace.";
    if (!order.path.starts_with(start)) continue;
    const auto found = trace.find(order.path.substr(start.size()));
    if (found == trace.end() || !found->is_object() || found->empty()) continue;
    json& columns = *found;
    std::vector<std::size_t> places(columns.begin()->size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    const auto key = [&](std::size_t place) {
      json values = json::array();
      for (const std::string& by : order.by) values.push_back(columns.at(by).at(place));
      return values;
    };
    std::stable_sort(places.begin(), places.end(),
                     [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    for (json& column : columns) {
      json sorted = json::array();
      for (const std::size_t place : places) sorted.push_back(column.at(place));
      column = std::move(sorted);
    }
  }
}

json named_json(const Report& report, const Replay& replay) {
  std::set<std::string> skipped;
  for (const Replay::Part& part : replay.of_machine) skipped.insert(part.path);
  const json as_json = to_json(report);
  json to = {{"summary", report.summary}, {"trace", report.trace}};
  json& tables = to["tables"] = json::object();
  for (std::size_t t = 0; t < report.tables.size(); ++t) {
    tables[report.tables[t].id] =
        table_json(report, report.tables[t], as_json["tables"][t], skipped, replay);
  }
  json& measurements = to["measurements"] = json::object();
  for (const Measurement& m : report.measurements) {
    if (!is_of_this_run(m) || skipped.contains("measurements." + m.id)) continue;
    measurements[key_of(m)] = {{"value", number_to_json(m.value)},
                               {"unit", m.unit},
                               {"how", m.detail},
                               {"provenance", name_of(m.provenance)}};
  }
  // The error of the worst element, and which one it is, depend on rounding; that it is within tolerance does not.
  json& checks = to["checks"] = json::object();
  for (const Check& check : report.checks) {
    checks[check.id] = {{"ok", check.ok}};
  }
  put_in_order(to["trace"], replay);
  return to;
}

// ---- comparing ----------------------------------------------------------------------------------

/// Words about numbers, which belong to the build rather than the run.
bool is_wording(const std::string& ids) {
  if (ids.starts_with("tables.")) {
    return ids.ends_with(".title") || ids.ends_with(".label") || ids == "tables.readouts.how";
  }
  return ids == "summary" || (ids.starts_with("measurements.") && ids.ends_with(".how"));
}

class Comparer {
 public:
  Comparer(const Replay& replay, bool same_build, Comparison& to)
      : replay_(replay), same_build_(same_build), to_(to) {
    for (const auto* parts : {&replay.of_machine, &replay.retired}) {
      for (const Replay::Part& part : *parts) parts_.insert(part.path);
    }
  }

  /// The largest number of each list, by its path without list indices.
  void measure(const json& value, const std::string& ids) {
    if (value.is_number()) {
      double& largest = largest_[ids];
      largest = std::max(largest, std::abs(value.get<double>()));
    } else if (value.is_array()) {
      for (const json& item : value) measure(item, ids);
    } else if (value.is_object()) {
      for (const auto& [name, item] : value.items()) measure(item, below(ids, name));
    }
  }

  /// `ids` is the path without list indices, as the lesson's declarations use it.
  void compare(const json& a, const json& b, const std::string& ids, const std::string& path) {
    if (to_.difference) return;
    if (parts_.contains(ids)) return;
    if (a.is_object() && b.is_object()) return compare_members(a, b, ids, path);
    if (a.is_array() && b.is_array()) return compare_items(a, b, ids, path);
    ++to_.compared;
    if (a == b && a.type() == b.type()) return;
    if (a.is_number() && b.is_number()) return compare_numbers(a, b, ids, path);
    if (is_wording(ids)) return to_.other_words.push_back(path);
    differ(path, shown(a), shown(b));
  }

 private:
  /// The cells of a column stand for the column: "tables.tiles.end".
  static std::string below(const std::string& ids, const std::string& name) {
    return name == "cells" || name == "value" ? ids : joined(ids, name);
  }

  void compare_members(const json& a, const json& b, const std::string& ids,
                       const std::string& path) {
    for (const auto& [name, item] : a.items()) {
      const bool plain = name == "cells" || name == "value";
      const std::string there = plain ? path : joined(path, name);
      if (b.contains(name)) {
        compare(item, b.at(name), below(ids, name), there);
      } else if (!parts_.contains(below(ids, name))) {
        differ(there, shown(item), "nothing");
      }
    }
    for (const auto& [name, item] : b.items()) {
      if (a.contains(name) || parts_.contains(below(ids, name))) continue;
      if (same_build_) {
        differ(joined(path, name), "nothing", shown(item));
      } else {
        to_.not_recorded.push_back(joined(path, name));
      }
    }
  }

  void compare_items(const json& a, const json& b, const std::string& ids,
                     const std::string& path) {
    const bool more = !same_build_ && ids.starts_with("tables.") && a.size() < b.size();
    if (more) to_.not_recorded.push_back(fmt::format("{}[{}]", path, a.size()));
    if (a.size() != b.size() && !more) {
      return differ(path, fmt::format("{} entries", a.size()), fmt::format("{} entries", b.size()));
    }
    for (std::size_t i = 0; i < a.size() && !to_.difference; ++i) {
      compare(a[i], b[i], ids, fmt::format("{}[{}]", path, i));
    }
  }

  void compare_numbers(const json& a, const json& b, const std::string& ids,
                       const std::string& path) {
    const auto x = a.get<double>(), y = b.get<double>();
    if (x == y && a.is_number_float() == b.is_number_float()) return;
    if (a.is_number_integer() || b.is_number_integer()) return differ(path, shown(a), shown(b));
    // Tables and measurements hold all numbers as doubles; whole ones are counts.
    const bool rounded = ids.starts_with("tables."), any = rounded || !ids.starts_with("trace.");
    const bool counts = any && x == std::floor(x) && y == std::floor(y);
    double allowed = counts ? 0 : replay_.rounding * largest_[ids];
    if (rounded && allowed > 0) allowed += last_digit(a, b);
    const double apart = std::abs(x - y);
    if (apart > allowed) {
      return differ(
          path, shown(a), shown(b),
          allowed > 0 ? fmt::format("{:.2g} apart, at most {:.2g} allowed", apart, allowed) : "");
    }
    ++to_.close;
    if (apart / allowed > to_.farthest) {
      to_.farthest = apart / allowed;
      to_.farthest_path = path;
    }
  }

  /// One unit of the last digit of either number, plus a little for the sum of two decimals.
  static double last_digit(const json& a, const json& b) {
    int decimals = 0;
    for (const json* number : {&a, &b}) {
      const std::string text = number->dump();
      const std::size_t point = text.find('.');
      if (point == text.npos || text.find('e') != text.npos) continue;
      decimals = std::max(decimals, static_cast<int>(text.size() - point - 1));
    }
    constexpr int kShownDecimals = 6;  // more digits are not rounding for display
    return decimals > kShownDecimals ? 0 : 1.001 * std::pow(10.0, -decimals);
  }

  void differ(const std::string& path, std::string recorded, std::string replayed,
              std::string allowed = "") {
    if (to_.difference) return;
    to_.difference = {path, std::move(recorded), std::move(replayed), std::move(allowed)};
  }

  const Replay& replay_;
  const bool same_build_;
  Comparison& to_;
  std::set<std::string> parts_;
  std::map<std::string, double> largest_;
};

}  // namespace

Settings in_effect(const Knobs& knobs, Settings settings) {
  const Settings all = settings;
  for (const Knob& knob : knobs) {
    if (!knob.idle(all).empty()) settings[knob.id] = knob.initial;
  }
  return settings;
}

std::string Difference::sentence() const {
  return fmt::format("{}: recorded {}, replayed {}{}", path, recorded, replayed,
                     allowed.empty() ? "" : "; " + allowed);
}

Comparison compare(const Report& recorded, const Report& replayed, const Replay& replay,
                   bool same_build) {
  Comparison result;
  const json then = named_json(recorded, replay), now = named_json(replayed, replay);
  Comparer comparer(replay, same_build, result);
  comparer.measure(then, "");
  comparer.measure(now, "");
  comparer.compare(then, now, "", "");
  return result;
}

}  // namespace tilestep::lab
