#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/base/lab/names.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::lab {

/// The value of a knob: integer, real, toggle, choice (by its name) or text.
using KnobValue = std::variant<std::int64_t, double, bool, std::string>;

/// Knob values by knob id. A lesson fills in its defaults for absent knobs.
using Settings = std::map<std::string, KnobValue, std::less<>>;

enum class KnobKind { integer, real, toggle, choice, text };

/// A knob and the values of it with which another knob has an effect.
struct Together {
  std::string knob;
  std::vector<std::string> values;
};

/// The one definition of a knob: the controls, `--set`, JSON and the sweep tests all read it.
struct Knob {
  std::string id;     ///< snake_case, as in `--set id=value`
  std::string label;  ///< for people
  std::string unit;   ///< empty if none
  std::string help;   ///< one sentence
  KnobKind kind = KnobKind::integer;
  double min = 0, max = 0;           ///< integer and real
  bool logarithmic = false;          ///< integer and real: the slider's scale
  std::string zero_word;             ///< real: if set, 0 is allowed too, under this name
  std::vector<std::string> choices;  ///< choice
  std::map<std::string, std::string, std::less<>>
      retired;                               ///< former choices, and their replacements
  std::string form;                          ///< text: the allowed form in words, with an example
  bool (*fits)(std::string_view) = nullptr;  ///< text: whether a text has that form
  KnobValue initial;
  std::string group = "run";         ///< its subject: model, run, kernel or look
  std::vector<Together> works_with;  ///< has an effect only with one of these; empty: always

  /// Why it has no effect with (complete) `settings`: "works with pattern = aos or soa"; empty: it has one.
  std::string idle(const Settings& settings) const;
  /// The allowed values in words: "1–1024", "one of fp32, fp16, bf16", "true or false".
  std::string allowed() const;
  /// Throws Error naming the knob and the allowed values unless `value` is one of them. Integers
  /// and the zero word are accepted for real knobs, and numbers for choices spelled as numbers
  /// (4 for "4"). The result has the knob's own type.
  KnobValue checked(const KnobValue& value) const;
  /// `text` as written after `--set id=`, always in the C locale. Throws Error
  /// as `checked` does.
  KnobValue parsed(std::string_view text) const;
  /// `value` for people, also accepted by `--set`: "16", "0.5", or "off" where that is the word for 0.
  std::string text(const KnobValue& value) const;
};

/// `value` as `--set` accepts it.
std::string to_text(const KnobValue& value);

/// "small_format" in words: "Small format".
std::string label_of(std::string_view id);

/// A remedy that works, offered with an error: "Set component to 0".
struct Fix {
  std::string label;  ///< for a button
  Settings settings;  ///< to apply on top of the refused ones
};
/// "Set head dim to 4", or "Clear custom" where the value is an empty text.
Fix fix_to(std::string_view id, const KnobValue& value);

/// The Error for knobs that a lesson refuses, or that were not recorded.
class Refused : public Error {
 public:
  Refused(const std::string& sentence, std::optional<Fix> fix, ExitCode code = ExitCode::bad_input)
      : Error(sentence, code), fix_(std::move(fix)) {}
  const std::optional<Fix>& fix() const { return fix_; }

 private:
  std::optional<Fix> fix_;
};
/// The fix that `error` offers, if any.
std::optional<Fix> fix_of(const Error& error);

/// Throws the Error for a value that one knob allows and another forbids: "query is 9, but with
/// queries = 8 the allowed values are 0–7". With `id` set to `works` the lesson accepts the settings.
[[noreturn]] void refuse_with(std::string_view id, const KnobValue& value, std::string_view with,
                              std::string_view allowed, const KnobValue& works);

/// A former knob of a lesson, and its replacement.
struct RetiredKnob {
  std::string id;
  KnobValue stands_at;  ///< the lesson now behaves as it did at this value
  std::string instead;
};

