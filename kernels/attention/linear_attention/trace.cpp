// The trace as JSON, and what follows from it.

#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/attention/linear_attention/lesson.hpp"
#include "kernels/base/lab/fields.hpp"

namespace tilestep::linear_attention {
namespace {

constexpr int kFirst = static_cast<int>(Phase::before), kSecond = static_cast<int>(Phase::after);

lab::Fields<BrokenResult> result_fields() {
  return lab::Fields<BrokenResult>()
      .text("outcome", &BrokenResult::outcome)
      .whole("wrong", &BrokenResult::wrong, 0, lab::kMostCount);
}

int of_rows(const Trace& trace) {
  return trace.tokens * kShown;
}
int of_states(const Trace& trace) {
  return trace.tokens * kShown * kShown;
}
int of_held(const Trace& trace) {
  return trace.tokens * trace.repeats * kShown;
}
int of_products(const Trace& trace) {
  return trace.tokens * trace.chunk;
}
int of_handed(const Trace& trace) {
  return trace.chunks() * kShown * kShown;
}

/// When entries of a list with `each` per token are known: in a phase of the token's step, or of its chunk's.
template <int kPhase>
auto with_tokens(int (*each)(const Trace&)) {
  return [each](const Trace& trace, std::size_t at) {
    const int token = static_cast<int>(at) / each(trace);
    return lab::When{trace.step_of_token(token), kPhase};
  };
}
template <int kPhase>
auto with_chunks(int (*each)(const Trace&)) {
  return [each](const Trace& trace, std::size_t at) {
    const int token = static_cast<int>(at) / each(trace);
    return lab::When{trace.step_of_chunk(token / trace.chunk), kPhase};
  };
}
int row(const Trace&) {
  return kShown;
}
int square(const Trace&) {
  return kShown * kShown;
}
int rows_held(const Trace& trace) {
  return trace.repeats * kShown;
}
int product_row(const Trace& trace) {
  return trace.chunk;
}
int one(const Trace&) {
  return 1;
}
/// A chunk hands its state on in its second phase; the first begins with zeros.
lab::When when_handed(const Trace& trace, std::size_t at) {
  const int number = static_cast<int>(at) / (kShown * kShown);
  return number == 0 ? lab::When{trace.step_of_chunk(0), kFirst}
                     : lab::When{trace.step_of_chunk(number - 1), kSecond};
}
lab::When when_compared(const Trace&, std::size_t) {
  return {1, kSecond};
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .name(TILESTEP_MEMBERS(Trace, feature, rule, broken))
      .whole("dim", &Trace::dim, kShown, 128)
      .whole("tokens", &Trace::tokens, 1, kMostContext)
      .whole("chunk", &Trace::chunk, 16, 128)
      .whole("repeats", &Trace::repeats, 1, kMostProbes)
      .real(TILESTEP_MEMBERS(Trace, gate, beta))
      .reals(TILESTEP_MEMBERS(Trace, keys, values), of_rows)
      .reals("exact", &Trace::exact, &Trace::tokens)
      .known_each([](const Trace&, std::size_t) {
        return lab::When{1, kFirst};
      })
      .reals("approximate", &Trace::approximate, &Trace::tokens)
      .known_each(when_compared)
      .reals("by_softmax", &Trace::by_softmax, kShown)
      .known_each([](const Trace&, std::size_t) {
        return lab::When{1, kFirst};
      })
      .reals("by_weights", &Trace::by_weights, kShown)
      .known_each(when_compared)
      .reals("by_state", &Trace::by_state, kShown)
      .known_each(when_compared)
      .reals("states", &Trace::states, of_states)
      .known_each(with_tokens<kSecond>(square))
      .reals("before", &Trace::before, of_rows)
      .known_each(with_tokens<kFirst>(row))
      .reals("held", &Trace::held, of_held)
      .known_each(with_tokens<kSecond>(rows_held))
      .reals("out", &Trace::out, of_rows)
      .known_each(with_tokens<kSecond>(row))
      .reals("products", &Trace::products, of_products)
      .known_each(with_chunks<kFirst>(product_row))
      .reals("handed", &Trace::handed, of_handed)
      .known_each(when_handed)
      .reals("inter", &Trace::inter, of_rows)
      .known_each(with_chunks<kSecond>(row))
      .reals("chunk_out", &Trace::chunk_out, of_rows)
      .known_each(with_chunks<kSecond>(row))
      .wholes("wrong", &Trace::wrong, &Trace::tokens, 0, lab::kMostCount)
      .known_each(with_chunks<kSecond>(one))
      .object("result", &Trace::result, result_fields())
      .known(
          [](const Trace& trace) {
            return lab::When{trace.step_of_chunk(trace.chunks() - 1), kSecond};
          },
          [](const Trace&, const lab::Change&) {
            return result_fields().to_json(BrokenResult{"something else", 1});
          });
}

/// How much of a value is in what a state holds.
double share(const Trace& trace, const float* held, int value) {
  double product = 0, squares = 0;
  for (int i = 0; i < kShown; ++i) {
    const auto v = static_cast<double>(trace.at(trace.values, value, i));
    product += v * static_cast<double>(held[i]);
    squares += v * v;
  }
  return squares > 0 ? product / squares : 0;
}

}  // namespace

int Trace::newest(int token, int key) const {
  while (token >= 0 && key_of(token) != key) --token;
  return token;
}

double Trace::strength(int token, int key) const {
  const int value = newest(token, key);
  if (value < 0) return 0;
  return share(*this, &held[static_cast<std::size_t>((token * repeats + key) * kShown)], value);
}
double Trace::strength_before(int token) const {
  const int value = newest(token - 1, key_of(token));
  return value < 0 ? 0 : share(*this, &before[static_cast<std::size_t>(token * kShown)], value);
}

double Trace::off(int token, int key) const {
  const int value = newest(token, key);
  if (value < 0) return 0;
  double apart = 0, squares = 0;
  for (int i = 0; i < kShown; ++i) {
    const auto v = static_cast<double>(at(values, value, i));
    const double d = v - static_cast<double>(at(held, token * repeats + key, i));
    apart += d * d;
    squares += v * v;
  }
  return squares > 0 ? std::sqrt(apart / squares) : 0;
}

bool Trace::operator==(const Trace& other) const {
  return to_json(*this) == to_json(other);
}

TILESTEP_TRACE_JSON("linear-attention trace", trace_fields())

}  // namespace tilestep::linear_attention
