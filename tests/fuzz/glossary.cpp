// A glossary, and the text in which its words are looked for.
#include "scenes/shared/glossary.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

void read(std::string_view bytes) {
  for (const scenes::TermMention& mention : scenes::terms_in(bytes, "tiling")) {
    require(mention.begin + mention.size <= bytes.size(), "a term stands inside its text");
  }
  scenes::find_terms(bytes.substr(0, 64));
  scenes::parse_glossary(bytes);
}

const Target kTarget("glossary", read);

}  // namespace
}  // namespace tilestep::fuzz
