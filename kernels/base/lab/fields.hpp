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
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/known.hpp"

namespace tilestep::lab {

/// For a list that may have any number of entries.
inline constexpr std::int64_t kAnyCount = -1;
/// Of counts, places and source lines in a trace, where nothing says it better.
inline constexpr int kMostCount = 1 << 30;

/// How a float is written: by the shortest decimal that names it, or as the double that it equals.
enum class Digits { shortest, all };

/// The fields of a struct with its type erased, so that this code is compiled once, not once per struct. Objects are
/// passed by address; an object that is only read is never written.
class AnyFields {
 public:
  using Object = const void*;
  using Number = std::function<std::int64_t(Object)>;
  using Locate = std::function<void*(Object)>;  ///< a member of an object
  using FieldsOf = std::function<std::shared_ptr<const AnyFields>(Object)>;

  void change(Object from, nlohmann::json& to, const Change& by) const;
  Moments moments_of_members() const;
  nlohmann::json write(Object from) const;
  void read_object(const Place& from, void* to) const;

 protected:
  /// How a std::vector of structs is gone through.
  struct Items {
    std::size_t (*size)(Object list);
    void (*resize)(void* list, std::size_t count);
    void* (*at)(Object list, std::size_t index);
  };
  /// All that is known of one member.
  struct Field {
    std::string name;  ///< empty: no member, but a rule
    std::function<nlohmann::json(Object)> write;
    std::function<void(const Place&, void*)> read;  ///< none: a constant
    bool optional = false;
    When from = {};  ///< of an entry: when it is known
    std::function<void(Object, nlohmann::json&, const Change&)> change = nullptr;
    std::function<Moments(Object)> moments = nullptr;  ///< of its entries' members
  };
  /// Reads a member of type V, of an object whose members before are read.
  template <class V>
  using Read = std::function<void(const Place&, Object, V&)>;

  explicit AnyFields(Digits digits) : digits_(digits) {}

  void add(std::string name, std::function<nlohmann::json(Object)> write,
           std::function<void(const Place&, void*)> read);
  template <class V>
  void add_value(std::string name, Locate locate, Read<V> read) {
    add(
        std::move(name),
        [locate, digits = digits_](Object from) {
          return value_to_json(*static_cast<const V*>(locate(from)), digits);
        },
        [locate, read](const Place& at, void* to) { read(at, to, *static_cast<V*>(locate(to))); });
  }
  template <class V>
  void add_whole(std::string name, Locate locate, Number least, Number most) {
    add_value<V>(std::move(name), std::move(locate),
                 [least, most](const Place& at, Object object, V& to) {
                   to = at.whole<V>(least(object), most(object));
                 });
  }
  template <class V>
  void add_real(std::string name, Locate locate) {
    add_value<V>(std::move(name), std::move(locate), [](const Place& at, Object, V& to) {
      if constexpr (std::is_floating_point_v<V>) {
        to = at.real<V>();
      } else {
        to = at.json().is_null() ? V() : at.real<double>();
      }
    });
  }
  template <class V>
  void add_name(std::string name, Locate locate) {
    add_value<V>(std::move(name), std::move(locate),
                 [](const Place& at, Object, V& to) { to = at.name<V>(); });
  }
  void add_flag(std::string name, Locate locate);
  void add_text(std::string name, Locate locate);
  template <class V>
  void add_wholes(std::string name, Locate locate, Number count, Number least, Number most) {
    add_value<V>(std::move(name), std::move(locate),
                 [count, least, most](const Place& at, Object object, V& to) {
                   const std::int64_t low = least(object), high = most(object);
                   resize(to, at, count(object));
                   for (std::size_t i = 0; i < to.size(); ++i) {
                     to[i] = at.at(i).whole<typename V::value_type>(low, high);
                   }
                 });
  }
  template <class V>
  void add_reals(std::string name, Locate locate, Number count) {
    add_value<V>(std::move(name), std::move(locate),
                 [count](const Place& at, Object object, V& to) {
                   resize(to, at, count(object));
                   for (std::size_t i = 0; i < to.size(); ++i) {
                     to[i] = at.at(i).real<typename V::value_type>();
                   }
                 });
  }
  void add_object(std::string name, Locate locate, FieldsOf fields);
  void add_inlined(Locate locate, const AnyFields& fields);
  void add_list(std::string name, Locate locate, Items items, FieldsOf fields, Number count);
  void add_columns(std::string name, Locate locate, Items items, FieldsOf fields, Number count);
  void leave_out(const nlohmann::json& nothing, nlohmann::json instead);
  void know(std::function<When(Object)> when,
            std::function<nlohmann::json(Object, const Change&)> other);
  void know_each(std::function<When(Object, std::size_t)> when);

