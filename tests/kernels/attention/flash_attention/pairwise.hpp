#pragma once

#include <array>
#include <cstddef>
#include <random>
#include <set>
#include <vector>

#include "kernels/base/lab/random.hpp"

namespace tilestep::flash_attention {

/// Choices of which each two values of two factors meet in one at least: each next is the one of some random
/// ones that has the most pairs that have not met. `choices` says how many values each factor has.
template <std::size_t kFactors>
std::vector<std::array<int, kFactors>> pairwise(const std::array<int, kFactors>& choices) {
  using Choice = std::array<int, kFactors>;
  std::mt19937 generator = lab::generator_of(3);
  const auto each_pair = [&](auto act) {
    for (std::size_t a = 0; a < kFactors; ++a) {
      for (std::size_t b = a + 1; b < kFactors; ++b) act(a, b);
    }
  };
  std::set<std::array<int, 4>> open;
  each_pair([&](std::size_t a, std::size_t b) {
    for (int x = 0; x < choices[a]; ++x) {
      for (int y = 0; y < choices[b]; ++y) {
        open.insert({static_cast<int>(a), x, static_cast<int>(b), y});
      }
    }
  });
  const auto pairs_in = [&](const Choice& choice, auto act) {
    each_pair([&](std::size_t a, std::size_t b) {
      act(std::array<int, 4>{static_cast<int>(a), choice[a], static_cast<int>(b), choice[b]});
    });
  };
  std::vector<Choice> rows;
  while (!open.empty()) {
    Choice best{};
    int most = -1;
    for (int i = 0; i < 40; ++i) {
      Choice choice;
      for (std::size_t f = 0; f < kFactors; ++f) {
        choice[f] = static_cast<int>(generator() % static_cast<unsigned>(choices[f]));
      }
      const auto& pair = *open.begin();  // one that is left is always in it
      choice[static_cast<std::size_t>(pair[0])] = pair[1];
      choice[static_cast<std::size_t>(pair[2])] = pair[3];
      int news = 0;
      pairs_in(choice, [&](const auto& one) { news += static_cast<int>(open.count(one)); });
      if (news > most) most = news, best = choice;
    }
    pairs_in(best, [&](const auto& one) { open.erase(one); });
    rows.push_back(best);
  }
  return rows;
}

}  // namespace tilestep::flash_attention
