// The ledger of a decoder block: what may be fused, what it saves, and the best of all.

#include "kernels/systems/fusion/ledger.hpp"

#include <set>

#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::fusion;
using tests::contains;

namespace {

Score score_with(std::string_view seams) {
  return score_of(chosen_of(seams).fused, Dtype::bf16);
}

}  // namespace

TEST_CASE("Ledger: unfused, every tensor is written and read", "[fusion]") {
  // Norms, codes and additions of a row of 1; QKV 1.5, gate and up 7, SwiGLU 3.5 numbers. Products read codes.
  const double norms = 2 * (2 + 2), codes = 3 * (2 + 1) + 3.5 * (2 + 1), adds = 2 * (2 + 2 + 2);
  const double products = (1 + 3) + (1 + 2) + (1 + 14) + (3.5 + 2),
               others = (3 + 3) + (3 + 2) + (14 + 7);
  CHECK(score_of({}, Dtype::bf16).bytes == norms + codes + adds + products + others);
  CHECK(score_of({}, Dtype::bf16).launches == kOps);
}

TEST_CASE("Ledger: a seam saves a write and a read, of the residual stream the read", "[fusion]") {
  const double all = score_of({}, Dtype::bf16).bytes;
  CHECK(score_with("1").bytes == all - 4);    // n
  CHECK(score_with("7").bytes == all - 4);    // what the projection gives
  CHECK(score_with("8").bytes == all - 2);    // h is written for the next residual
  CHECK(score_with("11").bytes == all - 28);  // gate and up
  CHECK(score_with("12").bytes == all - 14);  // SwiGLU's
  CHECK(score_with("8,9").bytes == all - 6);
  CHECK(score_with("8,9").launches == kOps - 2);
}

TEST_CASE("Ledger: what needs a whole row follows no tile, and nothing comes before a product",
          "[fusion]") {
  const std::set<int> open = {1, 3, 4, 7, 8, 9, 11, 12, 14};
  for (int seam = 1; seam <= kSeams; ++seam) {
    INFO(seam);
    CHECK(chosen_of(std::to_string(seam)).fused[static_cast<std::size_t>(seam) - 1] ==
          (open.count(seam) > 0));
  }
  CHECK(contains(chosen_of("2").refused[1], "every tile"));
  CHECK(contains(chosen_of("5").refused[4], "all heads"));
  CHECK(contains(chosen_of("3,4").refused[3], "keys of all tokens"));
  CHECK(contains(chosen_of("7,8").refused[7], "a part of each row"));
  // The order is the student's.
  CHECK(chosen_of("11,12").fused[10]);
  CHECK(!chosen_of("11,12").fused[11]);
  CHECK(chosen_of("12,11").fused[11]);
  CHECK(!chosen_of("12,11").fused[10]);
}

TEST_CASE("Ledger: the best is the best of all that are legal", "[fusion]") {
  for (const Dtype type : all_of<Dtype>()) {
    for (const int tokens : {1, 64, 65536}) {
      const Seams best = best_seams(type, 4096, tokens);
      const double least = score_of(best, type).microseconds(4096, tokens);
      int legal = 0;
      for_each_legal([&](const Seams& seams) {
        ++legal;
        CHECK(score_of(seams, type).microseconds(4096, tokens) >= least);
      });
      // Seams 1, 3 or 4 or neither, those of 7 to 9 but not 7 with 8, one of 11 and 12 or none, 14.
      CHECK(legal == 2 * 3 * 6 * 3 * 2);
      CHECK(score_of(best, type).launches == 9);
      CHECK(best == chosen_of("best").fused);
    }
  }
  CHECK(best_seams(Dtype::bf16, 4096, 16) == chosen_of("1,3,7,9,11,14").fused);
}

TEST_CASE("Ledger: lists of seams", "[fusion]") {
  for (const char* good : {"", "1", "14", "8,9", "14,1,3", "best"}) CHECK(is_list_of_seams(good));
  for (const char* bad : {"0", "15", "8,", ",8", "8,,9", "8,8", "a", "8 9", "001", "-1"})
    CHECK(!is_list_of_seams(bad));
  CHECK(with_turned("8,9", 8) == "9");
  CHECK(with_turned("9", 8) == "9,8");
  CHECK(with_turned("9", 9).empty());
  CHECK(with_turned("best", 11) == "1,3,7,9,14");
}
