#include "scenes/systems/triage/scene.hpp"

namespace tilestep::scenes {

StepAxis TriageScene::loaded(const triage::Trace&) {
  return {trace_.length(), 1, "probe", {""}};
}
picture::Extent TriageScene::extent() const {
  return {};
}
picture::Picture TriageScene::picture(const picture::Extent&, const View&) const {
  return {picture::text("A case."), {}, picture::box({"page"}, {})};
}
std::string TriageScene::explain(const View&, const picture::Key&) const {
  return {};
}
std::vector<picture::Symbol> TriageScene::symbols(const View&) const {
  return {};
}
std::vector<Readout> TriageScene::readouts(const View&) const {
  return {};
}
measured::Spec TriageScene::measured_spec() const {
  return {};
}
SourceMark TriageScene::source(const View&) const {
  return {};
}
std::optional<Question> TriageScene::question(const View&) const {
  return std::nullopt;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(triage, TriageScene)
