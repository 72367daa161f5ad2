#include "tests/lesson_contract/said.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

namespace tilestep::contract {

namespace {

using picture::Box, picture::Mark, picture::State, picture::Text;

/// Walks over all that a picture says.
struct Teller {
  std::vector<Said> all;
  bool wrong = false;

  void say(std::string where, const Text& text, bool is_wrong) {
    for (const picture::Run& run : text.full) {
      is_wrong = is_wrong || run.state == State::wrong;
    }
    wrong = wrong || is_wrong;
    if (std::string words = picture::plain(text.full); !words.empty()) {
      all.push_back({std::move(where), std::move(words), is_wrong});
    }
  }
  void items(const picture::Items& of) {
    for (int i = 0; i < of.count; ++i) {
      const bool is_wrong = of.state[static_cast<std::size_t>(i)] == State::wrong;
      wrong = wrong || is_wrong;
      if (static_cast<std::size_t>(i) < of.names.size() &&
          !of.names[static_cast<std::size_t>(i)].empty()) {
        all.push_back({to_text(of.key(i)), of.names[static_cast<std::size_t>(i)], is_wrong});
      }
    }
  }
  void mark(const Mark& one) {
    std::visit(
        [this](const auto& mark) {
          if constexpr (requires { mark.items; }) items(mark.items);
          if constexpr (requires { mark.stages; }) items(mark.stages);
          if constexpr (requires { mark.held; }) items(mark.held);
          const bool is_wrong = [&] {
            if constexpr (requires { mark.state; }) return mark.state == State::wrong;
            return false;
          }();
          if constexpr (requires {
                          mark.key;
                          mark.label;
                        })
            say(to_text(mark.key), mark.label, is_wrong);
          if constexpr (requires {
                          mark.end;
                          mark.ends_free;
                        })
            say(to_text(mark.key), mark.end, is_wrong);
          if constexpr (requires { mark.limit; })
            say(to_text(mark.limit.key), mark.limit.label, false);
          if constexpr (requires { mark.text; }) say(to_text(mark.key), mark.text, false);
          if constexpr (requires {
                          mark.rows;
                          mark.voice;
                        }) {
            for (std::size_t row = 0; row < mark.rows.size(); ++row) {
              say(to_text(mark.items.key(static_cast<int>(row))), mark.rows[row],
                  mark.items.state[row] == State::wrong);
            }
          }
          if constexpr (requires {
                          mark.rows;
                          mark.columns.size();
                        }) {
            for (const auto* texts : {&mark.rows, &mark.columns}) {
              for (const Text& text : *texts) say(std::string(mark.items.name.text()), text, false);
            }
          }
        },
        static_cast<const Mark::variant&>(one));
  }
  void box(const Box& one) {
    say(to_text(one.key), one.label, false);
    say(to_text(one.key), one.value, false);
    for (const Mark& each : one.marks) mark(each);
    for (const Box& each : one.boxes) box(each);
  }
};

Teller told(const scenes::Scene& scene, scenes::Cursor cursor) {
  Teller teller;
  const scenes::View view{cursor};
  const picture::Picture shown = scene.picture(scene.extent(), view);
  teller.say("headline", shown.headline, false);
  teller.box(shown.root);
  for (const scenes::Readout& one : scene.readouts(view)) {
    const bool is_wrong = one.look == scenes::Readout::wrong;
    teller.wrong = teller.wrong || is_wrong;
    teller.all.push_back(
        {"readout " + one.id, fmt::format("{}: {} {}", one.label, one.value, one.unit), is_wrong});
    // A detail that is a formula is the value's: "|1 − 0.998| / |0.998|".
    const std::string formula = one.detail.substr(0, one.detail.find(": "));
    teller.all.push_back(
        {"detail " + one.id, fmt::format("{} = {} {}", formula, one.value, one.unit), is_wrong});
  }
  return teller;
}

// ---- formulas -----------------------------------------------------------------------------------

/// All that is printed as one number does: 0.135 is 0.1345 … 0.1355.
struct Range {
  double low = 0, high = 0;
  double magnitude = 0;  ///< of the largest term
  double unit = 1;
  bool has_operator = false;
};
Range hull(std::initializer_list<double> ends, const Range& a, const Range& b, double magnitude) {
  return {std::min(ends), std::max(ends), magnitude, std::max(a.unit, b.unit), true};
}
Range plus(const Range& a, const Range& b, double sign) {
  return hull(
      {a.low + sign * b.low, a.low + sign * b.high, a.high + sign * b.low, a.high + sign * b.high},
      a, b, std::max(a.magnitude, b.magnitude));
}
Range times(const Range& a, const Range& b) {
  return hull({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high}, a, b,
              a.magnitude * b.magnitude);
}
Range inverse(const Range& a) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (a.low <= 0 && a.high >= 0) return {-infinity, infinity, infinity, a.unit, true};
  return {1 / a.high, 1 / a.low, 1 / a.low, a.unit, true};
}

constexpr std::pair<std::string_view, double> kUnits[] = {
    {"GB/s", 1e9},  {"KiB", 1024.0}, {"MiB", 1048576.0}, {"KB", 1e3},   {"MB", 1e6},
    {"GB", 1e9},    {"TB", 1e12},    {"ns", 1e-9},       {"µs", 1e-6},  {"ms", 1e-3},
    {"MFLOP", 1e6}, {"B", 1},        {"%", 1e-2},        {"FLOP/B", 1}, {"M", 1e6}};
constexpr std::string_view kRaised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};