  Field& last() { return fields_.back(); }
  void from_here_on(When when) { here_ = when; }

 private:
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
  template <class List>
  static void resize(List& list, const Place& from, std::int64_t count) {
    if (count != kAnyCount) from.require_size(static_cast<std::size_t>(count));
    if constexpr (requires { list.resize(from.size()); }) {
      list.resize(from.size());
    } else {
      from.require_size(list.size());
    }
  }

  nlohmann::json columns_to_json(Object list, const Items& items) const;
  void read_columns(const Place& from, void* list, const Items& items, std::int64_t count) const;

  Digits digits_;
  When here_ = {};  ///< from when on the next members are known
  std::vector<Field> fields_;
};

// The types that nearly all members have.
extern template void AnyFields::add_whole<int>(std::string, Locate, Number, Number);
extern template void AnyFields::add_whole<std::int64_t>(std::string, Locate, Number, Number);
extern template void AnyFields::add_real<float>(std::string, Locate);
extern template void AnyFields::add_real<double>(std::string, Locate);
extern template void AnyFields::add_wholes<std::vector<int>>(std::string, Locate, Number, Number,
                                                             Number);
extern template void AnyFields::add_reals<std::vector<float>>(std::string, Locate, Number);
extern template void AnyFields::add_reals<std::vector<double>>(std::string, Locate, Number);

/// A number known beforehand, or one that follows from members read before: a whole number, a
/// pointer to a member (`&Trace::keys`) or any `[](const T&) { return …; }`.
template <class T>
class NumberOf {
 public:
  NumberOf(std::integral auto number)
      : of_([number = static_cast<std::int64_t>(number)](AnyFields::Object) { return number; }) {}
  template <std::invocable<const T&> Of>
  NumberOf(Of of)
      : of_([of](AnyFields::Object object) {
          return static_cast<std::int64_t>(std::invoke(of, *static_cast<const T*>(object)));
        }) {}
  operator AnyFields::Number() && { return std::move(of_); }

