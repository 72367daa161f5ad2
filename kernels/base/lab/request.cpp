#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/lesson.hpp"

namespace tilestep::lab {
namespace {

constexpr std::array<std::string_view, 4> kBackends = {"auto", "cuda", "emulated", "recorded"};

void read_backend(const Place& at, Request& request) {
  request.backend = at.text();
  if (std::find(kBackends.begin(), kBackends.end(), request.backend) == kBackends.end()) {
    at.refuse("auto, cuda, emulated, recorded");
  }
}

nlohmann::json edit_to_json(const Request& request) {
  return request.kernel ? kernel_edit_fields().to_json(*request.kernel) : nlohmann::json();
}
void read_edit(const Place& at, Request& request) {
  kernel_edit_fields().read(at, request.kernel.emplace());
}

const Fields<Request>& request_fields() {
  static const auto kFields =
      Fields<Request>()
          .text("lesson", &Request::lesson)
          .custom(
              "params", [](const Request& request) { return to_json(request.params); },
              [](const Place& at, Request& request) { request.params = settings_from_json(at); })
          .optional()
          .name("action", &Request::action)
          .optional()
          .custom(
              "backend", [](const Request& request) { return request.backend; }, read_backend)
          .optional()
          .custom("kernel", edit_to_json, read_edit)
          .left_out_for(nullptr)
          .name("order", &Request::order)
          .left_out_for("ascending")
          .flag("orders", &Request::orders)
          .left_out_for(true);
  return kFields;
}

}  // namespace

nlohmann::json to_json(const Request& request) {
  return request_fields().to_json(request);
}

Request request_from_json(const nlohmann::json& json) {
  return request_fields().from_json(json, "request");
}

}  // namespace tilestep::lab
