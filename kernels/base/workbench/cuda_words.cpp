#include "kernels/base/workbench/cuda_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/workbench/inline_ptx.hpp"

namespace tilestep::workbench {
namespace {

struct Refused {
  std::string_view word;  ///< before a bracket, or cuda…; with a * at its end: all that begin so
  std::string_view instead;
};

constexpr std::string_view kNoMask =
    "it has no mask, and no GPU from compute capability 7.0 on knows it; write the word with _sync "
    "and the mask of the "
    "lanes, 0xffffffff for all";
constexpr std::string_view kNoTexture =
    "textures and surfaces are not emulated; read the array itself, with __ldg(&array[i])";
constexpr std::string_view kNoHost =
    "an edited source holds only kernels; memory, copies and launches belong to the lesson's "
    "launch.cu";
constexpr std::string_view kNoSpace =
    "under emulation an address does not tell its memory space; keep pointers to shared and to "
    "global memory apart";
constexpr std::string_view kNoGroup =
    "of cooperative groups this_thread_block, this_grid, tiled_partition<N> and coalesced_threads "
    "are emulated; use a tile of a warp";
constexpr std::string_view kNoPipeline =
    "use simt::cp_async16, cp_async_commit and cp_async_wait of kernels/base/simt/mma.hpp";
constexpr std::string_view kNoBarrier =
    "use the mbarriers of kernels/base/simt/hopper.hpp, or __syncthreads()";
constexpr std::string_view kNoLibrary =
    "CUDA's libraries are not emulated; write that part as a kernel, or do it on the host";
constexpr std::string_view kNoBlas =
    "the emulation of cuBLAS has gemm, gemv, axpy, scal, dot and nrm2 in float and double; use "
    "cublasSgemm, or write that part as a kernel";
constexpr std::string_view kNoMma =
    "use simt::mma_m16n8k16_bf16 and its like of kernels/base/simt/mma.hpp";

constexpr auto kRefused = std::to_array<Refused>({
    {"__shfl", kNoMask},
    {"__shfl_up", kNoMask},
    {"__shfl_down", kNoMask},
    {"__shfl_xor", kNoMask},
    {"__ballot", kNoMask},
    {"__any", kNoMask},
    {"__all", kNoMask},
    {"tex1D*", kNoTexture},
    {"tex2D*", kNoTexture},
    {"tex3D*", kNoTexture},
    {"cudaTexture*", kNoTexture},
    {"cudaSurface*", kNoTexture},
    {"surf1D*", kNoTexture},
    {"surf2D*", kNoTexture},
    {"surf3D*", kNoTexture},
    {"cudaMalloc*", kNoHost},
    {"cudaFree*", kNoHost},
    {"cudaMemcpy*", kNoHost},
    {"cudaMemset*", kNoHost},
    {"cudaLaunch*", kNoHost},
    {"cudaStream*", kNoHost},
    {"cudaEvent*", kNoHost},
    {"cudaDeviceSynchronize", kNoHost},
    {"cudaGetLastError", kNoHost},
    {"__isGlobal", kNoSpace},
    {"__isShared", kNoSpace},
    {"__isConstant", kNoSpace},
    {"__isLocal", kNoSpace},
    {"__isGridConstant", kNoSpace},
    {"__cvta_*", kNoSpace},
    {"this_cluster", kNoGroup},
    {"this_multi_grid", kNoGroup},
    {"labeled_partition", kNoGroup},
    {"binary_partition", kNoGroup},
    {"memcpy_async", kNoPipeline},
    {"__pipeline_*", kNoPipeline},
    {"cublasGemm*", kNoBlas},
    {"cublasHgemm*", kNoBlas},
    {"cublasSgemmEx", kNoBlas},
    {"cublasSgemmBatched", kNoBlas},
    {"cublasDgemmBatched", kNoBlas},
    {"cublasSgemmStridedBatched", kNoBlas},
    {"cublasDgemmStridedBatched", kNoBlas},
    {"cublasCgemm*", kNoBlas},
    {"cublasZgemm*", kNoBlas},
    {"cublasLt*", kNoBlas},
    {"__cluster_dims__", "the lesson's launch.cu sets the number of blocks per cluster"},
});
constexpr auto kRefusedHeaders = std::to_array<Refused>({
    {"mma.h", kNoMma},
    {"cuda_pipeline*", kNoPipeline},
    {"cuda/pipeline", kNoPipeline},
    {"cuda/barrier", kNoBarrier},
    {"cooperative_groups/memcpy_async.h", kNoPipeline},
    {"cuda_fp8.h", "use numeric::E4m3 and numeric::E5m2 of kernels/base/numeric/small_float.hpp"},
    {"cub/*", "CUB is not emulated; write the reduction or scan with shuffles and shared memory"},
    {"thrust/*", "Thrust calls kernels from the host; an edited source holds only kernels"},
    {"cublas*", kNoLibrary},
    {"cudnn*", kNoLibrary},
    {"cufft*", kNoLibrary},
    {"cusparse*", kNoLibrary},
    {"cusolver*", kNoLibrary},
    {"nccl*", kNoLibrary},
    {"nvToolsExt*", "profilers' marks are not emulated; leave them out"},
    {"nvtx3/*", "profilers' marks are not emulated; leave them out"},
    {"cuda_profiler_api*", "profilers are not emulated; leave it out"},
    {"torch/*", "PyTorch's extensions are not emulated; give the kernel a main of its own"},
    {"ATen/*", "PyTorch's extensions are not emulated; give the kernel a main of its own"},
    {"curand*",
     "cuRAND's host side is not emulated; draw the numbers in a kernel with curand_kernel.h"},
    {"cuda/*", "libcu++ is not emulated; use the C++ standard library's header or the CUDA word"},
    {"cute/*", "CUTLASS is not emulated; use kernels/base/simt/mma.hpp or hopper.hpp"},
    {"cutlass/*", "CUTLASS is not emulated; use kernels/base/simt/mma.hpp or hopper.hpp"},
});

/// What is said of `word`; nothing if it may stay.
template <std::size_t kCount>
std::string_view instead_of(std::string_view word, const std::array<Refused, kCount>& all) {
  for (const Refused& each : all) {
    const bool begins = each.word.ends_with('*');
    if (begins ? word.starts_with(each.word.substr(0, each.word.size() - 1)) : word == each.word) {
      return each.instead;
    }
  }
  return {};
}

bool starts_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}
bool in_word(char c) {
  return starts_word(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// A word, a number, a literal or a single sign of the code.
struct Token {
  std::size_t begin, end;
  bool directive;  ///< in a line of the preprocessor
};

/// An #include with the name that stands in it.
struct Include {
  std::size_t begin, end;
  std::string_view name;
};

/// Takes a source apart, without what no preprocessor looks at.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {
    while (at_ < text_.size()) step();
  }
  std::vector<Token> tokens;
  std::vector<Include> includes;

 private:
  bool next_is(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  /// Up to the end of the line, over those that end with a backslash.
  void skip_line() {
    do {
      at_ = std::min(text_.find('\n', at_ + 1), text_.size());
    } while (at_ < text_.size() && text_[at_ - 1] == '\\');
  }
  void skip_literal(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
  }
  void skip_raw_literal() {
    const std::size_t open = std::min(text_.find('(', at_), text_.size());
    const std::string close = fmt::format("){}\"", text_.substr(at_ + 1, open - at_ - 1));
    const std::size_t end = text_.find(close, open);
    at_ = end == text_.npos ? text_.size() : end + close.size();
  }
  void take(std::size_t begin) { tokens.push_back({begin, at_, directive_}); }

  void step() {
    const std::size_t begin = at_;
    const char c = text_[at_];
    if (c == '\n') {
      directive_ = directive_ && at_ > 0 && text_[at_ - 1] == '\\';
      line_begins_ = true;
      ++at_;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at_;
    } else if (next_is("//")) {
      skip_line();
    } else if (next_is("/*")) {
      const std::size_t end = text_.find("*/", at_ + 2);
      at_ = end == text_.npos ? text_.size() : end + 2;
    } else if (c == '#' && line_begins_) {
      begin_directive();
    } else {
      line_begins_ = false;
      if (c == '"' || c == '\'') {
        skip_literal(c);
      } else if (starts_word(c)) {
        while (at_ < text_.size() && in_word(text_[at_])) ++at_;
        const std::string_view word = text_.substr(begin, at_ - begin);
        const bool literal = at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'') &&
                             word.size() <= 3 && word.find_first_not_of("uUL8R") == word.npos;
        if (literal && word.ends_with('R'))
          skip_raw_literal();
        else if (literal)
          skip_literal(text_[at_]);
      } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
        while (at_ < text_.size() &&
               (in_word(text_[at_]) || text_[at_] == '.' || text_[at_] == '\''))
          ++at_;
      } else {
        ++at_;
      }
      take(begin);
    }
  }

