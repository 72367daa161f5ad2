#include "scenes/shared/scene_of.hpp"

namespace tilestep {

std::vector<std::unique_ptr<scenes::Scene>> scenes::make_scenes() {
  std::vector<std::unique_ptr<Scene>> scenes;
#define LESSON(chapter, id, title) scenes.push_back(id::make_scene());
#include "kernels/lessons.def"
  return scenes;
}

}  // namespace tilestep
