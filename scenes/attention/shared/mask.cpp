// The mask of the whole request, where a run explains only a part of it, and packed documents against a padded batch
// of them.
#include <fmt/format.h>

#include <algorithm>

#include "scenes/attention/shared/matrix.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using attention::MaskRule, attention::Matrix, attention::TileKind;
using words::counted;

namespace {

constexpr int kMostMask = 24;    ///< tiles of the whole mask, along each side
constexpr int kMostPadded = 24;  ///< tiles of the longest document
constexpr int kMostDocuments = 8;

/// Tokens per cell of the whole mask: a tile of keys, or several where there would be too many cells.
int mask_edge(const Matrix& trace) {
  const int size = trace.plan.block_k;
  const int tiles = (trace.shape.asked_length + size - 1) / size;
  return (tiles + kMostMask - 1) / kMostMask * size;
}

/// The mask of the whole length, one or several of the kernel's tiles per cell; the part that ran is framed.
Box whole_mask(const Matrix& trace) {
  const int length = trace.shape.asked_length;
  const int edge = mask_edge(trace), across = (length + edge - 1) / edge;
  const MaskRule rule = trace.asked_rule();
  std::vector<int> begins;
  int first = 0;
  for (const int each : trace.documents) {
    begins.insert(begins.end(), static_cast<std::size_t>(each), first);
    first += each;
  }
  Cells grid{items("whole", across * across)};
  grid.items.per_row = grid.columns = across;
  grid.items.heat = true;
  for (int i = 0; i < across * across; ++i) {
    const int q = i / across * edge, k = i % across * edge;
    const TileKind kind =
        rule.kind(q, std::min(q + edge, length) - 1, k, std::min(k + edge, length) - 1, begins);
    grid.items.state.each.push_back(kind == TileKind::skipped ? State::to_come : State::plain);
    grid.items.value.each.push_back(kind == TileKind::full ? 1.0f : 0.6f);
    grid.items.glyph.each.push_back(kind == TileKind::skipped ? kHollow : kSolid);
  }
  const int part = std::max((trace.shape.length + edge - 1) / edge, 1) - 1;
  std::vector<Mark> marks;
  marks.emplace_back(std::move(grid));
  marks.emplace_back(Frame{{"ran"}, {{"whole", 0, 0}, {"whole", part, part}}, State::current});
  return box({"whole_mask"}, std::move(marks),
             text(fmt::format("all {} × {}; framed: the traced part", length, length),
                  fmt::format("all {} × {}", length, length), "all"),
             {.rank = 5, .weight = 0.8f, .least_width = 8, .least_height = 5.4f});
}

/// One document per row, in tiles of queries: hatched is the padding of a batch.
Box padding(const Matrix& trace) {
  const std::vector<int>& lengths = trace.documents;
  const int longest = *std::max_element(lengths.begin(), lengths.end());
  const int size = trace.plan.block_q, tiles = (longest + size - 1) / size;
  const int edge = (tiles + kMostPadded - 1) / kMostPadded * size;
  const int across = (longest + edge - 1) / edge;
  const int rows = std::min(static_cast<int>(lengths.size()), kMostDocuments);
  Cells grid{items("document", rows * across)};
  grid.items.per_row = grid.columns = across;
  for (int i = 0; i < rows * across; ++i) {
    const int length = lengths[static_cast<std::size_t>(i / across)];
    grid.items.state.each.push_back(i % across * edge < length ? State::plain : State::wasted);
  }
  const auto all = static_cast<double>(longest) * static_cast<double>(lengths.size());
  const double share = 1 - static_cast<double>(trace.shape.asked_length) / all;
  std::string label = fmt::format("{}, padded to the longest: {} of the rows wasted",
                                  counted(std::ssize(lengths), "document"), words::percent(share));
  if (rows < std::ssize(lengths)) label += fmt::format(" (the first {})", rows);
  return box(
      {"padding"}, {std::move(grid)},
      text(std::move(label), fmt::format("padded: {} wasted", words::percent(share)), "padded"),
      {.rank = 5, .weight = 0.3f, .least_width = 8, .least_height = 2.2f, .most_height = 5});
}

}  // namespace

void add_masks(std::vector<Box>& beside, const Matrix& trace) {
  if (trace.shape.asked_length > trace.shape.length) beside.push_back(whole_mask(trace));
  if (trace.documents.size() > 1) beside.push_back(padding(trace));
}

std::string explain_mask(const Matrix& trace, const Key& key) {
  if (key.is({"document"}) && key.i >= 0 && key.i < std::ssize(trace.documents)) {
    return fmt::format("document {}: {}", key.i,
                       counted(trace.documents[static_cast<std::size_t>(key.i)], "token"));
  }
  if (!key.is({"whole"})) return {};
  const int edge = mask_edge(trace), length = trace.shape.asked_length;
  const auto range = [&](int i) {
    return fmt::format("{}–{}", i * edge, std::min((i + 1) * edge, length) - 1);
  };
  return fmt::format("queries {} × keys {}", range(key.i), range(key.j));
}

}  // namespace tilestep::scenes