  void begin_directive() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_not_of(" \t", at_ + 1), text_.size());
    const std::size_t word = at_;
    while (at_ < text_.size() && in_word(text_[at_])) ++at_;
    const std::string_view name = text_.substr(word, at_ - word);
    if (name == "include") {
      const std::size_t open = std::min(text_.find_first_of("<\"\n", at_), text_.size());
      const std::size_t close = std::min(text_.find_first_of(">\"\n", open + 1), text_.size());
      skip_line();
      if (open < close) includes.push_back({begin, at_, text_.substr(open + 1, close - open - 1)});
    } else if (name == "error" || name == "warning" || name == "pragma") {
      skip_line();
    } else {
      directive_ = true;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool line_begins_ = true, directive_ = false;
};

/// Calls whose first argument is the address of a pointer that a program calls its array by.
constexpr auto kAllocators =
    std::to_array<std::string_view>({"cudaMalloc", "cudaMallocManaged", "cudaMallocHost",
                                     "cudaHostAlloc", "cudaMallocAsync", "cudaMallocPitch"});

class Rewriter {
 public:
  Rewriter(std::string_view text, Written written)
      : program_(written == Written::program),
        timed_(written == Written::timed),
        text_(text),
        lexer_(text),
        tokens_(lexer_.tokens) {}

