#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/known.hpp"

namespace tilestep::lab {

/// A number known beforehand, or one that follows from members read before: a whole number, a
/// pointer to a member (`&Trace::keys`) or any `[](const T&) { return …; }`.
template <class T>
class NumberOf {
 public:
  NumberOf(std::integral auto number)
      : of_([number](const T&) { return static_cast<std::int64_t>(number); }) {}
  template <std::invocable<const T&> Of>
  NumberOf(Of of)
      : of_([of](const T& object) { return static_cast<std::int64_t>(std::invoke(of, object)); }) {}
  std::int64_t operator()(const T& object) const { return of_(object); }

 private:
  std::function<std::int64_t(const T&)> of_;
};

/// For a list that may have any number of entries.
inline constexpr std::int64_t kAnyCount = -1;
/// Of counts, places and source lines in a trace, where nothing says it better.
inline constexpr int kMostCount = 1 << 30;

/// How a float is written: by the shortest decimal that names it, or as the double that it equals.
enum class Digits { shortest, all };

template <class T>
class Fields;

/// The fields of what a T holds: the same for all, or made for one T (whose sizes they depend on).
template <class T, class Child>
class FieldsFor {
 public:
  FieldsFor(Fields<Child> same)
      : of_([kept = std::make_shared<Fields<Child>>(std::move(same))](const T&) { return kept; }) {}
  template <std::invocable<const T&> Of>
  FieldsFor(Of of)
      : of_([of](const T& parent) { return std::make_shared<Fields<Child>>(of(parent)); }) {}
  std::shared_ptr<const Fields<Child>> operator()(const T& parent) const { return of_(parent); }

 private:
  std::function<std::shared_ptr<const Fields<Child>>(const T&)> of_;
};

/// The members of a struct, each named once for both directions of JSON:
///
///     lab::Fields<Trace> trace_fields() {
///       return lab::Fields<Trace>()
///           .whole("keys", &Trace::keys, 1, kMostKeys)
///           .name("access", &Trace::access)                  // an enum with names_of
///           .reals("scores", &Trace::scores, &Trace::keys)   // as many as there are keys
///           .list("requests", &Trace::requests, request_fields())
///           .constant("source", kSourcePath);
///     }
/// What a trace's members say of a step is known from then on and not before; what is said here of
/// no member is known from the start:
///
///           .reals("weights", &Trace::weights, &Trace::keys)
///           .known_each([](const Trace& t, std::size_t key) { return lab::When{t.tile_of(key) + 1, 2}; })
///
///     nlohmann::json json = trace_fields().to_json(trace);
///     Trace trace = trace_fields().from_json(json, "online-softmax trace");
///
/// Members are read in the order declared, so that a range or a size may follow from those before.
/// A member is given by its pointer, or by a generic lambda that answers a reference to it:
/// `[](auto& t) -> auto& { return t.format.mantissa_bits; }`. Reading throws Error, which names the
/// way to what is wrong and what is allowed, for anything that is missing, of another type, not
/// whole, out of range or of another size. Nothing wraps.
template <class T>
class Fields {
  template <class Access>
  using MemberOf = std::remove_cvref_t<std::invoke_result_t<const Access&, T&>>;
  template <class Access>
  using ItemOf = typename MemberOf<Access>::value_type;

 public:
  explicit Fields(Digits digits = Digits::shortest) : digits_(digits) {}

  /// A whole number from `least` to `most`, of any integral type.
  template <class Access>
  Fields& whole(std::string name, Access access, NumberOf<T> least = kLeastWhole,
                NumberOf<T> most = kMostWhole) {
    return add(std::move(name), access, [least, most](const Place& at, const T& object, auto& to) {
      to = at.whole<std::remove_reference_t<decltype(to)>>(least(object), most(object));
    });
  }

  /// A float, double or std::optional<double> (null: none).
  template <class Access>
  Fields& real(std::string name, Access access) {
    return add(std::move(name), access, [](const Place& at, const T&, auto& to) {
      if constexpr (std::is_floating_point_v<MemberOf<Access>>) {
        to = at.real<MemberOf<Access>>();
      } else {
        to = at.json().is_null() ? MemberOf<Access>() : at.real<double>();
      }
    });
  }

  template <class Access>
  Fields& flag(std::string name, Access access) {
    return add(std::move(name), access,
               [](const Place& at, const T&, bool& to) { to = at.flag(); });
  }

  template <class Access>
  Fields& text(std::string name, Access access) {
    return add(std::move(name), access,
               [](const Place& at, const T&, std::string& to) { to = at.text(); });
  }

