// The Measured tab of the coalescing lesson: useful bandwidth against stride and offset beside the
// prediction from sectors and the DRAM traffic, element sizes, all patterns, the copy ladder, the transposes' banks.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenes/memory/coalescing/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

const measured::Roof kCopy{"copy_bandwidth", "device", "copy"};

/// Useful bandwidth along a column of a table of the same id.
measured::Lines lines(const char* table, const char* title, const char* x, const char* x_label,
                      bool x_log, std::vector<measured::Lines::Curve> curves) {
  return {.id = table,
          .title = title,
          .x_label = x_label,
          .y_label = "useful GB/s",
          .x_log = x_log,
          .rows = {.table = table},
          .x = x,
          .curves = std::move(curves),
          .roof = kCopy};
}

constexpr const char* kStride = "stride in elements";

/// The hardware's count of the traffic of loads or stores, beside the bandwidth that it predicts.
measured::View dram_view() {
  using namespace measured;
  Lines bytes =
      lines("dram_by_stride", "DRAM bytes moved per useful byte: {access}", "stride", kStride, true,
            {{"read", "read", Role::sky}, {"written", "written", Role::purple}});
  bytes.id = "dram_bytes";
  bytes.y_label = "bytes per useful byte";
  bytes.roof = {};
  Lines bandwidth =
      lines("dram_by_stride", "Bandwidth; dashed: predicted from the traffic ({access})", "stride",
            kStride, true,
            {{"expected", "expected", Role::muted, true}, {"bandwidth", "measured", Role::sky}});
  bandwidth.id = "dram_bandwidth";
  return {.name = "DRAM traffic",
          .how = "4-byte elements; bytes counted by the hardware in a separate run",
          .filters = {{"dram_access", "access"}},
          .plots = {bytes, bandwidth},
          .needs = "dram_by_stride"};
}

/// Every byte is used, yet small elements are slow: too few bytes are in flight.
measured::View element_view() {
  using namespace measured;
  Lines in_flight = lines("bandwidth_by_element", "By the bytes in flight", "in_flight",
                          "KiB in flight", true, {{"bandwidth", "measured", Role::sky}});
  in_flight.id = "bandwidth_in_flight";
  return {
      .name = "Element size",
      .how = "sequential loads, every byte used; in flight at most: one load per resident thread",
      .plots = {Bars{.id = "bandwidth_by_element",
                     .title = "By the size of an element",
                     .unit = "GB/s",
                     .rows = {.table = "bandwidth_by_element"},
                     .label = "{element_bytes|byte}",
                     .value = "bandwidth",
                     .note = "{in_flight} KiB in flight",
                     .roof = kCopy,
                     .role = [](std::string_view) { return Role::sky; }},
                in_flight},
      .needs = "bandwidth_by_element"};
}

/// The cost of one load per thread and of launching new blocks, beside that of the sectors.
measured::View launch_view() {
  using namespace measured;
  Lines by_launch =
      lines("bandwidth_by_launch", "Useful bandwidth by stride", "stride", kStride, true, {});
  by_launch.series = "launch";
  by_launch.y = "bandwidth";
  return {.name = "Loads and blocks",
          .how = "strided accesses; resident blocks stay to the end",
          .filters = {{"launch_access", "access"},
                      {"launch_element", "element_bytes", "{} B", "4", "element"}},
          .plots = {by_launch},
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
      ++words.items.value.each[bank_of(byte)];
    }
    for (int bank = 0; bank < coalescing::kBanks; ++bank) {
      const float count = words.items.value[bank];
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
  const auto& request = requests.at(key.i / coalescing::kBanks);
  const auto count = std::count_if(request.byte_offset.begin(), request.byte_offset.end(),
                                   [&](std::int32_t byte) { return bank_of(byte) == bank; });
  return fmt::format("Bank {} delivers {} to the warp{}.", bank, words::counted(count, "word"),
                     count > 1 ? ", one after the other" : "");
}

}  // namespace

measured::Spec CoalescingScene::measured_spec() const {
  using coalescing::Pattern;
  using namespace measured;
  const std::vector<Lines::Curve> curves = {{"expected", "expected", Role::muted, true},
                                            {"load", "load", Role::sky},
                                            {"store", "store", Role::purple}};
  Lines by_stride =
      lines("bandwidth_by_stride", "4-byte elements by stride", "stride", kStride, true, curves);
  // A store that does not fill its sectors also reads them.
  by_stride.curves.push_back({"expected_store", "expected, stores", Role::faint, true});
  if (params_.pattern == Pattern::strided) by_stride.marked_x = params_.stride;
  Lines by_offset = lines("bandwidth_by_offset", "4-byte elements by misalignment", "offset",
                          "offset in elements", false, curves);
  if (params_.pattern == Pattern::offset) by_offset.marked_x = params_.offset;
  const std::string how =
      "useful: the bytes that the kernel requested, read and written; dashed: expected from "
      "sectors";
  return {
      "bandwidth_by_stride",
      {{.name = "Stride and offset",
        .how = how + "; 4 loads/thread",
        .plots = {by_stride, by_offset}},
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