  std::string rewritten() {
    for (const Include& each : lexer_.includes) {
      if (timed_) break;
      const std::string_view instead = instead_of(each.name, kRefusedHeaders);
      if (instead.empty() || each.name == "curand_kernel.h") continue;
      if (program_ && (each.name == "mma.h" || each.name == "cublas_v2.h")) continue;
      replace(each.begin, each.end,
              fmt::format("#pragma GCC error \"<{}>: {}\"", each.name, instead));
    }
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      look_at(i);
      follow_scope(i);
    }
    std::stable_sort(edits_.begin(), edits_.end(),
                     [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
    std::string all;
    std::size_t done = 0;
    for (const Edit& edit : edits_) {
      if (edit.begin < done) continue;  // of what cannot be read anyway
      all.append(text_, done, edit.begin - done).append(edit.text);
      done = edit.end;
    }
    return all.append(text_, done);
  }

 private:
  struct Edit {
    std::size_t begin, end;
    std::string text;
  };

  /// The token's text; empty past the end.
  std::string_view word(std::size_t i) const {
    return i < tokens_.size() ? text_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin)
                              : std::string_view();
  }
  void replace(std::size_t begin, std::size_t end, std::string text) {
    // Whatever was there, the lines below it keep their numbers.
    const auto lost = std::count(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                                 text_.begin() + static_cast<std::ptrdiff_t>(end), '\n') -
                      std::count(text.begin(), text.end(), '\n');
    if (lost > 0) text.append(static_cast<std::size_t>(lost), '\n');
    edits_.push_back({begin, end, std::move(text)});
  }
  void replace(std::size_t i, std::string text) {
    replace(tokens_[i].begin, tokens_[i].end, std::move(text));
  }
  void blank(std::size_t first, std::size_t last) {
    for (std::size_t at = tokens_[first].begin; at < tokens_[last].end; ++at) {
      if (text_[at] != '\n') replace(at, at + 1, " ");
    }
  }
  /// An error in the token's line, if the preprocessor does not leave it out.
  void refuse(std::size_t i, std::string_view what, std::string_view instead) {
    replace(tokens_[i].begin, tokens_[i].begin,
            fmt::format(" _Pragma(\"GCC error \\\"{}: {}\\\"\") ", what, instead));
  }
  /// The token after the group that opens at `i`; kNone if it is too long, or never closed.
  std::size_t after_group(std::size_t i, std::string_view open, std::string_view close) const {
    const std::size_t last = std::min(tokens_.size(), i + kLongest);
    for (int depth = 0; i < last; ++i) {
      if (word(i) == open) ++depth;
      if (word(i) == close && --depth == 0) return i + 1;
    }
    return kNone;
  }

