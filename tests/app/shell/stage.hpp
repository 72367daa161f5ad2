#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/shell/shell.hpp"
#include "app/window/canvas.hpp"
#include "app/worker/lab_client.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

namespace tilestep::tests {

/// The source that these tests edit.
inline constexpr const char* kOnePass = "kernels/attention/online_softmax/one_pass.cu";

/// A lab whose answers come when the test says so.
class HeldLab final : public app::LabClient {
 public:
  app::Ticket submit(const lab::Request& request) override {
    if (request.action == lab::Request::Action::trials) {
      trial_requests.push_back(request);
      return trial_ticket();
    }
    requests.push_back(request);
    return static_cast<app::Ticket>(requests.size());
  }
  app::Ticket submit_to(std::size_t lab, const lab::Request& request) override {
    labs.push_back(lab);
    return submit(request);
  }
  app::Ticket submit_assembly(std::size_t, const workbench::AssemblyRequest& request) override {
    assembly_requests.push_back(request);
    return kFirstAssembly + static_cast<app::Ticket>(assembly_requests.size());
  }
  app::Ticket submit_others(const lab::Request& request) override {
    if (!no_sandbox.empty()) throw Error("not run: " + no_sandbox, ExitCode::unavailable);
    boxed += request.action == lab::Request::Action::trials ? 0 : 1;
    return submit(request);
  }
  std::string why_no_sandbox() const override { return no_sandbox; }
  std::optional<app::LabUpdate> poll() override {
    if (updates.empty()) return std::nullopt;
    app::LabUpdate update = std::move(updates.front());
    updates.pop_front();
    return update;
  }
  void cancel(app::Ticket ticket) override {
    cancelled.push_back(ticket);
    updates.push_back({ticket, app::LabGivenUp::cancelled});
  }
  bool busy() const override { return !updates.empty(); }

  /// Answers the newest request.
  void answer() {
    const lab::Request& request = requests.back();
    lab::Report report = report_of(request.lesson, request.params);
    report.device.backend = backend;
    updates.push_back({requests.size(), std::move(report)});
  }

  /// Of the newest request for assembly, whose tickets are counted beside those of the runs.
  app::Ticket assembly_ticket() const { return kFirstAssembly + assembly_requests.size(); }
  static constexpr app::Ticket kFirstAssembly = 1000;

  /// The same of trials.
  app::Ticket trial_ticket() const { return 2 * kFirstAssembly + trial_requests.size(); }

  std::vector<lab::Request> trial_requests;
  std::vector<app::Ticket> cancelled;
  std::vector<workbench::AssemblyRequest> assembly_requests;
  std::string backend = "emulated";  ///< that the answers name
  std::string no_sandbox;            ///< why there is none; empty: there is
  int boxed = 0;                     ///< so many of the requests were for the sandbox
  std::vector<lab::Request> requests;
  std::vector<std::size_t> labs;  ///< that they were submitted to
  std::deque<app::LabUpdate> updates;
};

/// The whole window without a window: the shell, and frames that nobody renders.
struct Stage {
  explicit Stage(app::ShellOptions options = {}) : shell(lab, still(std::move(options))) {}

  static app::ShellOptions still(app::ShellOptions options) {
    options.still = true;
    return options;
  }
  /// Draws frames until the layout has settled.
  void draw(ImVec2 size, float display_scale = 1) {
    shell.update();
    if (shell.prepare_fonts(display_scale, size)) {
      unsigned char* pixels = nullptr;
      int width = 0, height = 0;
      ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
    }
    app::settle(shell, size, 2);
    map_.clear();
  }
  void frame(ImVec2 size = {1440, 900}) { draw(size); }
  /// What is on screen since the last frame; read when it is asked for, since most frames are not.
  const nlohmann::json& map() const {
    if (map_.empty()) map_ = nlohmann::json::parse(shell.ui_map_json());
    return map_;
  }
  bool has(const std::string& id) const {
    return std::any_of(map()["parts"].begin(), map()["parts"].end(),
                       [&](const auto& part) { return part["id"] == id; });
  }
  nlohmann::json part(const std::string& id) const {
    for (const auto& part : map()["parts"]) {
      if (part["id"] == id) return part;
    }
    FAIL("no part '" << id << "' on screen");
    return {};
  }
  void click(const std::string& id, ImVec2 size = {1440, 900}) {
    const auto rect = part(id)["rect"].get<std::vector<float>>();
    ImGuiIO& io = ImGui::GetIO();
    io.MousePos = {rect[0] + rect[2] / 2, rect[1] + rect[3] / 2};
    frame(size);
    io.MouseDown[0] = true;
    frame(size);
    io.MouseDown[0] = false;
    frame(size);
  }

  app::ImGuiScope imgui;
  HeldLab lab;
  app::Shell shell;

 private:
  mutable nlohmann::json map_;
};

/// What the picture is drawn with.
inline std::string ink_of_picture() {
  std::string bytes;
  const ImDrawData& data = *ImGui::GetDrawData();
  for (int i = 0; i < data.CmdListsCount; ++i) {
    const ImDrawList& list = *data.CmdLists[i];
    if (list._OwnerName == nullptr || std::strstr(list._OwnerName, "/scene_") == nullptr) continue;
    bytes.append(reinterpret_cast<const char*>(list.VtxBuffer.Data),
                 static_cast<std::size_t>(list.VtxBuffer.size_in_bytes()));
  }
  return bytes;
}

}  // namespace tilestep::tests