/// Reads a whole text as a formula of numbers; nothing for one that has a name in it, or words.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::optional<Range> whole() {
    const std::optional<Range> read = sum();
    skip_spaces();
    return rest_.empty() ? read : std::nullopt;
  }

 private:
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }
  bool takes(std::string_view word) {
    skip_spaces();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::optional<Range> sum() {
    std::optional<Range> all = product();
    while (all) {
      const double sign = takes("+") ? 1 : takes("−") ? -1 : 0;
      if (sign == 0) break;
      const std::optional<Range> next = product();
      all = next ? std::optional(plus(*all, *next, sign)) : std::nullopt;
    }
    return all;
  }
  std::optional<Range> product() {
    std::optional<Range> all = factor();
    while (all) {
      const bool by = takes("×") || takes("·");
      if (!by && !takes("/")) break;
      const std::optional<Range> next = factor();
      all = next ? std::optional(times(*all, by ? *next : inverse(*next))) : std::nullopt;
    }
    return all;
  }
  std::optional<Range> factor() {
    if (takes("−")) {
      std::optional<Range> of = factor();
      if (of) of = Range{-of->high, -of->low, of->magnitude, of->unit, of->has_operator};
      return of;
    }
    if (takes("exp(")) {
      const std::optional<Range> of = sum();
      if (!of || !takes(")")) return std::nullopt;
      return Range{std::exp(of->low), std::exp(of->high), std::exp(of->high), 1, true};
    }
    if (takes("max(")) {
      const std::optional<Range> a = sum();
      if (!a || !takes(",")) return std::nullopt;
      const std::optional<Range> b = sum();
      if (!b || !takes(")")) return std::nullopt;
      return Range{std::max(a->low, b->low), std::max(a->high, b->high),
                   std::max(a->magnitude, b->magnitude), 1, true};
    }
    if (takes("(")) {
      const std::optional<Range> of = sum();
      return of && takes(")") ? of : std::nullopt;
    }
    if (takes("|")) {
      const std::optional<Range> of = sum();
      if (!of || !takes("|")) return std::nullopt;
      const double far = std::max(std::abs(of->low), std::abs(of->high));
      const bool through_zero = of->low <= 0 && of->high >= 0;
      const double near = through_zero ? 0 : std::min(std::abs(of->low), std::abs(of->high));
      return Range{near, far, of->magnitude, of->unit, of->has_operator};
    }
    if (takes("∞")) {
      const double infinity = std::numeric_limits<double>::infinity();
      return Range{infinity, infinity, infinity};
    }
    return number();
  }
  std::optional<Range> number() {
    skip_spaces();
    const std::size_t end = std::min(rest_.find_first_not_of("0123456789."), rest_.size());
    std::string digits(rest_.substr(0, end));
    if (digits.empty() || digits == ".") return std::nullopt;
    rest_.remove_prefix(end);
    if (rest_.starts_with("₂")) {  // all of its digits stand there
      rest_.remove_prefix(std::string_view("₂").size());
      const std::size_t point = digits.find('.');
      double value = 0, place = 1;
      for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i == point) continue;
        if (i > point) place /= 2;
        value = i > point ? value + place * (digits[i] - '0') : 2 * value + (digits[i] - '0');
      }
      return Range{value, value, value};
    }
    const std::size_t point = digits.find('.');
    double unit = point == digits.npos ? 1 : std::pow(10.0, -double(digits.size() - point - 1));
    double value = std::strtod(digits.c_str(), nullptr), off = point == digits.npos ? 0 : unit / 2;
    if (const auto power = raised()) {
      const double base = value;
      value = std::pow(base, *power);
      return Range{value, value, value};
    }
    if (rest_.starts_with("e")) {  // "1.4e−9"
      rest_.remove_prefix(1);
      const bool below = takes("−");
      const std::size_t length = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
      const double exponent = std::strtod(std::string(rest_.substr(0, length)).c_str(), nullptr);
      rest_.remove_prefix(length);
      const double by = std::pow(10.0, below ? -exponent : exponent);
      value *= by, off *= by;
    }
    Range read{value - off, value + off, value};
    skip_spaces();
    for (const auto& [name, factor] : kUnits) {
      if (!rest_.starts_with(name)) continue;
      const std::string_view behind = rest_.substr(name.size());
      if (!behind.empty() && std::isalpha(static_cast<unsigned char>(behind[0])) != 0) continue;
      rest_ = behind;
      // What is printed in a unit was rounded to it.
      const double spare = off == 0 ? 0.5 : off;
      const bool percent = name == "%";
      return Range{(value - spare) * factor, (value + spare) * factor, value * factor,
                   percent ? 1 : factor};
    }
    return read;
  }
  std::optional<int> raised() {
    bool below = false, any = false;
    int all = 0;
    if (rest_.starts_with("⁻")) {
      below = true;
      rest_.remove_prefix(std::string_view("⁻").size());
    }
    for (bool more = true; more;) {
      more = false;
      for (int digit = 0; digit < 10; ++digit) {
        if (!rest_.starts_with(kRaised[digit])) continue;
        rest_.remove_prefix(kRaised[digit].size());
        all = 10 * all + digit;
        any = more = true;
      }
    }
    if (!any) return std::nullopt;
    return below ? -all : all;
  }

  std::string_view rest_;
};

