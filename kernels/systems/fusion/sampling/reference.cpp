#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/base/numeric/philox.hpp"
#include "kernels/systems/fusion/sampling/sampling.hpp"

namespace tilestep::fusion {

std::string wrong_token(std::span<const float> logits, const SampleRule& rule, std::uint32_t row,
                        int token) {
  std::vector<std::size_t> order;  // the largest first
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -INFINITY) order.push_back(i);
  }
  if (order.empty()) return token == -1 ? "" : "a token of a row that has none";
  const auto mine = static_cast<std::size_t>(token);
  if (token < 0 || mine >= logits.size()) return fmt::format("{} is no token", token);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  const float top = logits[order[0]];
  if (rule.greedy()) return mine == order[0] ? "" : fmt::format("not {}, the largest", order[0]);
  const auto weight = [&](std::size_t i) {
    if (std::isinf(top)) return logits[i] == top ? 1.0 : 0.0;
    return std::exp((static_cast<double>(logits[i]) - static_cast<double>(top)) /
                    static_cast<double>(rule.temperature));
  };
  const auto with_ties = [&](std::size_t count) {
    while (count < order.size() && logits[order[count]] == logits[order[count - 1]]) ++count;
    return count;
  };
  const std::size_t most =
      rule.top_k > 0 ? with_ties(std::min(order.size(), static_cast<std::size_t>(rule.top_k)))
                     : order.size();
  double total = 0;
  for (std::size_t i = 0; i < most; ++i) total += weight(order[i]);
  constexpr double kSlack = 1e-5;
  const double random = std::ldexp(static_cast<double>(numeric::philox(rule.seed, row)), -64);
  std::string wrong;
  for (const double slack : {0.0, -kSlack, kSlack}) {
    std::size_t count = rule.top_p < 1 ? 0 : most;
    const double need = (static_cast<double>(rule.top_p) + slack) * total;
    for (double mass = 0; count < most && (count == 0 || mass < need); ++count) {
      mass += weight(order[count]);
    }
    const float least = logits[order[with_ties(count) - 1]];
    double before = 0, all = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (!(logits[i] >= least)) continue;
      if (i < mine) before += weight(i);
      all += weight(i);
    }
    const double upto = before + weight(mine);
    if (logits[mine] >= least && random >= before / all - kSlack && random <= upto / all + kSlack)
      return "";
    if (wrong.empty()) {
      wrong = fmt::format("logit {} of {} is of {} – {} of the kept {} on, not at {}", logits[mine],
                          mine, before / all, upto / all, least, random);
    }
  }
  return wrong;
}

}  // namespace tilestep::fusion