/// The knobs of a lesson, in the order shown.
class Knobs {
 public:
  Knobs() = default;
  explicit Knobs(std::vector<Knob> knobs, std::vector<RetiredKnob> retired = {})
      : knobs_(std::move(knobs)), retired_(std::move(retired)) {}

  const std::vector<Knob>& all() const { return knobs_; }
  auto begin() const { return knobs_.begin(); }
  auto end() const { return knobs_.end(); }
  /// Throws Error naming all knob ids, or the replacement of a retired knob.
  const Knob& at(std::string_view id) const;
  Settings defaults() const;
  /// `settings` checked, with defaults for absent knobs. Throws Error for an unknown id or a value that
  /// is not allowed. A retired knob is accepted at the value the lesson now behaves as: old capsules and
  /// recordings can still be read.
  Settings completed(const Settings& settings) const;
  /// Sets one knob from "id=value". Throws Error.
  void set(Settings& settings, std::string_view assignment) const;

 private:
  bool stands_still(std::string_view id, const KnobValue& value) const;

  std::vector<Knob> knobs_;
  std::vector<RetiredKnob> retired_;
};

/// Binds the knobs of a lesson to the members of its `Params` struct, once:
///
///     static const KnobTable<Params> table = KnobTable<Params>()
///         .integer(&Params::keys, {"keys", "How many keys …"}, 1, 65536, true)
///         .choice(&Params::preset, {"preset", "Which …"})     // an enum with names_of
///         .toggle(&Params::skip_rescale, {"skip_rescale", "Skip the rescale", "", "Breaks …"})
///         .require([](const Params& p) { if (p.query >= p.queries) refuse_with(…); });
///
/// The defaults are those of `Params{}`.
template <class Params>
class KnobTable {
 public:
  /// Without a label and unit the label is the id in words: "small_format", "Small format".
  struct Words {
    Words(std::string its_id, std::string its_help)
        : id(std::move(its_id)), label(label_of(id)), help(std::move(its_help)) {}
    Words(std::string its_id, std::string its_label, std::string its_unit, std::string its_help)
        : id(std::move(its_id)),
          label(std::move(its_label)),
          unit(std::move(its_unit)),
          help(std::move(its_help)) {}
    std::string id, label, unit, help;
  };

  template <class Integer>
  KnobTable& integer(Integer Params::*member, Words words, std::int64_t min, std::int64_t max,
                     bool logarithmic = false) {
    Knob knob = make(std::move(words), KnobKind::integer);
    knob.min = static_cast<double>(min);
    knob.max = static_cast<double>(max);
    knob.logarithmic = logarithmic;
    return add(
        std::move(knob),
        [member](const Params& p) { return KnobValue(static_cast<std::int64_t>(p.*member)); },
        [member](Params& p, const KnobValue& v) {
          p.*member = static_cast<Integer>(std::get<std::int64_t>(v));
        });
  }

  KnobTable& real(double Params::*member, Words words, double min, double max,
                  bool logarithmic = false, std::string zero_word = {}) {
    Knob knob = make(std::move(words), KnobKind::real);
    knob.min = min;
    knob.max = max;
    knob.logarithmic = logarithmic;
    knob.zero_word = std::move(zero_word);
    return add(
        std::move(knob), [member](const Params& p) { return KnobValue(p.*member); },
        [member](Params& p, const KnobValue& v) { p.*member = std::get<double>(v); });
  }

  KnobTable& toggle(bool Params::*member, Words words) {
    return add(
        make(std::move(words), KnobKind::toggle),
        [member](const Params& p) { return KnobValue(p.*member); },
        [member](Params& p, const KnobValue& v) { p.*member = std::get<bool>(v); });
  }

  /// One of the values of an enum, by its name.
  template <Named Enum>
  KnobTable& choice(Enum Params::*member, Words words) {
    return choice(member, std::move(words), {kNamesOf<Enum>.begin(), kNamesOf<Enum>.end()});
  }