  /// An enum, by the words of its names_of.
  template <class Access>
  Fields& name(std::string name, Access access) {
    return add(std::move(name), access,
               [](const Place& at, const T&, auto& to) { to = at.name<MemberOf<Access>>(); });
  }

  /// A std::vector of `count` whole numbers, or a std::array of them.
  template <class Access>
  Fields& wholes(std::string name, Access access, NumberOf<T> count,
                 NumberOf<T> least = kLeastWhole, NumberOf<T> most = kMostWhole) {
    return add(std::move(name), access,
               [count, least, most](const Place& at, const T& object, auto& to) {
                 const std::int64_t low = least(object), high = most(object);
                 resize(to, at, count(object));
                 for (std::size_t i = 0; i < to.size(); ++i) {
                   to[i] = at.at(i).template whole<ItemOf<Access>>(low, high);
                 }
               });
  }

  /// A std::vector of `count` floats or doubles.
  template <class Access>
  Fields& reals(std::string name, Access access, NumberOf<T> count) {
    return add(std::move(name), access, [count](const Place& at, const T& object, auto& to) {
      resize(to, at, count(object));
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = at.at(i).template real<ItemOf<Access>>();
    });
  }

  /// A struct, as an object of its own.
  template <class Access>
  Fields& object(std::string name, Access access, FieldsFor<T, MemberOf<Access>> fields) {
    custom(
        std::move(name),
        [access, fields](const T& from) {
          return fields(from)->to_json(std::invoke(access, from));
        },
        [access, fields](const Place& at, T& to) {
          fields(to)->read(at, std::invoke(access, to));
        });
    fields_.back().change = [access, fields](const T& from, nlohmann::json& to, const Change& by) {
      fields(from)->change(std::invoke(access, from), to, by);
    };
    return *this;
  }

  /// Some of this struct's own members, in an object of their own.
  Fields& group(std::string name, Fields fields) {
    return object(std::move(name), std::identity(), std::move(fields));
  }

  /// A struct whose members stand among this one's.
  template <class Access>
  Fields& inlined(Access access, const Fields<MemberOf<Access>>& fields) {
    for (const auto& field : fields.fields_) {
      Field here;
      here.name = field.name;
      here.optional = field.optional;
      here.from = field.from;
      if (field.change) {
        here.change = [access, change = field.change](const T& from, nlohmann::json& to,
                                                      const Change& by) {
          change(std::invoke(access, from), to, by);
        };
      }
      if (field.write) {
        here.write = [access, write = field.write](const T& from) {
          return write(std::invoke(access, from));
        };
      }
      if (field.read) {
        here.read = [access, read = field.read](const Place& at, T& to) {
          read(at, std::invoke(access, to));
        };
      }
      fields_.push_back(std::move(here));
    }
    return *this;
  }

  /// A std::vector of `count` structs, as an array of objects.
  template <class Access>
  Fields& list(std::string name, Access access, FieldsFor<T, ItemOf<Access>> fields,
               NumberOf<T> count = kAnyCount) {
    custom(
        std::move(name),
        [access, fields](const T& from) {
          const auto each = fields(from);
          nlohmann::json to = nlohmann::json::array();
          for (const auto& item : std::invoke(access, from)) to.push_back(each->to_json(item));
          return to;
        },
        [access, fields, count](const Place& at, T& to) {
          const auto each = fields(to);
          auto& items = std::invoke(access, to);
          resize(items, at, count(to));
          for (std::size_t i = 0; i < items.size(); ++i) each->read(at.at(i), items[i]);
        });
    fields_.back().change = [access, fields](const T& from, nlohmann::json& to, const Change& by) {
      const auto each = fields(from);
      const auto& items = std::invoke(access, from);
      for (std::size_t i = 0; i < items.size(); ++i) each->change(items[i], to[i], by);
    };
    fields_.back().moments = [fields](const T& from) { return fields(from)->moments_of_members(); };
    return *this;
  }

  /// The same as an object of columns: {"begin": [0, 4, 8], "end": [3, 7, 9]}.
  template <class Access>
  Fields& columns(std::string name, Access access, FieldsFor<T, ItemOf<Access>> fields,
                  NumberOf<T> count) {
    custom(
        std::move(name),
        [access, fields](const T& from) {
          return fields(from)->columns_to_json(std::invoke(access, from));
        },
        [access, fields, count](const Place& at, T& to) {
          fields(to)->read_columns(at, std::invoke(access, to), count(to));
        });
    fields_.back().moments = [fields](const T& from) { return fields(from)->moments_of_members(); };
    return *this;
  }

