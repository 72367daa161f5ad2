#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tilestep::workbench {

/// Inline PTX in C++: what kernels/base/simt/toolkit/ptx.hpp and mma.hpp have words for.
struct PtxWords {
  std::string statements;  ///< operand i is called simt_i
  std::string refused;     ///< the instruction that has none; then `statements` are empty
};
/// The code of an asm statement with so many operands. `extended`: there was a colon, so that %%
/// stands for %.
PtxWords words_of_ptx(std::string_view code, std::size_t operands, bool extended);

}  // namespace tilestep::workbench
