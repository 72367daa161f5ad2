// A font file that the user names: refused with a reason, or it can be drawn with.
#include "scenes/ui/font_faces.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

void read(std::string_view bytes) {
  std::string reason;
  const auto face = ui::usable_face(bytes, reason);
  require(face.has_value() == reason.empty(), "a font is used, or there is a reason");
  if (face) require(face->line_per_em > 0, "a line has a height");
}

const Target kTarget("font", read);

}  // namespace
}  // namespace tilestep::fuzz
