// The Measured tab of the coalescing lesson: useful bandwidth against stride and offset beside what
// the sectors let expect and what DRAM moves, element sizes, all patterns, the copy ladder, and the transposes with their banks.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenes/memory/coalescing/scene.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/strokes.hpp"

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
          .curves = {{"expected", "expected from sectors", Role::muted, true},
                     {"load", "load", Role::accent},
                     {"store", "store", Role::sky}},
          .roof = kCopy,
          .marked_x = marked};
}

/// The hardware's own count of what moves, for loads or for stores, beside what that lets expect.
measured::View dram_view() {
  using namespace measured;
  const Rows rows{.table = "dram_by_stride"};
  return {.name = "DRAM traffic",
          .how = "4-byte elements; bytes counted by the hardware in a run of their own",
          .filters = {{"dram_access", "access"}},
          .plots = {Lines{.id = "dram_bytes",
                          .title = "Bytes that DRAM moves for each useful one: {access}",
                          .x_label = "stride in elements",
                          .y_label = "bytes for each useful byte",
                          .x_log = true,
                          .rows = rows,
                          .x = "stride",
                          .curves = {{"read", "read", Role::accent},
                                     {"written", "written", Role::sky}}},
                    Lines{.id = "dram_bandwidth",
                          .title = "Bandwidth, and what that traffic lets expect: {access}",
                          .x_label = "stride in elements",
                          .y_label = "useful GB/s",
                          .x_log = true,
                          .rows = rows,
                          .x = "stride",
                          .curves = {{"expected", "expected", Role::muted, true},
                                     {"bandwidth", "measured", Role::accent}},
                          .roof = kCopy}},
          .needs = "dram_by_stride"};
}

lab::Table with_element_name(lab::Table rows) {
  add_column(rows, "name", [&](std::size_t row) -> lab::Cell {
    return filled_in(
        text_in(rows, row, "element_bytes") == "1" ? "1 byte" : "{element_bytes} bytes", rows, row);
  });
  return rows;
}

/// Every byte is used, and still small elements are slow: too few bytes are under way.
measured::View element_view() {
  using namespace measured;
  const Rows rows{.table = "bandwidth_by_element", .prepare = with_element_name};
  return {.name = "Element size",
          .how =
              "sequential loads, every byte used; in flight at most: a load of each thread that "
              "the GPU holds",
          .plots = {Bars{.id = "bandwidth_by_element",
                         .title = "By the size of an element",
                         .unit = "GB/s",
                         .rows = rows,
                         .label = "name",
                         .value = "bandwidth",
                         .note = "{in_flight} KiB in flight",
                         .roof = kCopy,
                         .role = [](std::string_view) { return Role::accent; }},
                    Lines{.id = "bandwidth_in_flight",
                          .title = "By the bytes in flight",
                          .x_label = "KiB in flight",
                          .y_label = "useful GB/s",
                          .x_log = true,
                          .rows = rows,
                          .x = "in_flight",
                          .curves = {{"bandwidth", "measured", Role::accent}},
                          .roof = kCopy}},
          .needs = "bandwidth_by_element"};
}

/// The device's own copy is the roof of the others, not a rung.
lab::Table without_device(lab::Table rows) {
  rows.rows.erase(std::remove_if(rows.rows.begin(), rows.rows.end(),
                                 [](const auto& row) { return row[0] == lab::Cell("device"); }),
                  rows.rows.end());
  return rows;
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
  // A store that does not fill its sectors reads them as well.
  by_stride.curves.push_back({"expected_store", "expected of stores", Role::faint, true});
  const std::string how = "useful: the bytes that the kernel asked for, read and written";
  return {"bandwidth_by_stride",
          {{.name = "Stride and offset",
            .how = how,
            .plots = {by_stride,
                      against("bandwidth_by_offset", "offset", "4-byte elements by misalignment",
                              "offset in elements", offset)}},
           dram_view(),
           element_view(),
           {.name = "Patterns", .plots = {Listing{{.table = "bandwidth_by_pattern"}}}},
           {.name = "Copy ladder",
            .how = how,
            .plots = {Bars{.id = "copy_bandwidth",
                           .title = "Copying an array, rung by rung",
                           .unit = "GB/s",
                           .rows = {.measurement = "copy_bandwidth",
                                    .fraction = "fraction_of_device_copy",
                                    .prepare = without_device},
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
                Custom{.id = "banks",
                       .draw = [this](const lab::Table&, ImVec2 size) { draw_banks(size); }}}}}};
}

/// The 32 banks of shared memory, a row a request: how many of the warp's words each has to
/// deliver.
void CoalescingScene::draw_banks(ImVec2 size) const {
  using coalescing::kBanks;
  const ImVec2 min = ImGui::GetCursorScreenPos();
  ui::draw_text(
      min,
      ui::fitted("Words each of the 32 banks delivers to one warp", ui::Font::body_bold, size.x),
      ui::Font::body_bold);
  const float top = min.y + ui::px(28);
  const auto rows = static_cast<float>(std::max<std::size_t>(1, trace_.tile_requests.size()));
  const float step = std::min(ui::px(34), (size.y - ui::px(28)) / rows);
  const float name = std::min(ui::px(220), size.x * 0.4f);
  const float cell = (size.x - name - ui::px(84)) / kBanks;
  for (std::size_t row = 0; row < trace_.tile_requests.size(); ++row) {
    const coalescing::TileRequest& request = trace_.tile_requests[row];
    std::array<int, kBanks> words{};
    for (const std::int32_t byte : request.byte_offset) {
      ++words[static_cast<std::size_t>(byte / coalescing::kBankBytes % kBanks)];
    }
    const float y = top + step * static_cast<float>(row);
    const std::string label = fmt::format("{}, {}", request.rung, name_of(request.kind));
    ui::draw_text(at(min.x, y), ui::fitted(label, ui::Font::note, name - ui::px(8)), ui::Font::note,
                  Role::muted);
    for (int bank = 0; bank < kBanks; ++bank) {
      const int count = words[static_cast<std::size_t>(bank)];
      const ImVec2 from = at(min.x + name + cell * static_cast<float>(bank), y);
      const ImVec2 to = at(from.x + cell - ui::px(1), y + step - ui::px(8));
      if (count > 0) {
        fill(from, to, count > 1 ? Role::wrong : Role::sky);
      } else {
        outline(from, to, Role::faint);
      }
    }
    const bool free = request.ways == 1;
    const std::string ways = free ? "no conflict" : fmt::format("{}-way", request.ways);
    ui::draw_text(at(min.x + size.x, y), ways, ui::Font::note, free ? Role::text : Role::wrong,
                  ui::Align::right);
    ui::map(fmt::format("banks_{}", row), label, ways, at(min.x, y),
            at(min.x + size.x, y + step - ui::px(8)));
  }
}

}  // namespace tilestep::scenes