  /// Written for people and not read back: the path of a source file.
  Fields& constant(std::string name, std::string_view text) {
    return custom(
        std::move(name), [text](const T&) { return text; }, nullptr);
  }

  /// Anything else. `read` is given the member's place.
  Fields& custom(std::string name, std::function<nlohmann::json(const T&)> write,
                 std::function<void(const Place&, T&)> read) {
    fields_.push_back({std::move(name), std::move(write), std::move(read)});
    fields_.back().from = here_;
    return *this;
  }

  /// A rule that the members so far must keep: `broken` answers with a sentence on what is wrong,
  /// or with none.
  Fields& check(std::function<std::string(const T&)> broken) {
    return custom({}, nullptr, [broken = std::move(broken)](const Place& at, T& object) {
      if (const std::string sentence = broken(object); !sentence.empty()) at.fail(sentence);
    });
  }

  /// Sets what follows from the members so far and is not in JSON.
  Fields& derive(std::function<void(T&)> set) {
    return custom({}, nullptr, [set = std::move(set)](const Place&, T& object) { set(object); });
  }

  /// A std::array of the source lines of a kernel's steps, as `now(object)` numbers them in this
  /// build: a recording may number another source.
  template <class Steps, class Now>
  Fields& lines(std::string name, Steps T::*member, Now now) {
    wholes(std::move(name), member, std::tuple_size_v<Steps>, 0, kMostCount);
    return derive([member, now](T& object) { object.*member = now(object); });
  }

  /// The last member may be absent or null, and is then what it is in T{}.
  Fields& optional() {
    fields_.back().optional = true;
    return *this;
  }
  /// The same, and it is not written where it equals `nothing`, which it must do in T{}: documents from before there
  /// was such a member come back as they are.
  Fields& left_out_for(const nlohmann::json& nothing) {
    fields_.back().write = [write = fields_.back().write, nothing](const T& from) {
      nlohmann::json to = write(from);
      return to == nothing ? nlohmann::json(nlohmann::json::value_t::discarded) : to;
    };
    return optional();
  }
  /// The same, and it is written as null where it equals `nothing`, which it must do in T{}.
  Fields& null_for(const nlohmann::json& nothing) {
    fields_.back().write = [write = fields_.back().write, nothing](const T& from) {
      nlohmann::json to = write(from);
      return to == nothing ? nlohmann::json() : to;
    };
    return optional();
  }

  /// The last member is known from `when` on. `other` gives another value that it could have had, as
  /// JSON; without it a number gets another size, a flag is turned.
  Fields& known(std::function<When(const T&)> when,
                std::function<nlohmann::json(const T&, const Change&)> other = nullptr) {
    fields_.back().change = [when, other](const T& from, nlohmann::json& to, const Change& by) {
      if (when(from) > by.now) to = other ? other(from, by) : by.other(to);
    };
    return *this;
  }
  /// Each entry of the last member, a list, is known from `when(object, place in the list)` on.
  Fields& known_each(std::function<When(const T&, std::size_t)> when) {
    Field& field = fields_.back();
    field.change = [when, inside = field.change, moments = field.moments](
                       const T& from, nlohmann::json& to, const Change& by) {
      if (inside) inside(from, to, by);
      by.mix(to, moments ? moments(from) : Moments(),
             [&](std::size_t place) { return when(from, place); });
    };
    return *this;
  }
  /// The last member, of what is an entry of such a list, is known from a phase of its entry's step on
  /// ({0, phase}), from a step of its own on, or kAhead.
  Fields& from(When when) {
    fields_.back().from = when;
    return *this;
  }
  /// The same for all members that follow, up to the next of these.
  Fields& from_here(When when) {
    here_ = when;
    return *this;
  }

  /// Gives `to`, the JSON of `from`, another future: what is not known at `by.now` is something else
  /// that it could have been, within its range and of its size.
  void change(const T& from, nlohmann::json& to, const Change& by) const {
    for (const Field& field : fields_) {
      if (field.change) field.change(from, to[field.name], by);
    }
  }
  Moments moments_of_members() const {
    Moments moments;
    for (const Field& field : fields_) {
      if (!field.name.empty()) moments[field.from].push_back(field.name);
    }
    return moments;
  }

  nlohmann::json to_json(const T& from) const {
    nlohmann::json to = nlohmann::json::object();
    for (const Field& field : fields_) {
      if (!field.write) continue;
      nlohmann::json value = field.write(from);
      if (!value.is_discarded()) to[field.name] = std::move(value);
    }
    return to;
  }

  /// Throws Error; `where` is what it calls the document.
  T from_json(const nlohmann::json& json, std::string_view where) const {
    T object{};
    read(Place(json, where), object);
    return object;
  }

