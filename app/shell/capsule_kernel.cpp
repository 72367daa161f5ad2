#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/keep/capsule.hpp"
#include "app/shell/panes.hpp"
#include "kernels/base/lab/assets.hpp"

/// The kernel that a capsule brought: beside the user's own, and run as somebody else's until it is trusted.
namespace tilestep::app {

using ui::Font;
using ui::px;
using ui::Role;

void ShellState::take_kernel(const Capsule& capsule, bool trusted) {
  KernelDesk& desk = this->desk();
  desk.watches = false;
  if (std::exchange(desk.guest_in_editor, false)) desk.edits = false;
  desk.guest.reset();
  if (!capsule.kernel) return;
  const KernelOwner owner = trusted ? KernelOwner::trusted : KernelOwner::capsule;
  KernelDesk::Guest& guest =
      desk.guest.emplace(KernelDesk::Guest{*capsule.kernel, owner, KernelDesk::Sheet{}});
  guest.sheet.original = std::string(lab::asset(guest.edit.path));
  guest.sheet.editor = ui::CodeEditor(guest.edit.text);
  desk.edits = desk.guest_in_editor = true;
  desk.path = guest.edit.path;
}

void ShellState::show_guest() {
  KernelDesk& desk = this->desk();
  if (!desk.guest) return;
  desk.edits = desk.guest_in_editor = true;
  desk.watches = false;
  desk.path = desk.guest->edit.path;
  run_kernel();
}

void ShellState::trust_guest() {
  KernelDesk& desk = this->desk();
  if (!desk.guest) return;
  desk.guest->owner = KernelOwner::trusted;
  session.trust_kernel();
}

void ShellState::show_own_draft() {
  KernelDesk& desk = this->desk();
  desk.guest_in_editor = false;
  desk.edits = true;
  run_kernel();
}

namespace {

constexpr std::string_view kBadge = "The capsule's kernel";
constexpr const char* kTrust = "Trust this kernel";

/// Whose it is, how it is run, and what it would mean to trust it.
std::string about_guest(const ShellState& state, const KernelDesk::Guest& guest) {
  if (guest.owner == KernelOwner::trusted) {
    return "From a capsule, trusted: it runs with all your rights, as your own kernels do.";
  }
  const std::string why = state.session.why_no_sandbox();
  if (why.empty()) {
    return "From a capsule, untrusted, even after you edit it. It runs in a sandbox: no network, "
           "no GPU, none of your files. Trusted, it can read, change and send anything you can.";
  }
  return fmt::format(
      "From a capsule, untrusted, even after you edit it, and not run: {}. Trusted, here or with "
      "--trust, it can read, change and send anything you can.",
      why);
}

}  // namespace

void draw_guest_banner(ShellState& state) {
  const KernelDesk& desk = state.desk();
  if (!desk.guest_in_editor) return;
  const bool trusted = desk.guest->owner == KernelOwner::trusted;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x;
  const ImVec2 badge = ui::text_size(kBadge, Font::note);
  const float row = std::round(px(ui::kControlHeight));
  const float button = trusted ? 0 : std::round(ui::text_size(kTrust).x + px(24));
  // On a narrow window the words get a row of their own below badge and button.
  const float beside = room - badge.x - button - px(48);
  const bool stacked = beside < px(320);
  const float left = stacked ? at.x : at.x + badge.x + px(28);
  const std::string words = about_guest(state, *desk.guest);
  const float width = stacked ? room : beside;
  const float high = ui::wrapped_size(words, width, Font::note).y;
  const float first = std::max(row, stacked ? row : high);
  const float y = at.y + std::round((first - badge.y) / 2);
  const ImVec2 min(at.x, y - px(3)), max(at.x + badge.x + px(16), y + badge.y + px(3));
  ImGui::GetWindowDrawList()->AddRect(min, max, ui::color(Role::sky), px(4), 0, px(1));
  ui::draw_text({at.x + px(8), y}, kBadge, Font::note, Role::sky);
  ui::map("capsule_kernel", kBadge, trusted ? "trusted" : "not trusted", min, max);
  const ImVec2 text(left, stacked ? at.y + row + px(4) : at.y + std::round((first - high) / 2));
  ui::draw_wrapped(text, words, width, Font::note, Role::text);
  ui::map("capsule_kernel_words", words, "", text, {text.x + width, text.y + high});
  if (!trusted) {
    ImGui::SetCursorScreenPos({at.x + room - button, at.y + std::round((first - row) / 2)});
    if (ui::button("trust_kernel", kTrust, {.width = button / px(1)})) state.trust_guest();
  }
  ImGui::SetCursorScreenPos({at.x, at.y + (stacked ? row + px(4) + high : first) + px(4)});
  ImGui::Dummy({1, 1});
}

}  // namespace tilestep::app
