// Markdown, as blocks and as they are drawn.
#include "scenes/ui/markdown_document.hpp"
#include "scenes/ui/ui.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/show.hpp"

namespace tilestep::fuzz {
namespace {

void read(std::string_view bytes) {
  std::vector<ui::MarkdownBlock> blocks = ui::parse_markdown(bytes);
  ui::mark_terms(blocks, {"shared memory", "tile", "a", "memory"});
  in_a_frame([&] {
    ui::MarkdownLook look;
    look.terms = {{"shared memory", "A small memory."}, {"tile", "A part."}};
    ui::markdown(bytes, look);
  });
}

const Target kTarget("markdown", read);

}  // namespace
}  // namespace tilestep::fuzz