  void look_at(std::size_t i) {
    const std::string_view name = word(i), next = word(i + 1);
    const std::string_view before = i == 0 ? std::string_view() : word(i - 1);
    if (timed_) {
      if (name == "<" && is_run(i, "<<<") && before != "<" && before != "operator") launch(i);
      return;
    }
    if (name == "extern") {
      share(i);
    } else if (name == "reinterpret_cast") {
      replace(i, "simt_reinterpret");
    } else if (name == "__noinline__" && before != "(") {
      replace(i, "SIMT_OUTLINE");
    } else if (name == "asm" || name == "__asm__" || name == "__asm") {
      assembly(i);
    } else if (name == "<" && is_run(i, "<<<") && before != "<" && before != "operator") {
      if (program_) {
        launch(i);
      } else {
        refuse(i, "<<< >>>",
               "a kernel cannot launch another one here; the lesson's launch.cu launches");
      }
    } else if (program_ && name == "main" && next == "(" && open_.empty() &&
               !tokens_[i].directive) {
      replace(tokens_[i].begin, tokens_[i].begin, "__attribute__((visibility(\"default\"))) ");
    } else if (next == "(" || next == "<" || name.starts_with("cuda")) {
      const std::string_view instead = instead_of(name, kRefused);
      if (!instead.empty() && !(program_ && has_word(name, instead))) refuse(i, name, instead);
      if (program_ && next == "(" &&
          std::find(kAllocators.begin(), kAllocators.end(), name) != kAllocators.end()) {
        name_array(i + 1);
      }
    }
  }

  /// Whether a whole program may use the word, which an edited source may not.
  static bool has_word(std::string_view name, std::string_view instead) {
    if (instead == kNoHost) return name != "cudaLaunch" && name != "cudaLaunchKernel";
    return name == "__cvta_generic_to_shared" || name == "__cvta_shared_to_generic" ||
           name == "__cvta_generic_to_global";
  }

  /// Whether the tokens from `i` on are these signs, with nothing between them.
  bool is_run(std::size_t i, std::string_view signs) const {
    return i + signs.size() <= tokens_.size() &&
           text_.substr(tokens_[i].begin).starts_with(signs) &&
           tokens_[i + signs.size() - 1].begin == tokens_[i].begin + signs.size() - 1;
  }

  /// The value of a string literal without a prefix; nothing for any other token.
  static std::optional<std::string> text_of(std::string_view literal) {
    if (literal.starts_with("R\"")) {
      const std::size_t open = literal.find('('), close = literal.rfind(')');
      if (open == literal.npos || close == literal.npos || close < open) return {};
      return std::string(literal.substr(open + 1, close - open - 1));
    }
    if (literal.size() < 2 || !literal.starts_with('"') || !literal.ends_with('"')) return {};
    std::string text;
    for (std::size_t i = 1; i + 1 < literal.size(); ++i) {
      if (literal[i] != '\\') {
        text += literal[i];
        continue;
      }
      const char escaped = literal[++i];
      if (escaped == 'n' || escaped == 't' || escaped == 'r' || escaped == 'v' || escaped == 'f' ||
          escaped == '\n') {
        text += escaped == 'n' || escaped == 'r' ? "\n" : " ";
      } else if (escaped == '"' || escaped == '\\' || escaped == '\'' || escaped == '?') {
        text += escaped;
      } else {
        return {};
      }
    }
    return text;
  }

