// What the tiling lesson asks before a step; every answer is read off the trace.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "scenes/matmul/tiling/scene.hpp"

namespace tilestep::scenes {
namespace {

int total(const std::vector<int>& values) {
  return std::accumulate(values.begin(), values.end(), 0);
}

}  // namespace

Question TilingScene::load_question(int number) const {
  const tiling::KTile& tile = k_tile(number);
  const int of_a = total(tile.a_loads);
  const int of_b = total(tile.b_loads);
  const int products = trace_.rows() * trace_.columns() * depth(number);
  const int elements = (trace_.rows() + trace_.columns()) * depth(number);
  const int threads = trace_.tile * trace_.tile;
  return about(
      {"loads"},
      ask_count(
          fmt::format(
              "K-tile {} has {} products. How many elements does the block load from global "
              "memory for it?",
              number, products),
          of_a + of_b, {2 * products, elements, products, threads, 2 * threads},
          shared()
              ? fmt::format("{} of A and {} of B, each once, by {} threads.", of_a, of_b, threads)
              : fmt::format(
                    "Two per product: {} of A and {} of B, although only {} of them differ.", of_a,
                    of_b, elements)));
}

Question TilingScene::reuse_question() const {
  const std::vector<int>& reads = k_tile(1).a_reads;
  const int answer = *std::max_element(reads.begin(), reads.end());
  const int tile = trace_.tile;
  return about(
      {"tiles"},
      ask_count(
          "How many times will each element of the A tile be read from shared memory in this "
          "k-tile?",
          answer, {tile, 1, 2 * tile, tile * tile},
          fmt::format("Once by each of the {0} threads in its row: {0} uses for one trip to global "
                      "memory.",
                      answer)));
}

Question TilingScene::race_question() const {
  const tiling::Races& races = trace_.races;
  std::string because =
      fmt::format("In {} of {} ({}).", races.wrong_orders, races.orders, races.where);
  if (races.wrong_orders == 0 && k_tiles() == 1) {
    because += " There is no second k-tile that could overwrite the first.";
  }
  return about(
      {"block"},
      ask_scale(
          fmt::format("The barrier {} is gone. In how many of {} thread orders will C be wrong?",
                      name_of(params_.remove_barrier), races.orders),
          {"In none", "In some", "In all"},
          races.wrong_orders == 0             ? 0
          : races.wrong_orders < races.orders ? 1
                                              : 2,
          std::move(because)));
}

std::optional<Question> TilingScene::question(const View& view) const {
  const int next = view.cursor.tile;
  if (next >= k_tiles() || view.cursor.phase != steps().phases - 1) return std::nullopt;
  const bool last = next == k_tiles() - 1;
  // The picture says at its end what the races did.
  if (last && trace_.races.orders > 0) return race_question();
  if (next == 0) return load_question(0);
  if (next == 1 && shared()) return reuse_question();
  if (last && depth(next) < trace_.tile) return load_question(next);
  return std::nullopt;
}

}  // namespace tilestep::scenes