 private:
  AnyFields::Number of_;
};

/// A member by its own name. Several of one kind and range are declared together:
///
///     .real(TILESTEP_MEMBERS(Step, tile_max, m, rescale))
template <class Access>
struct Member {
  const char* name;
  Access access;
};
template <class Access>
Member(const char*, Access) -> Member<Access>;
#define TILESTEP_MEMBERS(Struct, ...)                                 \
  std::tuple {                                                        \
    __VA_OPT__(TILESTEP_EXPAND(TILESTEP_MEMBER(Struct, __VA_ARGS__))) \
  }
#define TILESTEP_MEMBER(Struct, member, ...) \
  tilestep::lab::Member{                     \
      #member, &Struct::member} __VA_OPT__(, TILESTEP_MORE TILESTEP_PARENS(Struct, __VA_ARGS__))
#define TILESTEP_PARENS ()
#define TILESTEP_MORE() TILESTEP_MEMBER
#define TILESTEP_EXPAND(...) TILESTEP_EXPAND_4(TILESTEP_EXPAND_4(TILESTEP_EXPAND_4(__VA_ARGS__)))
#define TILESTEP_EXPAND_4(...) TILESTEP_EXPAND_2(TILESTEP_EXPAND_2(__VA_ARGS__))
#define TILESTEP_EXPAND_2(...) TILESTEP_EXPAND_1(TILESTEP_EXPAND_1(__VA_ARGS__))
#define TILESTEP_EXPAND_1(...) __VA_ARGS__

template <class T>
class Fields;

/// The fields of what a T holds: the same for all, or made for one T (whose sizes they depend on).
template <class T, class Child>
class FieldsFor {
 public:
  FieldsFor(Fields<Child> same)
      : of_([kept = std::shared_ptr<const AnyFields>(std::make_shared<Fields<Child>>(
                 std::move(same)))](AnyFields::Object) { return kept; }) {}
  template <std::invocable<const T&> Of>
  FieldsFor(Of of)
      : of_([of](AnyFields::Object parent) -> std::shared_ptr<const AnyFields> {
          return std::make_shared<Fields<Child>>(of(*static_cast<const T*>(parent)));
        }) {}
  operator AnyFields::FieldsOf() && { return std::move(of_); }

 private:
  AnyFields::FieldsOf of_;
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
class Fields : public AnyFields {
  template <class Access>
  using MemberOf = std::remove_cvref_t<std::invoke_result_t<const Access&, T&>>;
  template <class Access>
  using ItemOf = typename MemberOf<Access>::value_type;

 public:
  explicit Fields(Digits digits = Digits::shortest) : AnyFields(digits) {}

  /// A whole number from `least` to `most`, of any integral type.
  template <class Access>
  Fields& whole(std::string name, Access access, NumberOf<T> least = kLeastWhole,
                NumberOf<T> most = kMostWhole) {
    add_whole<MemberOf<Access>>(std::move(name), located(access), std::move(least),
                                std::move(most));
    return *this;
  }

  /// A float, double or std::optional<double> (null: none).
  template <class Access>
  Fields& real(std::string name, Access access) {
    add_real<MemberOf<Access>>(std::move(name), located(access));
    return *this;
  }

  template <class Access>
  Fields& flag(std::string name, Access access) {
    add_flag(std::move(name), located<Access, bool>(access));
    return *this;
  }

  template <class Access>
  Fields& text(std::string name, Access access) {
    add_text(std::move(name), located<Access, std::string>(access));
    return *this;
  }

  /// An enum, by the words of its names_of.
  template <class Access>
  Fields& name(std::string name, Access access) {
    add_name<MemberOf<Access>>(std::move(name), located(access));
    return *this;
  }

  /// A std::vector of `count` whole numbers, or a std::array of them.
  template <class Access>
  Fields& wholes(std::string name, Access access, NumberOf<T> count,
                 NumberOf<T> least = kLeastWhole, NumberOf<T> most = kMostWhole) {
    add_wholes<MemberOf<Access>>(std::move(name), located(access), std::move(count),
                                 std::move(least), std::move(most));
    return *this;
  }

  /// A std::vector of `count` floats or doubles.
  template <class Access>
  Fields& reals(std::string name, Access access, NumberOf<T> count) {
    add_reals<MemberOf<Access>>(std::move(name), located(access), std::move(count));
    return *this;
  }

  // Several members alike.
  template <class... Access>
  Fields& whole(const std::tuple<Member<Access>...>& members, NumberOf<T> least = kLeastWhole,
                NumberOf<T> most = kMostWhole) {
    return each(members, [&](const auto& m) { whole(m.name, m.access, least, most); });
  }
  template <class... Access>
  Fields& real(const std::tuple<Member<Access>...>& members) {
    return each(members, [&](const auto& m) { real(m.name, m.access); });
  }
  template <class... Access>
  Fields& flag(const std::tuple<Member<Access>...>& members) {
    return each(members, [&](const auto& m) { flag(m.name, m.access); });
  }
  template <class... Access>
  Fields& text(const std::tuple<Member<Access>...>& members) {
    return each(members, [&](const auto& m) { text(m.name, m.access); });
  }
  template <class... Access>
  Fields& name(const std::tuple<Member<Access>...>& members) {
    return each(members, [&](const auto& m) { name(m.name, m.access); });
  }
  template <class... Access>
  Fields& wholes(const std::tuple<Member<Access>...>& members, NumberOf<T> count,
                 NumberOf<T> least = kLeastWhole, NumberOf<T> most = kMostWhole) {
    return each(members, [&](const auto& m) { wholes(m.name, m.access, count, least, most); });
  }
  template <class... Access>
  Fields& reals(const std::tuple<Member<Access>...>& members, NumberOf<T> count) {
    return each(members, [&](const auto& m) { reals(m.name, m.access, count); });
  }

  /// A struct, as an object of its own.
  template <class Access>
  Fields& object(std::string name, Access access, FieldsFor<T, MemberOf<Access>> fields) {
    add_object(std::move(name), located(access), std::move(fields));
    return *this;
  }

  /// Some of this struct's own members, in an object of their own.
  Fields& group(std::string name, Fields fields) {
    return object(std::move(name), std::identity(), std::move(fields));
  }

  /// A struct whose members stand among this one's.
  template <class Access>
  Fields& inlined(Access access, const Fields<MemberOf<Access>>& fields) {
    add_inlined(located(access), fields);
    return *this;
  }

  /// A std::vector of `count` structs, as an array of objects.
  template <class Access>
  Fields& list(std::string name, Access access, FieldsFor<T, ItemOf<Access>> fields,
               NumberOf<T> count = kAnyCount) {
    add_list(std::move(name), located(access), items_of<MemberOf<Access>>(), std::move(fields),
             std::move(count));
    return *this;
  }

  /// The same as an object of columns: {"begin": [0, 4, 8], "end": [3, 7, 9]}.
  template <class Access>
  Fields& columns(std::string name, Access access, FieldsFor<T, ItemOf<Access>> fields,
                  NumberOf<T> count) {
    add_columns(std::move(name), located(access), items_of<MemberOf<Access>>(), std::move(fields),
                std::move(count));
    return *this;
  }

  /// Written for people and not read back: the path of a source file.
  Fields& constant(std::string name, std::string_view text) {
    add(
        std::move(name), [text](Object) { return text; }, nullptr);
    return *this;
  }

  /// Anything else. `read` is given the member's place.
  Fields& custom(std::string name, std::function<nlohmann::json(const T&)> write,
                 std::function<void(const Place&, T&)> read) {
    add(std::move(name), of_this(std::move(write)), reading(std::move(read)));
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
    last().optional = true;
    return *this;
  }
  /// The same, and it is not written where it equals `nothing`, which it must do in T{}: documents from before there
  /// was such a member come back as they are.
  Fields& left_out_for(const nlohmann::json& nothing) {
    leave_out(nothing, nlohmann::json(nlohmann::json::value_t::discarded));
    return *this;
  }
  /// The same, and it is written as null where it equals `nothing`, which it must do in T{}.
  Fields& null_for(const nlohmann::json& nothing) {
    leave_out(nothing, nullptr);
    return *this;
  }

  /// The last member is known from `when` on. `other` gives another value that it could have had, as
  /// JSON; without it a number gets another size, a flag is turned.
  Fields& known(std::function<When(const T&)> when,
                std::function<nlohmann::json(const T&, const Change&)> other = nullptr) {
    know(of_this(std::move(when)), of_this(std::move(other)));
    return *this;
  }
  /// Each entry of the last member, a list, is known from `when(object, place in the list)` on.
  Fields& known_each(std::function<When(const T&, std::size_t)> when) {
    know_each(of_this(std::move(when)));
    return *this;
  }
  /// The last member, of what is an entry of such a list, is known from a phase of its entry's step on
  /// ({0, phase}), from a step of its own on, or kAhead.
  Fields& from(When when) {
    last().from = when;
    return *this;
  }
  /// The same for all members that follow, up to the next of these.
  Fields& from_here(When when) {
    from_here_on(when);
    return *this;
  }

  nlohmann::json to_json(const T& from) const { return write(&from); }

  /// Throws Error; `where` is what it calls the document.
  T from_json(const nlohmann::json& json, std::string_view where) const {
    T object{};
    read(Place(json, where), object);
    return object;
  }

  void read(const Place& from, T& to) const { read_object(from, &to); }

 private:
  template <class Members, class Act>
  Fields& each(const Members& members, const Act& act) {
    std::apply([&](const auto&... member) { (act(member), ...); }, members);
    return *this;
  }
  template <class Access, class Member = MemberOf<Access>>
  static Locate located(Access access) {
    return [access](Object object) -> void* {
      // No object was declared constant: those that are read into are ours, of others nothing is written.
      Member& member = std::invoke(access, *static_cast<T*>(const_cast<void*>(object)));
      return &member;
    };
  }
  template <class List>
  static Items items_of() {
    return {[](Object list) { return static_cast<const List*>(list)->size(); },
            [](void* list, std::size_t count) { static_cast<List*>(list)->resize(count); },
            [](Object list, std::size_t index) -> void* {
              return &(*static_cast<List*>(const_cast<void*>(list)))[index];
            }};
  }
  /// A function of a T, for objects whose type is forgotten.
  template <class Result, class... More>
  static std::function<Result(Object, More...)> of_this(
      std::function<Result(const T&, More...)> function) {
    if (!function) return nullptr;
    return [function = std::move(function)](Object object, More... more) {
      return function(*static_cast<const T*>(object), more...);
    };
  }
  static std::function<void(const Place&, void*)> reading(
      std::function<void(const Place&, T&)> function) {
    if (!function) return nullptr;
    return [function = std::move(function)](const Place& at, void* object) {
      function(at, *static_cast<T*>(object));
    };
  }
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
    kept_fields().change(&trace, to, by);                                                    \
    return to;                                                                               \
  }
