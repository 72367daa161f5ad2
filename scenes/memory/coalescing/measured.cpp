// The Measured tab of the coalescing lesson: useful bandwidth against stride and offset beside the
// prediction from sectors and the DRAM traffic, element sizes, all patterns, the copy ladder, the transposes' banks.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/memory/coalescing/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

const measured::Roof kCopy{"copy_bandwidth", "device", "copy"};

measured::Lines against(const char* table, const char* x, const char* title, const char* x_label,
                        std::optional<double> marked) {
  return {.id = table,
          .title = title,
          .x_label = x_label,
          .y_label = "useful GB/s",
          .rows = {.table = table},
          .x = x,
          .curves = {{"expected", "expected", Role::muted, true},
                     {"load", "load", Role::sky},
                     {"store", "store", Role::purple}},
          .roof = kCopy,
          .marked_x = marked};
}

/// The hardware's count of the traffic of loads or stores, beside the bandwidth that it predicts.
measured::View dram_view() {
  using namespace measured;
  const Rows rows{.table = "dram_by_stride"};
  return {.name = "DRAM traffic",
          .how = "4-byte elements; bytes counted by the hardware in a separate run",
          .filters = {{"dram_access", "access"}},
          .plots = {Lines{.id = "dram_bytes",
                          .title = "DRAM bytes moved per useful byte: {access}",
                          .x_label = "stride in elements",
                          .y_label = "bytes per useful byte",
                          .x_log = true,
                          .rows = rows,
                          .x = "stride",
                          .curves = {{"read", "read", Role::sky},
                                     {"written", "written", Role::purple}}},
                    Lines{.id = "dram_bandwidth",
                          .title = "Bandwidth; dashed: predicted from the traffic ({access})",
                          .x_label = "stride in elements",
                          .y_label = "useful GB/s",
                          .x_log = true,
                          .rows = rows,
                          .x = "stride",
                          .curves = {{"expected", "expected", Role::muted, true},
                                     {"bandwidth", "measured", Role::sky}},
                          .roof = kCopy}},
          .needs = "dram_by_stride"};
}

/// Every byte is used, yet small elements are slow: too few bytes are in flight.
measured::View element_view() {
  using namespace measured;
  const Rows rows{.table = "bandwidth_by_element"};
  return {
      .name = "Element size",
      .how = "sequential loads, every byte used; in flight at most: one load per resident thread",
      .plots = {Bars{.id = "bandwidth_by_element",
                     .title = "By the size of an element",
                     .unit = "GB/s",
                     .rows = rows,
                     .label = "{element_bytes|byte}",
                     .value = "bandwidth",
                     .note = "{in_flight} KiB in flight",
                     .roof = kCopy,
                     .role = [](std::string_view) { return Role::sky; }},
                Lines{.id = "bandwidth_in_flight",
                      .title = "By the bytes in flight",
                      .x_label = "KiB in flight",
                      .y_label = "useful GB/s",
                      .x_log = true,
                      .rows = rows,
                      .x = "in_flight",
                      .curves = {{"bandwidth", "measured", Role::sky}},
                      .roof = kCopy}},
      .needs = "bandwidth_by_element"};
}

/// The cost of one load per thread and of launching new blocks, beside that of the sectors.
measured::View launch_view() {
  using namespace measured;
  return {.name = "Loads and blocks",
          .how = "strided accesses; resident blocks stay to the end",
          .filters = {{"launch_access", "access"},
                      {"launch_element", "element_bytes", "{} B", "4", "element"}},
          .plots = {Lines{.id = "bandwidth_by_launch",
                          .title = "Useful bandwidth by stride",
                          .x_label = "stride in elements",
                          .y_label = "useful GB/s",
                          .x_log = true,
                          .rows = {.table = "bandwidth_by_launch"},
                          .x = "stride",
                          .series = "launch",
                          .y = "bandwidth",
                          .roof = kCopy}},
          .needs = "bandwidth_by_launch"};
}

// ---- banks --------------------------------------------------------------------------------------

int bank_of(std::int32_t byte) {
  return byte / coalescing::kBankBytes % coalescing::kBanks;
}

