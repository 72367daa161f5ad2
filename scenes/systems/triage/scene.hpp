#pragma once

#include "kernels/systems/triage/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

class TriageScene final : public SceneOf<triage::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(triage)
};

}  // namespace tilestep::scenes