/// What stands between two signs: without words before it, "slot 8 + 3".
std::optional<Range> read(std::string_view text) {
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (std::optional<Range> all = Reader(text).whole()) return all;
    const std::size_t word = text.find(' ');
    const bool letters = std::all_of(
        text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(word, text.size())),
        [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
    if (word == text.npos || !letters) return std::nullopt;
    text.remove_prefix(word);
  }
}

/// Whether two sides can be equal, as far as they are printed.
bool holds(const Range& left, Range right, bool about) {
  if (right.unit != 1 &&
      left.unit == 1) {  // "3.3+7.2 = 10.5 ms": the unit is that of the terms too
    right = {right.low / right.unit, right.high / right.unit, right.magnitude / right.unit};
  }
  if (std::isnan(left.low + left.high + right.low + right.high)) return true;  // ∞ − ∞
  if (left.low == right.low && left.high == right.high) return true;
  const double spare = about ? 1.2e-2 * std::max(left.magnitude, right.magnitude)
                             : 1e-9 * std::max(std::abs(left.high), std::abs(left.low));
  return left.low - spare <= right.high && right.low <= left.high + spare;
}

/// The pieces of a text between any of `marks`.
std::vector<std::string_view> split(std::string_view text,
                                    std::initializer_list<std::string_view> marks) {
  std::vector<std::string_view> all;
  while (true) {
    std::size_t at = text.npos, length = 0;
    for (const std::string_view mark : marks) {
      if (const std::size_t found = text.find(mark); found < at) at = found, length = mark.size();
    }
    all.push_back(text.substr(0, at));
    if (at == text.npos) return all;
    text.remove_prefix(at + length);
  }
}

}  // namespace

std::vector<Said> said_at(const scenes::Scene& scene, scenes::Cursor cursor) {
  return told(scene, cursor).all;
}

bool shows_wrong(const scenes::Scene& scene, scenes::Cursor cursor) {
  return told(scene, cursor).wrong;
}