  /// An asm statement, taken apart. `replaced`: the tokens outside its expressions, each with the text
  /// that replaces it.
  struct Assembly {
    std::string code;
    std::size_t operands = 0;
    bool extended = false;
    std::vector<std::pair<std::size_t, std::string_view>> replaced;
  };
  /// Its bracket is token `open`; nothing where it is not a template in strings with operands.
  std::optional<Assembly> parse_assembly(std::size_t open) const {
    Assembly all;
    std::size_t at = open + 1;
    // In a macro, lines that go on end with a token of their own.
    const auto skip = [&] {
      while (word(at) == "\\") ++at;
    };
    const auto drop = [&] {
      all.replaced.emplace_back(at++, "");
      skip();
    };
    skip();
    for (; const auto text = text_of(word(at)); drop()) all.code += *text;
    for (int section = 0; word(at) == ":"; ++section) {
      all.extended = true;
      drop();
      if (section > 2) return {};
      while (word(at) != ":" && word(at) != ")") {
        if (!text_of(word(at))) return {};
        drop();
        if (section < 2) {
          if (word(at) != "(") return {};
          // Operands are the arguments of a call: a comma stands before all but the first.
          if (all.operands++ > 0) all.replaced.back().second = ",";
          int depth = 0;
          do {
            depth += word(at) == "(" ? 1 : word(at) == ")" ? -1 : 0;
            ++at;
          } while (depth > 0 && at < tokens_.size());
          skip();
        }
        if (word(at) == ",") {
          drop();
        } else if (word(at) != ":" && word(at) != ")") {
          return {};
        }
      }
    }
    if (word(at) != ")") return {};
    return all;
  }

  /// asm: PTX that has words here becomes a call with its operands, and the rest an error.
  void assembly(std::size_t i) {
    std::size_t open = i + 1;
    while (word(open) == "volatile" || word(open) == "__volatile__" || word(open) == "\\") ++open;
    if (word(open) != "(" || word(open + 1) == "\"\"") return;
    if (!program_) {
      return refuse(i, word(i),
                    "PTX is not emulated; keep it between #if defined(__CUDACC__) and #else, or "
                    "use the words of kernels/base/simt/packed.hpp, mma.hpp and hopper.hpp");
    }
    const std::optional<Assembly> all = parse_assembly(open);
    PtxWords words;
    if (all) words = words_of_ptx(all->code, all->operands, all->extended);
    if (!all || !words.refused.empty()) {
      std::string name;
      for (const char c : words.refused.substr(0, 60))
        name += in_word(c) || c == '.' || c == '@' ? c : ' ';
      return refuse(
          i, word(i),
          fmt::format(
              "{} is not emulated; use %laneid and its like, bar.sync 0, cp.async, ldmatrix, "
              "mma.m16n8k16, ex2.approx or cvt.rn to pairs of BF16 or FP16, and keep the "
              "rest between #if defined(__CUDACC__) and #else",
              all ? fmt::format("the instruction {}", name)
                  : std::string("PTX that is not in strings with operands")));
    }
    std::string parameters;
    for (std::size_t operand = 0; operand < all->operands; ++operand)
      parameters += fmt::format("{}auto&& simt_{}", operand == 0 ? "" : ", ", operand);
    replace(i, fmt::format("[]({}) __attribute__((always_inline)) {{ {}}}", parameters,
                           words.statements));
    for (std::size_t at = i + 1; at < open; ++at) {
      if (word(at) != "\\") replace(at, "");
    }
    for (const auto& [at, instead] : all->replaced) replace(at, std::string(instead));
  }

  /// The call of an allocator, whose bracket is token `open`: its array is called as its pointer is.
  void name_array(std::size_t open) {
    std::string_view name;
    int depth = 0;
    for (std::size_t i = open + 1; i < std::min(tokens_.size(), open + kLongest); ++i) {
      const std::string_view each = word(i);
      if (depth == 0 && (each == "," || each == ")")) break;
      depth += each == "(" || each == "[" ? 1 : each == ")" || each == "]" ? -1 : 0;
      if (depth == 0 && starts_word(each[0]) && std::all_of(each.begin(), each.end(), in_word)) {
        name = each;
      }
    }
    if (name.empty() || name.size() > 40) return;
    replace(tokens_[open].end, tokens_[open].end, fmt::format("::simt_name{{\"{}\"}}, ", name));
  }