  void read(const Place& from, T& to) const {
    for (const Field& field : fields_) {
      if (!field.read) continue;
      if (field.name.empty()) {
        field.read(from, to);
      } else if (!field.optional) {
        field.read(from.at(field.name), to);
      } else if (const auto at = from.find(field.name)) {
        field.read(*at, to);
      }
    }
  }

  nlohmann::json columns_to_json(const std::vector<T>& items) const {
    nlohmann::json to = nlohmann::json::object();
    for (const Field& field : fields_) {
      if (!field.write) continue;
      nlohmann::json& column = to[field.name] = nlohmann::json::array();
      for (const T& item : items) column.push_back(field.write(item));
    }
    return to;
  }

  void read_columns(const Place& from, std::vector<T>& to, std::int64_t count) const {
    for (const Field& field : fields_) {
      if (field.name.empty()) {
        for (T& item : to) field.read(from, item);
        continue;
      }
      const Place column = from.at(field.name);
      resize(to, column, count);
      count = static_cast<std::int64_t>(to.size());  // where any will do, the first column's
      for (std::size_t i = 0; i < to.size(); ++i) field.read(column.at(i), to[i]);
    }
  }

 private:
  template <class>
  friend class Fields;

  /// All that is known of one member.
  struct Field {
    std::string name;  ///< empty: no member, but a rule
    std::function<nlohmann::json(const T&)> write;
    std::function<void(const Place&, T&)> read;  ///< none: a constant
    bool optional = false;
    When from = {};  ///< of an entry: when it is known
    std::function<void(const T&, nlohmann::json&, const Change&)> change = nullptr;
    std::function<Moments(const T&)> moments = nullptr;  ///< of its entries' members
  };

  /// A member that is written by its type, and read by `set(place, object so far, member)`.
  template <class Access, class Set>
  Fields& add(std::string name, Access access, Set set) {
    return custom(
        std::move(name),
        [access, digits = digits_](const T& from) {
          return value_to_json(std::invoke(access, from), digits);
        },
        [access, set](const Place& at, T& to) { set(at, to, std::invoke(access, to)); });
  }

  template <class Value>
  static nlohmann::json value_to_json(const Value& value, Digits digits) {
    if constexpr (std::is_enum_v<Value>) {
      return name_of(value);
    } else if constexpr (std::is_same_v<Value, float>) {
      return digits == Digits::shortest ? shortest_to_json(value)
                                        : number_to_json(static_cast<double>(value));
    } else if constexpr (std::is_same_v<Value, double>) {
      return number_to_json(value);
    } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
      return value ? number_to_json(*value) : nlohmann::json();
    } else if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>) {
      return value;
    } else {
      nlohmann::json array = nlohmann::json::array();
      array.template get_ref<nlohmann::json::array_t&>().reserve(value.size());
      for (const auto& item : value) array.push_back(value_to_json(item, digits));
      return array;
    }
  }

  /// Makes room for what is at `from`, once it is known to have `count` entries.
  template <class Items>
  static void resize(Items& items, const Place& from, std::int64_t count) {
    if (count != kAnyCount) from.require_size(static_cast<std::size_t>(count));
    if constexpr (requires { items.resize(from.size()); }) {
      items.resize(from.size());
    } else {
      from.require_size(items.size());
    }
  }

  Digits digits_;
  When here_ = {};  ///< from when on the next members are known
  std::vector<Field> fields_;
};

}  // namespace tilestep::lab

/// Ends a lesson's trace.cpp: the JSON of its Trace, both ways, by the Fields<Trace> that `fields`
/// is. Error texts call it `where`.
#define TILESTEP_TRACE_JSON(where, fields)                                                   \
  static const tilestep::lab::Fields<Trace>& kept_fields() {                                 \
    static const tilestep::lab::Fields<Trace> kFields = fields;                              \
    return kFields;                                                                          \
  }                                                                                          \
  nlohmann::json to_json(const Trace& trace) {                                               \
    return kept_fields().to_json(trace);                                                     \
  }                                                                                          \
  Trace trace_from_json(const nlohmann::json& json) {                                        \
    return kept_fields().from_json(json, where);                                             \
  }                                                                                          \
  nlohmann::json trace_again(const nlohmann::json& json) {                                   \
    return to_json(trace_from_json(json));                                                   \
  }                                                                                          \
  nlohmann::json other_future(const nlohmann::json& json, const tilestep::lab::Change& by) { \
    const Trace trace = trace_from_json(json);                                               \
    nlohmann::json to = to_json(trace);                                                      \
    kept_fields().change(trace, to, by);                                                     \
    return to;                                                                               \
  }
