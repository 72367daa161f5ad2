#include "kernels/base/lab/known.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

namespace tilestep::lab {
namespace {

/// Permutes the values at `places`, accessed by `at`.
void mix_values(const std::vector<std::size_t>& places, const std::vector<std::size_t>& order,
                const std::function<nlohmann::json&(std::size_t)>& at) {
  std::vector<nlohmann::json> values;
  for (const std::size_t place : places) values.push_back(at(place));
  for (std::size_t i = 0; i < places.size(); ++i) at(places[i]) = values[order[i]];
}

}  // namespace

nlohmann::json Change::other(const nlohmann::json& was) const {
  if (was.is_boolean()) return !was.get<bool>();
  if (was.is_number_integer()) return was.get<std::int64_t>() + 1 + random() % 7;
  if (was.is_number()) return (was.get<double>() + 1) * (1.5 + static_cast<double>(random() % 7));
  if (was == "inf" || was == "-inf" || was == "nan") return 2.5;
  if (was.is_string()) return was.get<std::string>() + ", or not";
  nlohmann::json to = was;
  if (to.is_array()) {
    mix(to, {}, [&](std::size_t) { return When{now.step + 1, 0}; });
  }
  return to;
}

void Change::mix(nlohmann::json& list, const Moments& moments,
                 const std::function<When(std::size_t)>& when) const {
  const bool columns = list.is_object();
  if (columns && list.empty()) return;
  const std::size_t size = columns ? list.begin()->size() : list.size();
  std::vector<std::size_t> later, order;
  const auto shuffle = [&](When own) {
    later.clear();
    for (std::size_t place = 0; place < size; ++place) {
      const When entry = when(place);
      const When known = own.step > 0 ? own : When{entry.step, std::max(entry.phase, own.phase)};
      if (known > now) later.push_back(place);
    }
    order.resize(later.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
  };
  if (moments.empty()) {
    shuffle({});
    mix_values(later, order, [&](std::size_t i) -> nlohmann::json& { return list[i]; });
  }
  for (const auto& [moment, names] : moments) {
    if (moment == kAhead) continue;
    shuffle(moment);
    for (const std::string& name : names) {
      mix_values(later, order, [&](std::size_t i) -> nlohmann::json& {
        return columns ? list[name][i] : list[i][name];
      });
    }
  }
}

}  // namespace tilestep::lab