  /// The first token of the expression that ends before token `i`: `k`, `space::k<T, 4>`, `(k)`, `table[2]`, `of.k`, `f()`.
  std::size_t begin_of_callee(std::size_t i) const {
    std::size_t begin = i;
    while (begin > 0) {
      std::size_t at = begin - 1;
      const std::string_view last = word(at);
      if (last == ">" || last == ")" || last == "]") {
        const std::string_view open = last == ">" ? "<" : last == ")" ? "(" : "[";
        int depth = 0, inner = 0;
        for (;; --at) {
          const std::string_view each = word(at);
          if (open == "<" && (each == ")" || each == "]")) ++inner;
          if (open == "<" && (each == "(" || each == "[")) --inner;
          if (inner == 0 && each == last && !(each == ">" && at > 0 && word(at - 1) == "-"))
            ++depth;
          if (inner == 0 && each == open && --depth == 0) break;
          if (at == 0 || begin - at > kLongest || each == ";" || each == "{" || each == "}")
            return kNone;
        }
        begin = at;
        // What comes before the brackets is what is called, indexed or made; a bracket by itself is all there is.
        if (at > 0 &&
            (starts_word(word(at - 1)[0]) || word(at - 1) == ">" || word(at - 1) == "]")) {
          if (word(at - 1) == "return" || word(at - 1) == "else") return begin;
          continue;
        }
        return last == ")" ? begin : kNone;
      }
      if (!starts_word(last[0])) return begin == i ? kNone : begin;
      begin = at;
      if (begin >= 2 && word(begin - 1) == ":" && word(begin - 2) == ":") {
        begin -= 2;
        const bool more = begin > 0 && (starts_word(word(begin - 1)[0]) || word(begin - 1) == ">");
        if (!more || word(begin - 1) == "return" || word(begin - 1) == "else") return begin;
      } else if (begin >= 1 && word(begin - 1) == ".") {
        begin -= 1;
      } else if (begin >= 2 && word(begin - 1) == ">" && word(begin - 2) == "-") {
        begin -= 2;
      } else {
        return begin;
      }
    }
    return begin == i ? kNone : begin;
  }

  static std::string one_line(std::string_view text) {
    std::string line(text);
    std::replace(line.begin(), line.end(), '\n', ' ');
    return line;
  }

  /// callee<<<shape>>>(arguments), whose `<<<` begins at token `i`.
  void launch(std::size_t i) {
    const std::size_t begin = begin_of_callee(i);
    std::size_t close = kNone, stream = kNone;
    int depth = 0, commas = 0;
    for (std::size_t at = i + 3; at < std::min(tokens_.size(), i + kLongest); ++at) {
      const std::string_view each = word(at);
      if (each == "(" || each == "[" || each == "{") ++depth;
      if (each == ")" || each == "]" || each == "}") --depth;
      if (depth < 0 || each == ";") break;
      if (depth == 0 && each == "," && ++commas == 3) stream = at + 1;
      if (depth == 0 && is_run(at, ">>>") && word(at + 3) == "(") {
        close = at;
        break;
      }
    }
    if (begin == kNone || close == kNone) return;  // the compiler says what is wrong
    if (timed_) {
      const std::size_t end = after_group(close + 3, "(", ")");
      if (end == kNone) return;
      const std::string_view on =
          stream == kNone || stream >= close
              ? std::string_view("0")
              : text_.substr(tokens_[stream].begin, tokens_[close].begin - tokens_[stream].begin);
      replace(tokens_[begin].begin, tokens_[begin].begin,
              fmt::format("(::simt_timed::begin({}), ", one_line(on)));
      replace(tokens_[end - 1].end, tokens_[end - 1].end, ", ::simt_timed::end())");
      return;
    }
    const std::string_view called =
        text_.substr(tokens_[begin].begin, tokens_[i - 1].end - tokens_[begin].begin);
    replace(tokens_[begin].begin, tokens_[begin].begin,
            fmt::format("::simt_kernel(SIMT_NAME({}), [=](auto... simt_a) {{ ", one_line(called)));
    replace(tokens_[i].begin, tokens_[i + 2].end, "(simt_a...); }).at(SIMT_HERE, ");
    replace(tokens_[close].begin, tokens_[close + 2].end, ")");
    const std::size_t end = after_group(close + 3, "(", ")");
    for (std::size_t at = close + 4; end != kNone && at + 1 < end; ++at) {
      if (word(at) == "NULL") replace(at, "nullptr");
    }
  }