  /// One of `names`; the member numbers them from 0.
  template <class Number>
  KnobTable& choice(Number Params::*member, Words words, std::vector<std::string> names) {
    Knob knob = make(std::move(words), KnobKind::choice);
    knob.choices = names;
    return add(
        std::move(knob),
        [member, names](const Params& p) {
          return KnobValue(names.at(static_cast<std::size_t>(p.*member)));
        },
        [member, names](Params& p, const KnobValue& v) {
          const auto& name = std::get<std::string>(v);
          for (std::size_t i = 0; i < names.size(); ++i) {
            if (names[i] == name) p.*member = static_cast<Number>(i);
          }
        });
  }

  /// `form` describes the allowed texts in words, `fits` checks one.
  KnobTable& text(std::string Params::*member, Words words, std::string form,
                  bool (*fits)(std::string_view)) {
    Knob knob = make(std::move(words), KnobKind::text);
    knob.form = std::move(form);
    knob.fits = fits;
    return add(
        std::move(knob), [member](const Params& p) { return KnobValue(p.*member); },
        [member](Params& p, const KnobValue& v) { p.*member = std::get<std::string>(v); });
  }

  /// A former choice of the knob `id`: a request for it is refused with its replacement.
  KnobTable& retired(std::string_view id, std::string name, std::string instead) {
    for (Row& row : rows_) {
      if (row.knob.id == id) row.knob.retired.emplace(std::move(name), std::move(instead));
    }
    return *this;
  }

  /// The last knob has an effect only with these values of `knob`; several calls are alternatives.
  KnobTable& with(std::string knob, std::vector<std::string> values) {
    rows_.back().knob.works_with.push_back({std::move(knob), std::move(values)});
    return *this;
  }
  /// The group of the knobs that follow.
  KnobTable& group(std::string name) {
    group_ = std::move(name);
    return *this;
  }

  /// A former knob: setting it is refused with its replacement.
  KnobTable& retired_knob(std::string id, KnobValue stands_at, std::string instead) {
    retired_.push_back({std::move(id), std::move(stands_at), std::move(instead)});
    return *this;
  }

  /// The knob `seed` of lessons with random data.
  KnobTable& seed(std::string help = "Chooses the random numbers.") {
    return integer(&Params::seed, {"seed", std::move(help)}, 0, 2147483647);
  }

  /// A constraint between knobs: throws Error naming the knob and the values allowed with the
  /// other knobs as they are (`refuse_with`).
  KnobTable& require(void (*check)(const Params&)) {
    checks_.push_back(check);
    return *this;
  }

  Knobs knobs() const {
    std::vector<Knob> knobs;
    for (const Row& row : rows_) knobs.push_back(row.knob);
    return Knobs(std::move(knobs), retired_);
  }

  /// Checks `settings`, each knob and then the constraints between them, and fills in defaults.
  /// Throws Error naming the knob and the allowed values.
  Params params(const Settings& settings) const {
    const Settings all = knobs().completed(settings);
    Params params;
    for (const Row& row : rows_) row.set(params, all.at(row.knob.id));
    for (const auto check : checks_) check(params);
    return params;
  }

  Settings settings(const Params& params) const {
    Settings settings;
    for (const Row& row : rows_) settings[row.knob.id] = row.get(params);
    return settings;
  }

 private:
  using Get = std::function<KnobValue(const Params&)>;
  using Set = std::function<void(Params&, const KnobValue&)>;
  struct Row {
    Knob knob;
    Get get;
    Set set;
  };

  static Knob make(Words words, KnobKind kind) {
    Knob knob;
    knob.id = std::move(words.id);
    knob.label = std::move(words.label);
    knob.unit = std::move(words.unit);
    knob.help = std::move(words.help);
    knob.kind = kind;
    return knob;
  }

  KnobTable& add(Knob knob, Get get, Set set) {
    knob.initial = get(Params{});
    knob.group = group_;
    rows_.push_back({std::move(knob), std::move(get), std::move(set)});
    return *this;
  }

  std::vector<Row> rows_;
  std::string group_ = "run";
  std::vector<RetiredKnob> retired_;
  std::vector<void (*)(const Params&)> checks_;
};

}  // namespace tilestep::lab
