#include "scenes/scene.hpp"

namespace tilestep {

#define LESSON(chapter, id, title)             \
  namespace id {                               \
  std::unique_ptr<scenes::Scene> make_scene(); \
  }
#include "kernels/lessons.def"

std::vector<std::unique_ptr<scenes::Scene>> scenes::make_scenes() {
  std::vector<std::unique_ptr<Scene>> scenes;
#define LESSON(chapter, id, title) scenes.push_back(id::make_scene());
#include "kernels/lessons.def"
  return scenes;
}

}  // namespace tilestep
