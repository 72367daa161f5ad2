#include "app/window/keeper.hpp"

#include <fmt/format.h>

#include <memory>

#include "app/file.hpp"
#include "app/keep/capsule.hpp"
#include "app/keep/place.hpp"
#include "app/window/window.hpp"
#include "scenes/ui/context.hpp"

namespace tilestep::app {
namespace {

std::string saved(const std::filesystem::path& path) {
  return fmt::format("Saved to {}", path.string());
}

std::string save_text(std::string_view stem, std::string_view ending, std::string_view text) {
  const auto path = free_name(documents_folder(), stem, ending);
  write_file(path, text);
  return saved(path);
}

std::string copied(std::string_view what, const std::string& text) {
  ImGui::SetClipboardText(text.c_str());
  return fmt::format("Copied {}", what);
}

/// The picture as it stands in the window, drawn once more: SVG for paper, PNG with more pixels.
std::string save_picture(Shell& shell, const KeepRequest& request, const WindowLook& look) {
  const bool svg = request.what == Keep::picture_svg;
  auto capsule = std::make_shared<Capsule>(shell.capsule());
  const ui::Look& own = shell.context().look();
  const int times = svg ? 1 : request.times;
  ShotOptions shot;
  shot.shell.lesson = capsule->lesson();
  shot.shell.theme = svg ? ui::ThemeKind::light : own.theme;
  shot.shell.presenter = own.presenter;
  shot.shell.text_scale = own.text_scale;
  shot.width = look.width * times;
  shot.height = look.height * times;
  shot.scale = look.scale * static_cast<float>(times);
  shot.picture_alone = true;
  shot.out = free_name(documents_folder(), capsule->lesson(), svg ? ".svg" : ".png").string();
  shot.shell.capsule = std::move(capsule);
  svg ? take_svg(shot) : take_shot(shot);
  return saved(shot.out);
}

std::string kept(Shell& shell, const KeepRequest& request, const WindowLook& look) {
  switch (request.what) {
    case Keep::capsule: {
      const Capsule capsule = shell.capsule();
      return save_text(capsule.lesson(), kCapsuleEnding, capsule_text(capsule));
    }
    case Keep::table_csv:
      return save_text(shell.lesson() + "-" + shell.table_id(), ".csv",
                       shell.table_on_show(TableForm::csv));
    case Keep::table_json:
      return save_text(shell.lesson() + "-" + shell.table_id(), ".json",
                       shell.table_on_show(TableForm::json));
    case Keep::table_copy:
      return copied(
          fmt::format("the table '{}', to be pasted into a spreadsheet", shell.table_id()),
          shell.table_on_show(TableForm::tsv));
    case Keep::link: {
      const std::string link = shell.link();
      return copied(link, link);
    }
    case Keep::picture_png:
    case Keep::picture_svg:
      return save_picture(shell, request, look);
  }
  return {};
}

}  // namespace

void keep(Shell& shell, const KeepRequest& request, const WindowLook& look) {
  try {
    shell.say(kept(shell, request, look));
  } catch (const Error& error) {
    shell.say(fmt::format("Not saved: {}", error.what()));
  }
}

void open_capsule(Shell& shell, const std::string& path) {
  try {
    const Capsule capsule = read_capsule(path);
    shell.open(capsule);
    shell.say(capsule.kernel_refused.empty()
                  ? fmt::format("Opened {}; nothing runs until you turn a knob", path)
                  : capsule.kernel_refused);
  } catch (const Error& error) {
    shell.say(fmt::format("Not opened: {}", error.what()));
  }
}

}  // namespace tilestep::app