  /// Keeps of each `{` that is open whether declarations alone are in it.
  void follow_scope(std::size_t i) {
    if (tokens_[i].directive) return;
    const std::string_view name = word(i);
    if (first_ == kNone) first_ = i;
    if (name == "{") {
      const std::string_view first = word(first_);
      const bool space = first == "namespace" ||
                         (first == "inline" && word(first_ + 1) == "namespace") ||
                         (first == "extern" && word(first_ + 1).starts_with('"'));
      open_.push_back(space);
      functions_ += space ? 0 : 1;
    } else if (name == "}" && !open_.empty()) {
      functions_ -= open_.back() ? 0 : 1;
      open_.pop_back();
    }
    if (name == "{" || name == "}" || name == ";") first_ = kNone;
  }
  /// extern __shared__ T name[]; from its `extern` on.
  void share(std::size_t i) {
    const bool before = i > 0 && word(i - 1) == "__shared__";
    bool shared = before;
    std::vector<std::pair<std::size_t, std::size_t>> dropped = {{i, i}};
    if (before) dropped.emplace_back(i - 1, i - 1);
    std::size_t at = i + 1;
    const std::size_t limit = std::min(tokens_.size(), i + kLongest);
    while (at < limit && (word(at) != "[" || word(at + 1) == "[")) {
      const std::string_view each = word(at);
      if (each == ";" || each == "{" || each == "}" || each == "=") return;
      const std::size_t start = at;
      at = each == "["   ? after_group(at, "[", "]")
           : each == "(" ? after_group(at, "(", ")")
                         : at + 1;
      if (each == "alignas" || each == "__align__") at = after_group(at, "(", ")");
      if (each == "__shared__") shared = true;
      if (each == "__shared__" || each == "alignas" || each == "__align__" ||
          each.starts_with('"')) {
        dropped.emplace_back(start, at - 1);
      }
    }
    if (!shared || at >= limit || !starts_word(word(at - 1)[0])) return;
    if (dropped.back().second == at - 1) return;  // no name
    const bool local = functions_ > 0 || tokens_[i].directive;
    for (const auto& [first, last] : dropped) {
      if (local || first != i) blank(first, last);
    }
    if (!local) replace(i, "::simt_dynamic_of<");
    at = declare(at, local, true);
    while (word(at) == "," && word(at + 2) == "[") at = declare(at + 2, local, false);
  }
  /// One `name[]` of them, whose bracket is token `at`; gives the token after it.
  std::size_t declare(std::size_t at, bool local, bool first) {
    const std::size_t inner = after_group(at, "[", "]");
    std::size_t end = inner;
    while (word(end) == "[") end = after_group(end, "[", "]");
    if (end == kNone) return at;
    const std::size_t name = tokens_[at - 1].begin, open = tokens_[at].begin;
    const std::size_t close = tokens_[end - 1].end;
    // Of name[][16] what points to is an array of 16.
    const std::string_view rest =
        end == inner ? "" : text_.substr(tokens_[inner].begin, close - tokens_[inner].begin);
    if (local) {
      const std::size_t gap = text_[name - 1] == ' ' ? 1 : 0;
      replace(name - gap, name, rest.empty() ? "*" : "(*");
      replace(open, close, fmt::format("{}{}=::simt_dynamic{{}}", rest.empty() ? "" : ")", rest));
    } else {
      if (first) replace(name, name, fmt::format("{}> ", one_line(rest)));
      replace(open, close, "");
    }
    return end;
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  static constexpr std::size_t kLongest = 200;  ///< tokens of a declaration, or of a launch's shape
  bool program_, timed_;
  std::string_view text_;
  Lexer lexer_;
  const std::vector<Token>& tokens_;
  std::vector<Edit> edits_;
  std::vector<bool> open_;     ///< braces: is it a namespace's?
  int functions_ = 0;          ///< those that are not
  std::size_t first_ = kNone;  ///< token of the statement
};

}  // namespace

std::string for_emulation(std::string_view text, Written written) {
  return Rewriter(text, written).rewritten();
}

std::vector<std::string> included_by(std::string_view text) {
  std::vector<std::string> names;
  for (const Include& each : Lexer(text).includes) {
    if (text.substr(0, each.end).substr(each.begin).find('"') != text.npos)
      names.emplace_back(each.name);
  }
  return names;
}

std::set<std::string> words_in(std::string_view text) {
  std::set<std::string> words;
  for (const Token& each : Lexer(text).tokens)
    words.emplace(text.substr(each.begin, each.end - each.begin));
  return words;
}

}  // namespace tilestep::workbench