namespace {

/// What a text says of a thing, as far as it is a number.
struct Claim {
  std::string where, text;
  Range range;
};
using Claims = std::map<std::string, std::vector<Claim>>;

void claim(Claims& all, const std::string& thing, const std::string& where, std::string_view text) {
  const std::optional<Range> range = read(text);
  if (range && !range->has_operator) all[thing].push_back({where, std::string(text), *range});
}

/// The things that the items of a mark are about, where each is the only one of its thing.
void claim_items(Claims& all, const Box& box, const std::map<picture::Ref, std::string>& words) {
  for (const Mark& mark : box.marks) {
    const picture::Items* of = picture::items_of(mark);
    if (of == nullptr || of->names.empty()) continue;
    for (const auto& [kind, index] : of->about) {
      std::map<int, std::vector<int>> items;
      for (int i = 0; i < of->count; ++i) items[index[static_cast<std::size_t>(i)]].push_back(i);
      for (const auto& [number, which] : items) {
        const auto word = words.find({kind, number});
        if (which.size() != 1 || word == words.end()) continue;
        const auto item = static_cast<std::size_t>(which.front());
        if (item < of->names.size()) {
          claim(all, word->second, to_text(of->key(which.front())), of->names[item]);
        }
      }
    }
  }
  for (const Box& each : box.boxes) claim_items(all, each, words);
}

}  // namespace

std::vector<std::string> two_numbers_at(const scenes::Scene& scene, scenes::Cursor cursor) {
  const scenes::View view{cursor};
  std::map<picture::Ref, std::string> words;
  // "K-tile 3" is one of many things, and no number's name.
  const auto numbered = [](const std::string& name) {
    return name.find_first_of("0123456789") != name.npos;
  };
  for (const picture::Symbol& symbol : scene.symbols(view)) {
    if (!numbered(symbol.word)) words[symbol.about] = symbol.word;
  }
  Claims all;
  for (const Said& said : said_at(scene, cursor)) {
    if (said.where.starts_with("detail ")) continue;
    for (const std::string_view piece : split(said.text, {"   ", ": ", "; "})) {
      const std::size_t first = piece.find(" = "), last = piece.rfind(" = ");
      const std::string name(piece.substr(0, std::min(first, piece.size())));
      if (first == piece.npos || numbered(name)) continue;
      if (!name.empty()) claim(all, name, said.where, piece.substr(last + 3));
    }
  }
  for (const scenes::Readout& one : scene.readouts(view)) {
    const auto word = words.find(one.about);
    // "output O / ℓ" is about O and is not O.
    if (word != words.end() && one.unit.empty() && one.label.ends_with(" " + word->second)) {
      claim(all, word->second, "readout " + one.id, one.value);
    }
  }
  claim_items(all, scene.picture(scene.extent(), view).root, words);
  std::vector<std::string> faults;
  for (const auto& [thing, claims] : all) {
    for (const Claim& one : claims) {
      if (holds(claims.front().range, one.range, false)) continue;
      faults.push_back(fmt::format("{} is {} in {} and {} in {}", thing, claims.front().text,
                                   claims.front().where, one.text, one.where));
    }
  }
  return faults;
}

std::vector<std::string> false_formulas(const std::string& text) {
  std::vector<std::string> all;
  // Formulas do not go on across what divides a sentence.
  const std::vector<std::string_view> pieces = split(text, {"   (", "   ", ": ", "; ", ")  "});
  for (std::string_view piece : pieces) {
    bool about = false, other = false;  // what stands before is about this, or another number
    std::optional<Range> before;
    std::string_view rest = piece;
    while (true) {
      std::size_t at = rest.npos, length = 0;
      bool next_about = false, next_other = false;
      for (const std::string_view sign : {"=", "≈", "≠"}) {
        if (const std::size_t found = rest.find(sign); found < at) {
          at = found, length = sign.size(), next_about = sign == "≈", next_other = sign == "≠";
        }
      }
      const std::optional<Range> now = read(rest.substr(0, at));
      if (before && now && (before->has_operator || now->has_operator) &&
          holds(*before, *now, about) == other) {
        all.emplace_back(piece);
      }
      if (at == rest.npos) break;
      before = now;
      about = next_about;
      other = next_other;
      rest.remove_prefix(at + length);
    }
  }
  return all;
}

}  // namespace tilestep::contract
