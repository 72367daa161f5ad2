#include "kernels/base/workbench/inline_ptx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <set>
#include <vector>

namespace tilestep::workbench {
namespace {

using Texts = std::vector<std::string>;

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  return std::string(text);
}

/// Parts between `sign`, except inside of brackets and braces.
Texts split(std::string_view text, char sign) {
  Texts parts(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == sign && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

/// A comment becomes a space.
std::string without_comments(std::string_view code) {
  std::string all;
  for (std::size_t i = 0; i < code.size();) {
    const bool line = code.substr(i).starts_with("//"), block = code.substr(i).starts_with("/*");
    if (line || block) {
      const std::size_t end = code.find(line ? "\n" : "*/", i + 2);
      all += ' ';
      i = end == code.npos ? code.size() : end + (line ? 0 : 2);
    } else {
      all += code[i++];
    }
  }
  return all;
}

constexpr auto kRegisters =
    std::to_array<std::string_view>({"laneid", "warpid", "smid", "nsmid", "lanemask_eq",
                                     "lanemask_lt", "lanemask_le", "lanemask_gt", "lanemask_ge"});

class Translator {
 public:
  Translator(std::size_t operands, bool extended) : operands_(operands), extended_(extended) {}

  PtxWords translate(std::string_view code) {
    const std::string text = without_comments(code);
    PtxWords words;
    for (std::size_t at = 0; at < text.size();) {
      const char c = text[at];
      if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ';') {
        ++at;
      } else if (c == '{' || c == '}') {
        words.statements += fmt::format("{} ", c);
        depth_ += c == '{' ? 1 : -1;
        if (depth_ < 0) return {"", "}"};
        ++at;
      } else {
        const std::size_t end = std::min(text.find(';', at), text.size());
        const std::string instruction = trimmed(std::string_view(text).substr(at, end - at));
        const std::optional<std::string> statement = one(instruction);
        if (!statement) return {"", instruction.substr(0, instruction.find_first_of(" \t\n{[%"))};
        words.statements += *statement + ' ';
        at = end;
      }
    }
    if (depth_ != 0) return {"", "{"};
    return words;
  }

 private:
  /// The expression of a register, a number, or a special register; nothing where it is something
  /// else.
  std::optional<std::string> value(std::string_view text) const {
    if (text.empty()) return {};
    if (std::isdigit(static_cast<unsigned char>(text[0])) != 0) {
      const bool hex = text.starts_with("0x") || text.starts_with("0X");
      const std::string_view digits = hex ? text.substr(2) : text;
      const bool number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [&](char c) {
        return hex ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c >= '0' && c <= '9';
      });
      // A leading 0 means octal to both languages.
      return number ? std::optional(std::string(text)) : std::nullopt;
    }
    if (declared_.count(std::string(text)) > 0) return fmt::format("simt_ptx_{}", text);
    if (text[0] != '%') return {};
    text.remove_prefix(1);
    if (!extended_) return special(text);
    if (text.starts_with('%')) return special(text.substr(1));
    if (text.empty() || text.size() > 2 ||
        !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return {};
    }
    const std::size_t number = std::stoul(std::string(text));
    return number < operands_ ? std::optional(fmt::format("simt_{}", number)) : std::nullopt;
  }
  static std::optional<std::string> special(std::string_view name) {
    if (std::find(kRegisters.begin(), kRegisters.end(), name) != kRegisters.end())
      return fmt::format("::tilestep::simt::ptx::{}()", name);
    if (name == "clock") return "static_cast<unsigned>(clock64())";
    if (name == "clock64") return "clock64()";
    if (name == "globaltimer") return "::tilestep::simt::device_clock()";
    return {};
  }
  /// [register] or [register + number], as a number.
  std::optional<std::string> address(std::string_view text) const {
    if (!text.starts_with('[') || !text.ends_with(']')) return {};
    text = text.substr(1, text.size() - 2);
    const std::size_t plus = text.find('+');
    const auto base = value(trimmed(text.substr(0, plus)));
    if (!base) return {};
    if (plus == text.npos) return fmt::format("(unsigned long long)({})", *base);
    const auto offset = value(trimmed(text.substr(plus + 1)));
    if (!offset) return {};
    return fmt::format("(unsigned long long)({}) + ({})", *base, *offset);
  }
  /// Registers in braces.
  std::optional<Texts> registers(std::string_view text, std::size_t count) const {
    if (!text.starts_with('{') || !text.ends_with('}')) return {};
    Texts all;
    for (const std::string& each : split(text.substr(1, text.size() - 2), ',')) {
      const auto name = value(each);
      if (!name) return {};
      all.push_back(*name);
    }
    return all.size() == count ? std::optional(all) : std::nullopt;
  }
  static std::string array(std::string_view type, std::string_view name, const Texts& values) {
    std::string all = fmt::format("{} {}[] = {{", type, name);
    for (const std::string& each : values) all += fmt::format("({})({}), ", type, each);
    return all + "}; ";
  }
  static std::string give(const Texts& to, std::string_view from) {
    std::string all;
    for (std::size_t i = 0; i < to.size(); ++i) all += fmt::format("{} = {}[{}]; ", to[i], from, i);
    return all;
  }

  std::optional<std::string> one(const std::string& instruction) {
    const auto end = static_cast<std::size_t>(
        std::find_if(instruction.begin(), instruction.end(),
                     [](char c) { return !in_name(c) && c != '.' && c != ':'; }) -
        instruction.begin());
    const std::string word = instruction.substr(0, end);
    const std::string rest = trimmed(std::string_view(instruction).substr(end));
    const Texts operands = rest.empty() ? Texts() : split(rest, ',');
    if (word == ".reg") return declare(rest);
    const Texts parts = split(word, '.');
    if (parts[0] == "mov") return move(parts, operands);
    if (word == "bar.sync" || word == "barrier.sync" || word == "barrier.sync.aligned" ||
        word == "barrier.cta.sync" || word == "barrier.cta.sync.aligned") {
      if (operands != Texts{"0"}) return {};
      return "__syncthreads();";
    }
    if (word.starts_with("cp.async.")) return copy(word, operands);
    if (parts[0] == "ldmatrix") return load_matrices(parts, operands);
    if (parts[0] == "mma") return multiply(word, operands);
    if (word == "ex2.approx.ftz.f32" || word == "ex2.approx.f32")
      return call(operands, 1, word == "ex2.approx.f32" ? "ptx::ex2" : "ptx::ex2_ftz");
    // The first source goes into the upper half.
    if (word == "cvt.rn.bf16x2.f32" || word == "cvt.rn.f16x2.f32") {
      if (operands.size() != 3) return {};
      return call({operands[0], operands[2], operands[1]}, 2,
                  word == "cvt.rn.f16x2.f32" ? "pack_fp16" : "pack_bf16");
    }
    if (word == "cvta.to.shared.u64") return call(operands, 1, "ptx::shared_address");
    if (word == "cvt.u32.u64") {
      if (operands.size() != 2) return {};
      const auto to = value(operands[0]), from = value(operands[1]);
      if (!to || !from) return {};
      return fmt::format("{} = static_cast<unsigned>({});", *to, *from);
    }
    return {};
  }

  /// `.reg .u64 name, other`
  std::optional<std::string> declare(std::string_view rest) {
    const std::size_t gap = rest.find_first_of(" \t");
    if (gap == rest.npos) return {};
    const std::string_view type = rest.substr(0, gap);
    const bool wide = type == ".u64" || type == ".b64" || type == ".s64";
    if (!wide && type != ".u32" && type != ".b32" && type != ".s32") return {};
    std::string all;
    for (const std::string& name : split(rest.substr(gap), ',')) {
      if (name.empty() || !std::all_of(name.begin(), name.end(), in_name)) return {};
      declared_.insert(name);
      all += fmt::format("unsigned {} simt_ptx_{} = 0; ", wide ? "long long" : "int", name);
    }
    return all;
  }
  std::optional<std::string> move(const Texts& parts, const Texts& operands) const {
    static constexpr auto kTypes =
        std::to_array<std::string_view>({"u32", "s32", "b32", "u64", "s64", "b64"});
    if (parts.size() != 2 || operands.size() != 2 ||
        std::find(kTypes.begin(), kTypes.end(), parts[1]) == kTypes.end()) {
      return {};
    }
    const auto to = value(operands[0]), from = value(operands[1]);
    if (!to || !from) return {};
    return fmt::format("{} = {};", *to, *from);
  }
  /// A word of tilestep::simt whose `count` arguments and result are registers.
  std::optional<std::string> call(const Texts& operands, std::size_t count,
                                  std::string_view word) const {
    if (operands.size() != count + 1) return {};
    Texts values;
    for (const std::string& each : operands) {
      const auto name = value(each);
      if (!name) return {};
      values.push_back(*name);
    }
    return fmt::format("{} = ::tilestep::simt::{}({});", values[0], word,
                       fmt::join(values.begin() + 1, values.end(), ", "));
  }
  std::optional<std::string> copy(std::string_view word, const Texts& operands) const {
    if (word == "cp.async.commit_group" && operands.empty())
      return "::tilestep::simt::cp_async_commit();";
    if (word == "cp.async.wait_all" && operands.empty())
      return "::tilestep::simt::ptx::cp_async_wait_all();";
    if (word == "cp.async.wait_group" && operands.size() == 1) {
      const auto pending = value(operands[0]);
      if (!pending) return {};
      return fmt::format("::tilestep::simt::ptx::cp_async_wait({});", *pending);
    }
    // How much the second-level cache fetches changes no result.
    for (const std::string_view hint : {".L2::64B", ".L2::128B", ".L2::256B"}) {
      if (word.ends_with(hint)) word.remove_suffix(hint.size());
    }
    const bool all_levels =
        word == "cp.async.ca.shared.global" || word == "cp.async.ca.shared::cta.global";
    const bool second_level =
        word == "cp.async.cg.shared.global" || word == "cp.async.cg.shared::cta.global";
    if ((!all_levels && !second_level) || operands.size() < 3 || operands.size() > 4) return {};
    const auto to = address(operands[0]), from = address(operands[1]), bytes = value(operands[2]);
    const auto given = operands.size() == 4 ? value(operands[3]) : bytes;
    if (!to || !from || !bytes || !given) return {};
    return fmt::format("::tilestep::simt::ptx::cp_async({}, {}, {}, {}, {}, SIMT_HERE);", *to,
                       *from, *bytes, *given, second_level);
  }
  std::optional<std::string> load_matrices(Texts parts, const Texts& operands) const {
    const auto take = [&](std::string_view part) {
      const auto found = std::find(parts.begin(), parts.end(), part);
      if (found == parts.end()) return false;
      parts.erase(found);
      return true;
    };
    int count = 0;
    for (const int each : {1, 2, 4}) {
      if (take(fmt::format("x{}", each))) count = each;
    }
    const bool transposed = take("trans");
    const bool shared = take("shared") || take("shared::cta");
    const bool rest = take("ldmatrix") && take("sync") && take("aligned") && take("m8n8") &&
                      take("b16") && parts.empty();
    if (count == 0 || !shared || !rest || operands.size() != 2) return {};
    const auto to = registers(operands[0], static_cast<std::size_t>(count));
    const auto from = address(operands[1]);
    if (!to || !from) return {};
    return fmt::format(
        "{{ std::uint32_t simt_r[{}]; ::tilestep::simt::ptx::ldmatrix<{}, {}>(simt_r, {}, "
        "SIMT_HERE); {}}}",
        count, count, transposed, *from, give(*to, "simt_r"));
  }
  std::optional<std::string> multiply(std::string_view word, const Texts& operands) const {
    constexpr std::string_view kShape = "mma.sync.aligned.m16n8k16.row.col.";
    if (!word.starts_with(kShape) || operands.size() != 4) return {};
    const std::string_view types = word.substr(kShape.size());
    const bool in_fp16 = types == "f16.f16.f16.f16";
    if (!in_fp16 && types != "f32.bf16.bf16.f32" && types != "f32.f16.f16.f32") return {};
    const std::size_t sums = in_fp16 ? 2 : 4;
    const auto d = registers(operands[0], sums), a = registers(operands[1], 4),
               b = registers(operands[2], 2), c = registers(operands[3], sums);
    if (!d || !a || !b || !c) return {};
    const std::string_view call = in_fp16                      ? "ptx::mma_fp16_in_fp16"
                                  : types == "f32.f16.f16.f32" ? "mma_m16n8k16_fp16"
                                                               : "mma_m16n8k16_bf16";
    return fmt::format("{{ {}{}::tilestep::simt::{}(simt_d, simt_a, {}, {}); {}}}",
                       array(in_fp16 ? "std::uint32_t" : "float", "simt_d", *c),
                       array("std::uint32_t", "simt_a", *a), call, (*b)[0], (*b)[1],
                       give(*d, "simt_d"));
  }

  std::size_t operands_;
  bool extended_;
  int depth_ = 0;
  std::set<std::string> declared_;
};

}  // namespace

PtxWords words_of_ptx(std::string_view code, std::size_t operands, bool extended) {
  return Translator(operands, extended).translate(code);
}

}  // namespace tilestep::workbench
