#include "kernels/systems/fusion/ledger.hpp"

#include <algorithm>

namespace tilestep::fusion {
namespace {

/// Numbers per number of the block's width of what an operation writes.
double width_of(Op op) {
  switch (op) {
    case Op::qkv:
    case Op::rotary:
      return 1.5;  // a quarter as many K/V heads
    case Op::gate_up:
      return 7;
    case Op::swiglu:
    case Op::quantize_4:
      return 3.5;
    default:
      return 1;
  }
}

bool is_quantize(Op op) {
  return op == Op::quantize_1 || op == Op::quantize_2 || op == Op::quantize_3 ||
         op == Op::quantize_4;
}

double bytes_written(Op op, Dtype type) {
  return width_of(op) * (is_quantize(op) ? 1 : bytes_of(type));
}

std::string tensor_of(Op op) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"normed", "codes", "QKV", "rotated", "attended", "codes", "projected", "residual stream",
       "normed", "codes", "gate, up", "activated", "codes", "down", "residual stream"});
  return std::string(kNames.at(static_cast<std::size_t>(op)));
}

constexpr std::string_view kBest = "best";

/// Whether a later operation that is not the next one reads it.
bool is_read_later(Op op) {
  return op == Op::residual_1 || op == Op::residual_2;
}

}  // namespace

Kind kind_of(Op op) {
  switch (op) {
    case Op::qkv:
    case Op::project:
    case Op::gate_up:
    case Op::down:
      return Kind::product;
    case Op::rotary:
    case Op::residual_1:
    case Op::swiglu:
    case Op::residual_2:
      return Kind::element;
    case Op::attention:
      return Kind::attention;
    default:
      return Kind::row;
  }
}

std::vector<Group> groups_of(const Seams& seams) {
  std::vector<Group> groups = {{0, 0}};
  for (int op = 1; op < kOps; ++op) {
    if (seams[static_cast<std::size_t>(op) - 1]) {
      groups.back().last = op;
    } else {
      groups.push_back({op, op});
    }
  }
  return groups;
}

std::string why_not(const Group& group) {
  const auto kind = [](int op) { return kind_of(static_cast<Op>(op)); };
  for (int op = group.first; op < group.last; ++op) {
    const Kind here = kind(op), next = kind(op + 1);
    if (next == Kind::product) {
      return here == Kind::product
                 ? "two products in one kernel"
                 : "every tile of the product would compute the rows before it again";
    }
    if (here == Kind::attention) return "a row has all heads, and a block of attention has one";
    if (next == Kind::attention && (here != Kind::element || op != group.first)) {
      return "a block of attention needs keys of all tokens, and a tile has those of a few";
    }
    const bool tile = kind(group.first) == Kind::product;
    if (tile && next == Kind::row) return "a tile of the product has only a part of each row";
  }
  return {};
}

std::vector<Traffic> traffic_of(int number, const Seams& seams, Dtype type) {
  const auto op = static_cast<Op>(number);
  const auto fused_after = [&](int seam) {
    return seam >= 0 && seam < kSeams && seams[static_cast<std::size_t>(seam)];
  };
  std::vector<Traffic> all;
  const std::string into = number == 0 ? "residual stream" : tensor_of(static_cast<Op>(number - 1));
  const double bytes =
      number == 0 ? bytes_of(type) : bytes_written(static_cast<Op>(number - 1), type);
  all.push_back({into, bytes, false, fused_after(number - 1)});
  // The two that add read the residual stream besides.
  if (op == Op::residual_1 || op == Op::residual_2) {
    all.push_back({"residual stream", static_cast<double>(bytes_of(type)), false, false});
  }
  all.push_back(
      {tensor_of(op), bytes_written(op, type), true, fused_after(number) && !is_read_later(op)});
  return all;
}

double Score::microseconds(int width, int tokens) const {
  return bytes * width * tokens / kBytesPerMicrosecond + launches * kMicrosecondsPerLaunch;
}

Score score_of(const Seams& seams, Dtype type) {
  Score score{static_cast<int>(groups_of(seams).size()), 0};
  for (int op = 0; op < kOps; ++op) {
    for (const Traffic& one : traffic_of(op, seams, type)) score.bytes += one.saved ? 0 : one.bytes;
  }
  return score;
}

Seams best_seams(Dtype type, int width, int tokens) {
  Seams best{};
  double least = score_of(best, type).microseconds(width, tokens);
  for_each_legal([&](const Seams& seams) {
    const double time = score_of(seams, type).microseconds(width, tokens);
    if (time >= least) return;
    least = time;
    best = seams;
  });
  return best;
}

// ---- the knob -------------------------------------------------------------------------------------

std::vector<int> seams_listed(std::string_view text) {
  // The same for every format, width and number of tokens: fewest launches and fewest bytes.
  if (text == kBest) return {1, 3, 7, 9, 11, 14};
  std::vector<int> seams;
  int number = 0;
  for (const char c : text) {
    if (c == ',') {
      seams.push_back(number);
      number = 0;
    } else {
      number = 10 * number + (c - '0');
    }
  }
  if (!text.empty()) seams.push_back(number);
  return seams;
}

bool is_list_of_seams(std::string_view text) {
  if (text.empty() || text == kBest) return true;
  if (text.size() > 64) return false;
  int digits = 0;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c != ',' || digits == 0)) return false;
    digits = is_digit ? digits + 1 : 0;
    if (digits > 2) return false;
  }
  if (digits == 0) return false;
  std::vector<int> seams = seams_listed(text);
  std::sort(seams.begin(), seams.end());
  return seams.front() >= 1 && seams.back() <= kSeams &&
         std::adjacent_find(seams.begin(), seams.end()) == seams.end();
}

std::string with_turned(std::string_view text, int seam) {
  std::vector<int> seams = seams_listed(text);
  const auto at = std::find(seams.begin(), seams.end(), seam);
  if (at == seams.end()) {
    seams.push_back(seam);
  } else {
    seams.erase(at);
  }
  std::string list;
  for (const int one : seams) list += (list.empty() ? "" : ",") + std::to_string(one);
  return list;
}

Chosen chosen_of(std::string_view text) {
  Chosen chosen;
  for (const int seam : seams_listed(text)) {
    const auto at = static_cast<std::size_t>(seam - 1);
    Seams with = chosen.fused;
    with[at] = true;
    for (const Group& group : groups_of(with)) {
      if (chosen.refused[at].empty()) chosen.refused[at] = why_not(group);
    }
    if (chosen.refused[at].empty()) chosen.fused = with;
  }
  return chosen;
}

}  // namespace tilestep::fusion
