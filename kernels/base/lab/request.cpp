#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/lesson.hpp"

namespace tilestep::lab {

nlohmann::json to_json(const Request& request) {
  return {{"lesson", request.lesson},
          {"params", to_json(request.params)},
          {"action", request.action == Request::Action::run ? "run" : "bench"},
          {"backend", request.backend}};
}

Request request_from_json(const nlohmann::json& json) {
  Request request;
  request.lesson = member<std::string>(json, "lesson", "request");
  if (const auto params = json.find("params"); params != json.end()) {
    request.params = settings_from_json(*params);
  }
  const auto action = member_or<std::string>(json, "action", "request", "run");
  if (action != "run" && action != "bench") {
    throw Error(fmt::format("request: action cannot be '{}'; allowed: run, bench", action));
  }
  request.action = action == "run" ? Request::Action::run : Request::Action::bench;
  request.backend = member_or<std::string>(json, "backend", "request", "auto");
  if (request.backend != "auto" && request.backend != "cuda" && request.backend != "emulated" &&
      request.backend != "recorded") {
    throw Error(
        fmt::format("request: backend cannot be '{}'; allowed: auto, cuda, emulated, recorded",
                    request.backend));
  }
  return request;
}

}  // namespace tilestep::lab
