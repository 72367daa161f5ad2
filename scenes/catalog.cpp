#include "accumulator_precision_scene.hpp"
#include "coalescing_scene.hpp"
#include "moe_routing_scene.hpp"
#include "online_softmax_scene.hpp"
#include "scene.hpp"
#include "tiling_scene.hpp"

namespace tilestep::scenes {

std::vector<std::unique_ptr<Scene>> make_scenes() {
  std::vector<std::unique_ptr<Scene>> scenes;
  scenes.push_back(std::make_unique<OnlineSoftmaxScene>());
  scenes.push_back(std::make_unique<CoalescingScene>());
  scenes.push_back(std::make_unique<TilingScene>());
  scenes.push_back(std::make_unique<AccumulatorPrecisionScene>());
  scenes.push_back(std::make_unique<MoeRoutingScene>());
  return scenes;
}

}  // namespace tilestep::scenes
