#include "kernels/base/lab/scripted_rungs.hpp"

#include <algorithm>
#include <utility>

namespace tilestep::lab {
namespace {

constexpr double kPatienceSeconds = 300;  // a first request may compile

}  // namespace

ScriptedRungs::ScriptedRungs(const std::string& script, std::string allowed,
                             const nlohmann::json& first)
    : allowed_(std::move(allowed)) {
  try {
    peer_ = std::make_unique<ScriptPeer>(script);
    numbers_of(ask(first), "ms");
  } catch (const std::exception& error) {
    say(error);
    peer_.reset();
  }
}

nlohmann::json ScriptedRungs::ask(const nlohmann::json& request) {
  return peer_->ask(request, kPatienceSeconds);
}

void ScriptedRungs::say(const std::exception& error) {
  missing_ = std::string("Rungs are missing: ") + error.what() + ". Allowed: " + allowed_ + ".";
}

std::vector<double> ScriptedRungs::times(const std::string& name, nlohmann::json request,
                                         const Pace& pace) {
  if (silent_.count(name) > 0) return {};
  request["settle_ms"] = pace.settle_ms;
  request["samples"] = pace.samples;
  try {
    const nlohmann::json answer = ask(request);
    std::vector<double> ms = numbers_of(answer, "ms");
    for (const auto& [key, value] : answer.items()) {
      if (key == "name" && value.is_string()) cells_[name]["version"] = value.get<std::string>();
      if (value.is_number()) cells_[name][key] = value.get<double>();
    }
    return ms;
  } catch (const std::exception& error) {
    say(error);
    return {};
  }
}

Rung ScriptedRungs::rung(const std::string& name, const nlohmann::json& request,
                         const nlohmann::json& check,
                         std::function<Closest(const nlohmann::json& answer)> compare) {
  Rung rung{.name = name, .why = "a peer", .configurations = {}};
  const auto times_of = [this, name, request](const Pace& pace) {
    return times(name, request, pace);
  };
  const auto compared = [this, name, check, compare]() -> Closest {
    try {
      return compare(ask(check));
    } catch (const std::exception& error) {
      say(error);
      silent_.insert(name);
      return {};
    }
  };
  rung.configurations = {
      {.name = "by the script", .make = [times_of, compared, compare]() -> Runnable {
         if (!compare) return {{}, {}, times_of};
         return {{}, compared, times_of};
       }}};
  return rung;
}

int lines_of_code(std::string_view text) {
  int count = 0;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const bool is_code = !line.empty() && !line.starts_with("//") && !line.starts_with("# ");
    count += is_code ? 1 : 0;
  }
  return count;
}

}  // namespace tilestep::lab
