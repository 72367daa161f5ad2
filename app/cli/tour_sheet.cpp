#include "app/cli/tour_sheet.hpp"

#include <fmt/format.h>

#include "app/cli/output.hpp"
#include "app/file.hpp"
#include "app/keep/guided.hpp"
#include "app/window/png.hpp"
#include "app/window/window.hpp"

namespace tilestep::app {
namespace {

constexpr int kColumns = 3, kGap = 8;
constexpr unsigned char kGround = 0x80;

/// Pictures of one size at half of it, in rows.
class Sheet {
 public:
  Sheet(int width, int height, int count)
      : width_(width / 2),
        height_(height / 2),
        all_{kColumns * (width_ + kGap) + kGap,
             (count + kColumns - 1) / kColumns * (height_ + kGap) + kGap,
             {}} {
    all_.rgb.assign(static_cast<std::size_t>(all_.width) * all_.height * 3, kGround);
  }

  void add(const Pixels& picture) {
    const int left = kGap + added_ % kColumns * (width_ + kGap),
              top = kGap + added_ / kColumns * (height_ + kGap);
    ++added_;
    const auto at = [](const Pixels& of, int x, int y) {
      return (static_cast<std::size_t>(y) * of.width + x) * 3;
    };
    for (int y = 0; y < height_; ++y) {
      for (int x = 0; x < width_; ++x) {
        const std::size_t upper = at(picture, 2 * x, 2 * y), lower = at(picture, 2 * x, 2 * y + 1),
                          to = at(all_, left + x, top + y);
        for (std::size_t c = 0; c < 3; ++c) {
          const int sum = picture.rgb[upper + c] + picture.rgb[upper + 3 + c] +
                          picture.rgb[lower + c] + picture.rgb[lower + 3 + c];
          all_.rgb[to + c] = static_cast<unsigned char>((sum + 2) / 4);
        }
      }
    }
  }
  std::string png() const { return png_bytes(all_.width, all_.height, all_.rgb); }

 private:
  int width_, height_, added_ = 0;
  Pixels all_;
};

}  // namespace

void write_sheets(const std::filesystem::path& folder,
                  const std::vector<const lab::Lesson*>& lessons, const LookArguments& look,
                  const std::string& program, bool force) {
  const Size size = parse_size(look.size);
  make_folder(folder);
  Offscreen canvas;
  for (const lab::Lesson* lesson : lessons) {
    const std::string& id = lesson->info().id;
    const std::filesystem::path out = folder / (id + ".png");
    require_output(out.string(), force);
    const int stops = static_cast<int>(guide_of(id).stops.size());
    Sheet sheet(size.width, size.height, stops);
    for (int stop = 1; stop <= stops; ++stop) {
      LookArguments here = look;
      here.lesson.lesson = id;
      here.stop = std::to_string(stop);
      here.stop_given = true;
      ShotOptions options;
      options.shell = here.shell(true);
      options.shell.still = true;
      options.shell.program = program;
      options.width = size.width;
      options.height = size.height;
      sheet.add(canvas.draw(options));
    }
    write_output(out, sheet.png(), force);
    print_line(out.string());
  }
}

}  // namespace tilestep::app