/// The 32 banks of shared memory, one row per request: how many of the warp's words each delivers.
picture::Picture banks(const std::vector<coalescing::TileRequest>& requests) {
  using namespace picture;
  std::vector<Box> rows;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const coalescing::TileRequest& request = requests[r];
    const int row = static_cast<int>(r);
    Cells words;
    words.x = "bank";
    words.items = items("bank_words", std::vector<float>(coalescing::kBanks), {Format::integer});
    for (const std::int32_t byte : request.byte_offset) {
      ++words.items.value.each[static_cast<std::size_t>(bank_of(byte))];
    }
    for (int bank = 0; bank < coalescing::kBanks; ++bank) {
      const float count = words.items.value[static_cast<std::size_t>(bank)];
      words.items.ids.push_back(row * coalescing::kBanks + bank);
      words.items.tone.each.push_back(count == 1 ? 5 : 0);
      words.items.state.each.push_back(count > 1 ? State::wrong : State::plain);
    }
    const bool free = request.ways == 1;
    Box& box = rows.emplace_back(
        picture::box({"banks", row}, {std::move(words)},
                     text(fmt::format("{}, {}", request.rung, name_of(request.kind)))));
    box.value.full = {{free ? "no conflict" : fmt::format("{}-way", request.ways),
                       {},
                       free ? State::plain : State::wrong}};
    box.least_height = 1.2f;
    box.most_height = 2;
    box.left = 10.5f;
    box.right = 7;
  }
  return {text("Words each of the 32 banks delivers to one warp"),
          {{.name = "bank",
            .kind = Axis::band,
            .count = coalescing::kBanks,
            .title = text("bank"),
            .ticks = true,
            .least_slot = 3}},
          column({"all_banks"}, std::move(rows))};
}

std::string explain_bank(const std::vector<coalescing::TileRequest>& requests,
                         const picture::Key& key) {
  if (key.name != picture::Name("bank_words")) return {};
  const int bank = key.i % coalescing::kBanks;
  const auto& request = requests.at(static_cast<std::size_t>(key.i / coalescing::kBanks));
  const auto count = std::count_if(request.byte_offset.begin(), request.byte_offset.end(),
                                   [&](std::int32_t byte) { return bank_of(byte) == bank; });
  return fmt::format("Bank {} delivers {} to the warp{}.", bank, words::counted(count, "word"),
                     count > 1 ? ", one after the other" : "");
}

}  // namespace

measured::Spec CoalescingScene::measured_spec() const {
  using coalescing::Pattern;
  using namespace measured;
  std::optional<double> stride, offset;
  if (params_.pattern == Pattern::strided) stride = params_.stride;
  if (params_.pattern == Pattern::offset) offset = params_.offset;
  Lines by_stride = against("bandwidth_by_stride", "stride", "4-byte elements by stride",
                            "stride in elements", stride);
  by_stride.x_log = true;
  // A store that does not fill its sectors also reads them.
  by_stride.curves.push_back({"expected_store", "expected, stores", Role::faint, true});
  const std::string how =
      "useful: the bytes that the kernel requested, read and written; dashed: expected from "
      "sectors";
  return {
      "bandwidth_by_stride",
      {{.name = "Stride and offset",
        .how = how + "; 4 loads/thread",
        .plots = {by_stride,
                  against("bandwidth_by_offset", "offset", "4-byte elements by misalignment",
                          "offset in elements", offset)}},
       dram_view(),
       element_view(),
       launch_view(),
       {.name = "Patterns",
        .how = "stride 2, offset 1, 4 fields; 4 loads/thread; expected: copy × useful bytes / "
               "moved bytes",
        .filters = {{"pattern_access", "access"},
                    {"pattern_element", "element_bytes", "{} B", "4", "element"}},
        .plots = {Bars{.id = "bandwidth_by_pattern",
                       .title = "Useful bandwidth of each pattern",
                       .unit = "GB/s",
                       .rows = {.table = "bandwidth_by_pattern"},
                       .label = "pattern",
                       .value = "bandwidth",
                       .expected = "expected",
                       .roof = kCopy,
                       .role = [](std::string_view) { return Role::sky; }},
                  Bars{.id = "sectors_by_pattern",
                       .title = "Sectors per request",
                       .rows = {.table = "bandwidth_by_pattern"},
                       .label = "pattern",
                       .value = "sectors_per_request",
                       .low = "",
                       .high = "",
                       .role = [](std::string_view) { return Role::green; }}}},
       {.name = "Copy ladder",
        .how = how,
        .plots = {Bars{
            .id = "copy_bandwidth",
            .title = "Copying an array, rung by rung",
            .unit = "GB/s",
            .rows = {.measurement = "copy_bandwidth", .fraction = "fraction_of_device_copy"},
            .of = "cudaMemcpyAsync",
            .roof = {"copy_bandwidth", "device", "cudaMemcpyAsync"}}}},
       {.name = "Transpose",
        .how = how,
        .plots = {
            Bars{.id = "transpose_bandwidth",
                 .title = "Transposing a matrix, rung by rung",
                 .unit = "GB/s",
                 .rows = {.measurement = "transpose_bandwidth", .fraction = "fraction_of_copy"},
                 .of = "our copy",
                 .roof = {"copy_bandwidth", "vectorized", "our copy"}},
            Pictured{.id = "banks",
                     .picture = [this](const lab::Table&) { return banks(trace_.tile_requests); },
                     .explain =
                         [this](const lab::Table&, const picture::Key& key) {
                           return explain_bank(trace_.tile_requests, key);
                         }}}}}};
}

}  // namespace tilestep::scenes
