#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/attention/shared/matrix.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/picture/picture.hpp"
#include "scenes/picture/view.hpp"
#include "scenes/shared/measured.hpp"

/// \file
/// What the pictures of all lessons on attention draw alike: the matrix of scores in tiles, strips on its axes, bytes.

namespace tilestep::scenes {

/// What has become of a tile of scores.
enum class TileFate : std::uint8_t {
  never,    ///< no block computes it: the mask hides all of it
  to_come,  ///< not yet computed
  now,      ///< it exists, in the registers of a block
  stored,   ///< it lies in memory
  gone      ///< it was used and left nowhere
};

/// The tone of each tensor; 0: none. Orange is too near to what is current, vermillion to what is wrong.
constexpr std::uint8_t tone_of(attention::Tensor tensor) {
  using attention::Tensor;
  switch (tensor) {
    case Tensor::k:
    case Tensor::dk:
      return 1;
    case Tensor::v:
    case Tensor::dv:
      return 7;
    case Tensor::o:
    case Tensor::dq:
    case Tensor::dq_sums:
      return 3;
    default:
      return 0;
  }
}

/// "384 B", "16.4 KB", "1.07 GB": powers of ten.
std::string bytes_text(double bytes);
/// The numbers of a tile's queries or keys: "32–63".
std::string rows_of(const attention::Matrix& trace, int tile, bool of_queries);

/// The axes of the matrix, and of all bytes that are asked for.
picture::Axis band_axis(picture::Name name, int count);
picture::Axis keys_axis(const attention::Matrix& trace);
double most_bytes(const attention::Matrix& trace);

/// A tensor's strip lights up with its bar and its bytes under Data.
void of_tensor(picture::Items& items, attention::Tensor tensor);
/// Columns that a cell shows where zeros fill some of a tile's.
inline constexpr int kChunk = 16;
/// Where zeros fill the columns of a tile, a cell stands for 16 columns, and those of zeros are hatched.
void hatch_filled(const attention::Matrix& trace, picture::Cells& cells, bool upright);

/// The matrix and its strips: all in device memory, but for what a box in it says otherwise of.
picture::Box in_device_memory(const attention::Matrix& trace, const char* tensors,
                              std::vector<picture::Box> rows);
/// A box for `layout` that is low: of strips above and below the matrix.
inline picture::Layout low(picture::Layout layout) {
  layout.least_height = 0.9f;
  return layout;
}

/// The matrix of scores on the axes "k" and "q": textures by the mask, states by what has become of each tile, which
/// leaves nothing; numbers are the order of the visits. Tiles of the chosen query lead to their steps.
picture::Cells score_cells(const attention::Matrix& trace,
                           const std::function<TileFate(int q_tile, int k_tile)>& fate);
/// A tile of scores in words, without what its visit did.
std::string explain_tile(const attention::Matrix& trace, int q_tile, int k_tile);
/// What the textures mean, and from the first step on how many tiles are of each kind.
picture::Box legend(const attention::Matrix& trace, bool begun, const char* skipped,
                    std::uint8_t glyph, int rank);
std::string explain_kind(int kind);
/// Whether a key is a tile of the matrix.
bool is_tile(const attention::Matrix& trace, const picture::Key& key);

// ---- bytes --------------------------------------------------------------------------------------------

struct Bytes {
  double loaded = 0, stored = 0;
};
/// Of a tensor what was asked for by now.
using BytesByNow = std::function<Bytes(const attention::LedgerRow&)>;
/// Tensors whose bytes share a bar.
using LedgerGroups = std::vector<std::vector<const attention::LedgerRow*>>;

/// A bar a group: filled what was asked for by now, in outline what the formula says of the launch. `wrong` is a tensor
/// that nobody needs.
picture::Box ledger_box(const LedgerGroups& groups, const BytesByNow& by_now, std::string_view who,
                        float left, const attention::LedgerRow* wrong = nullptr);
std::string explain_ledger(const LedgerGroups& groups, const BytesByNow& by_now,
                           const picture::Key& key, bool through);

// ---- the mask of all that was asked for: mask.cpp -------------------------------------------------------

/// Where a run explains a part; and documents one after another against a batch of them that is padded. To `beside`.
void add_masks(std::vector<picture::Box>& beside, const attention::Matrix& trace);
std::string explain_mask(const attention::Matrix& trace, const picture::Key& key);

// ---- lines --------------------------------------------------------------------------------------------

/// Formulas; where it is narrow what they come to, without the way there or the remark behind it.
std::vector<picture::Text> formula_texts(const std::vector<std::string>& rows,
                                         const std::vector<picture::Symbol>& symbols);
/// What there is to say, one line each: `result`, what a break did, comes first. `tight` spares height.
picture::Box notes_box(const attention::Matrix& trace, const picture::Text& result,
                       std::vector<std::string> lines, bool tight);

// ---- what is said and asked alike: said.cpp ------------------------------------------------------------

/// Tiles of scores that were computed by now; bytes, by `kernel` or (empty) reckoned; and how far a number is off.
Readout computed_readout(const attention::Matrix& trace, int tiles);
Readout bytes_readout(const char* label, double bytes, const std::string& kernel);
Readout off_readout(const attention::Matrix& trace, const char* label, double got, double exact,
                    bool failed);
/// Of how many tiles are computed; what a break came to, for `of`, "O", in a picture whose result is the box `outputs`.
Question visited_question(const attention::Matrix& trace, const char* verb,
                          std::vector<std::int64_t> others, std::string because);
std::string outcome_of(const attention::Matrix& trace, std::string_view of, bool several);
Question outcome_question(const attention::Matrix& trace, std::string_view broken,
                          std::string_view of, bool several);
/// The worst of it in numbers.
picture::Text result_sentence_of(const attention::Matrix& trace, bool names_tensor);
/// To what ℓ shrinks when a tile raises the maximum from `m_before` to `m_after`.
struct Shrinking {
  double m_before, m_after, l, rescale;
};
Question shrunk_sum_question(const attention::Matrix& trace, int k_tile, const Shrinking& by,
                             double most_l);
/// What the dispatcher chose where it is not what was asked for.
std::vector<std::string> dispatch_notes(const attention::Matrix& trace);
/// "query 5 of head 1, at keys 0–31".
std::string chosen_words(const attention::Matrix& trace, int k_tile);
/// What a bench has of a rung at head dimension 128 without a mask.
std::optional<double> rate_of(const lab::Report& bench, const char* table, std::string_view rung,
                              std::string_view length, std::string_view column = "tflops");
/// How a rung does beside cuDNN at length 16384. Nothing where that was not measured.
std::optional<Question> library_question(const lab::Report& bench, const char* view,
                                         const char* table, const char* rung);

// ---- measured: measured.cpp ----------------------------------------------------------------------------

/// The ladder beside cuDNN and PyTorch, lengths, and what a causal mask saves; which unit is busy, and what compiled
/// kernels take.
std::vector<measured::View> attention_rates(measured::Roles rung_role);
std::vector<measured::View> attention_units(measured::Roles rung_role);

}  // namespace tilestep::scenes
