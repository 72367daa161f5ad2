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
/// Drawing shared by the lessons on attention: the matrix of scores in tiles, strips on its axes, bytes.

namespace tilestep::scenes {

/// The fate of a tile of scores.
enum class TileFate : std::uint8_t {
  never,    ///< no block computes it: the mask hides all of it
  to_come,  ///< not yet computed
  now,      ///< it exists, in the registers of a block
  stored,   ///< it is in memory
  gone      ///< it was used and is stored nowhere
};

/// The tone of each tensor; 0: none. Orange is too close to the current tone, vermillion to the wrong one.
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

/// The axes of the matrix, and of all requested bytes.
picture::Axis band_axis(picture::Name name, int count);
picture::Axis keys_axis(const attention::Matrix& trace);
double most_bytes(const attention::Matrix& trace);

/// A tensor's strip lights up with its bar and its bytes under Data.
void of_tensor(picture::Items& items, attention::Tensor tensor);
/// Columns per cell where a tile is zero-padded.
inline constexpr int kChunk = 16;
/// In a zero-padded tile each cell stands for 16 columns, and the padding is hatched.
void hatch_filled(const attention::Matrix& trace, picture::Cells& cells, bool upright);

/// The matrix and its strips: all in device memory, unless a box inside says otherwise.
picture::Box in_device_memory(const attention::Matrix& trace, const char* tensors,
                              std::vector<picture::Box> rows);
/// A low box for `layout`, for the strips above and below the matrix.
inline picture::Layout low(picture::Layout layout) {
  layout.least_height = 0.9f;
  return layout;
}

/// The matrix of scores on the axes "k" and "q": textures by the mask, states by the fate of each tile, nothing left of
/// a used one; numbers are the order of the visits. Tiles of the chosen query lead to their steps.
picture::Cells score_cells(const attention::Matrix& trace,
                           const std::function<TileFate(int q_tile, int k_tile)>& fate);
/// A tile of scores in words, without the effect of its visit.
std::string explain_tile(const attention::Matrix& trace, int q_tile, int k_tile);
/// The meaning of the textures and, from the first step on, the tiles of each kind.
picture::Box legend(const attention::Matrix& trace, bool begun, const char* skipped,
                    std::uint8_t glyph, int rank);
std::string explain_kind(int kind);
/// Whether a key is a tile of the matrix.
bool is_tile(const attention::Matrix& trace, const picture::Key& key);

// ---- bytes --------------------------------------------------------------------------------------------

struct Bytes {
  double loaded = 0, stored = 0;
};
/// A tensor's bytes requested so far.
using BytesByNow = std::function<Bytes(const attention::LedgerRow&)>;
/// Tensors whose bytes share a bar.
using LedgerGroups = std::vector<std::vector<const attention::LedgerRow*>>;

/// One bar per group: filled by the bytes requested so far, outlined by the launch's formula. `wrong` is a tensor that
/// nothing needs.
picture::Box ledger_box(const LedgerGroups& groups, const BytesByNow& by_now, std::string_view who,
                        float left, const attention::LedgerRow* wrong = nullptr);
std::string explain_ledger(const LedgerGroups& groups, const BytesByNow& by_now,
                           const picture::Key& key, bool through);

// ---- the mask of the whole request: mask.cpp -----------------------------------------------------------

/// Added to `beside` where a run explains a part; and packed documents against a padded batch of them.
void add_masks(std::vector<picture::Box>& beside, const attention::Matrix& trace);
std::string explain_mask(const attention::Matrix& trace, const picture::Key& key);

// ---- lines --------------------------------------------------------------------------------------------

/// Formulas; where it is narrow only their result, without the intermediate terms or the remark.
std::vector<picture::Text> formula_texts(const std::vector<std::string>& rows,
                                         const std::vector<picture::Symbol>& symbols);
/// Notes, one line each: `result`, the effect of a break, comes first. `tight` saves height.
picture::Box notes_box(const attention::Matrix& trace, const picture::Text& result,
                       std::vector<std::string> lines, bool tight);

// ---- shared texts and questions: said.cpp --------------------------------------------------------------

/// Tiles of scores computed so far; bytes, from `kernel` or (empty) derived; and how far a number is off.
Readout computed_readout(const attention::Matrix& trace, int tiles);
Readout bytes_readout(const char* label, double bytes, const std::string& kernel);
Readout off_readout(const attention::Matrix& trace, const char* label, double got, double exact,
                    bool failed);
/// On how many tiles are computed; on the result of a break, for `of`, "O", shown in the box `outputs`.
Question visited_question(const attention::Matrix& trace, const char* verb,
                          std::vector<std::int64_t> others, std::string because);
std::string outcome_of(const attention::Matrix& trace, std::string_view of, bool several);
Question outcome_question(const attention::Matrix& trace, std::string_view broken,
                          std::string_view of, bool several);
/// The worst error in numbers.
picture::Text result_sentence_of(const attention::Matrix& trace, bool names_tensor);
/// The value ℓ shrinks to when a tile raises the maximum from `m_before` to `m_after`.
struct Shrinking {
  double m_before, m_after, l, rescale;
};
Question shrunk_sum_question(const attention::Matrix& trace, int k_tile, const Shrinking& by,
                             double most_l);
/// The dispatcher's choice where it differs from the request.
std::vector<std::string> dispatch_notes(const attention::Matrix& trace);
/// "query 5 of head 1, at keys 0–31".
std::string chosen_words(const attention::Matrix& trace, int k_tile);
/// A rung's measured value at head dimension 128 without a mask.
std::optional<double> rate_of(const lab::Report& bench, const char* table, std::string_view rung,
                              std::string_view length, std::string_view column = "tflops");
/// A rung's rate beside cuDNN at length 16384. Nothing where it was not measured.
std::optional<Question> library_question(const lab::Report& bench, const char* view,
                                         const char* table, const char* rung);

// ---- measured: measured.cpp ----------------------------------------------------------------------------

/// The ladder beside cuDNN and PyTorch, lengths, and the gain of a causal mask; busy units, and the resources of the
/// compiled kernels.
std::vector<measured::View> attention_rates(measured::Roles rung_role);
std::vector<measured::View> attention_units(measured::Roles rung_role);

}  // namespace tilestep::scenes
