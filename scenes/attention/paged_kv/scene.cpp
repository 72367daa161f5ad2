#include "scenes/attention/paged_kv/scene.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernels/base/lab/source.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using paged_kv::Happened, paged_kv::Happening, paged_kv::ItemTrace, paged_kv::Served;
using words::counted;

StepAxis PagedKvScene::loaded(const paged_kv::Trace&) {
  params_ = paged_kv::knob_table().params(report_.params);
  find_events();
  return {trace_.length(), 1, "step", {""}, "steps"};
}

// ---- where the cursor is ------------------------------------------------------------------------------

const Served* PagedKvScene::moment(Cursor cursor) const {
  const int step = std::min(cursor.tile, engine_steps());
  return step <= 0 ? nullptr : &trace_.serving[static_cast<std::size_t>(step) - 1];
}

const ItemTrace* PagedKvScene::item_now(Cursor cursor) const {
  const int item = cursor.tile - engine_steps() - 1;
  return item < 0 || item >= std::ssize(trace_.items)
             ? nullptr
             : &trace_.items[static_cast<std::size_t>(item)];
}

bool PagedKvScene::stale(int row, int place, Cursor cursor) const {
  if (!reading(cursor) || row >= std::ssize(moment(cursor)->running) ||
      page_state(row, place, cursor) == picture::State::to_come)
    return false;
  const auto& has = moment(cursor)->running[static_cast<std::size_t>(row)].pages;
  const int page =
      trace_.requests[static_cast<std::size_t>(row)].pages[static_cast<std::size_t>(place)];
  return std::find(has.begin(), has.end(), page) == has.end();
}

int PagedKvScene::row_with(int page, Cursor cursor) const {
  const auto& running = moment(cursor)->running;
  const auto row = std::find_if(running.begin(), running.end(), [page](const auto& one) {
    return std::find(one.pages.begin(), one.pages.end(), page) != one.pages.end();
  });
  return row == running.end() ? -1 : static_cast<int>(row - running.begin());
}

std::string PagedKvScene::requests_of(const ItemTrace& item) const {
  const std::string first =
      fmt::format("R{}", trace_.requests[static_cast<std::size_t>(item.row)].request);
  return item.rows == 1 ? first : fmt::format("{} +{}", first, item.rows - 1);
}

// ---- words --------------------------------------------------------------------------------------------

namespace {

std::string happened_text(const Happened& one) {
  const std::string pages = counted(one.pages, "page");
  switch (one.what) {
    case Happening::admitted:
      return fmt::format("R{} is admitted with {}", one.request, pages);
    case Happening::shared:
      return fmt::format("R{} shares the prefix and takes {}", one.request, pages);
    case Happening::waits:
      return fmt::format("R{} waits for {}", one.request, pages);
    case Happening::finished:
      return fmt::format("R{} has finished, returns {}", one.request, pages);
    case Happening::preempted:
      break;
  }
  return fmt::format("R{} is preempted, returns {}", one.request, pages);
}

}  // namespace

std::string PagedKvScene::sentence(Cursor cursor) const {
  if (cursor.tile <= 0) {
    return fmt::format("All {} of the pool are free: {} will come.", counted(trace_.pool, "page"),
                       counted(trace_.coming, "request"));
  }
  if (const ItemTrace* item = item_now(cursor)) {
    for (int place = item->first_page; place < item->first_page + item->pages; ++place) {
      if (!stale(item->row, place, cursor)) continue;
      const int page = trace_.requests[static_cast<std::size_t>(item->row)]
                           .pages[static_cast<std::size_t>(place)];
      const int row = row_with(page, cursor);
      const std::string whose =
          row < 0 ? "no request" : fmt::format("R{}", moment(cursor)->running[row].request);
      return fmt::format("Read: {}'s table names page {}, and {} has it: {} is read.",
                         requests_of(*item), page, whose,
                         row < 0 ? "stale data" : whose + "'s context");
    }
    return item->rows > 1
               ? fmt::format("Read: a block reads {} once for the {} that share {}.",
                             counted(item->pages, "page"), counted(item->rows, "request"),
                             item->pages == 1 ? "it" : "them")
               : fmt::format("Read: a block finds {} of {} through its table.",
                             counted(item->pages, "page"), requests_of(*item));
  }
  const Served& now = *moment(cursor);
  std::vector<std::string> texts;
  for (const Happened& one : now.events) texts.push_back(happened_text(one));
  constexpr std::size_t kMost = 2;
  const std::size_t more = texts.size() > kMost ? texts.size() - kMost : 0;
  texts.resize(texts.size() - more);
  if (more > 0) texts.push_back(fmt::format("{} more", more));
  const std::string grown = counted(trace_.stride, "token");
  if (texts.empty()) return fmt::format("Serve: all go on, {} each.", grown);
  return fmt::format("Serve: {}.", fmt::join(texts, "; "));
}

std::vector<picture::Symbol> PagedKvScene::symbols(const View&) const {
  return {};
}

std::vector<std::string> PagedKvScene::stage_knobs() const {
  return {"page_size", "prefix", "batch"};
}

// ---- tables -------------------------------------------------------------------------------------------

Cursor PagedKvScene::known(const lab::Table& table, int row, int column) const {
  if (table.id == "page_sizes") return {};  // by formula
  if (table.id == "requests") return {engine_steps(), 0};
  if (table.id == "gathers") return {trace_.step_of(trace_.traced_item), 0};
  return Scene::known(table, row, column);
}

int PagedKvScene::table_row(std::string_view table_id, const View& view) const {
  const ItemTrace* item = item_now(view.cursor);
  if (table_id == "requests" && item != nullptr) return item->row;
  return Scene::table_row(table_id, view);
}

// ---- numbers beside the picture -------------------------------------------------------------------------

std::vector<Readout> PagedKvScene::readouts(const View& view) const {
  std::vector<Readout> all;
  const Served* now = moment(view.cursor);
  const auto pages = static_cast<std::int64_t>(trace_.pool);
  all.push_back(
      {"held", "pages held", now == nullptr ? "0" : std::to_string(pages - now->free_pages()),
       fmt::format("of {}", pages), lab::Provenance::traced, "in the allocator after this step"});
  const std::int64_t empty =
      now == nullptr ? 0 : (pages - now->free_pages()) * trace_.shape.page_size - now->tokens();
  all.push_back({"empty", "empty slots", std::to_string(empty), "tokens", lab::Provenance::traced,
                 "slots of held pages without a token: less than a page per request"});
  // Always shown, so that knobs do not move while they are dragged.
  const bool part = !trace_.shape.cut.empty();
  all.push_back({"cut", "explained", part ? "a part" : "all", "", lab::Provenance::derived,
                 part ? trace_.shape.cut : "all requests and tokens of these knobs"});
  if (!gathered(view.cursor)) return all;
  std::int64_t sectors = 0;
  for (const paged_kv::GatherTrace& one : trace_.gathers) sectors += one.sectors;
  all.push_back({"sectors", "sectors read", std::to_string(sectors), "of 32 B",
                 lab::Provenance::traced,
                 "of K, by the block whose addresses were recorded on " + report_.device.name});
  all.back().about = {"request", trace_.requests[static_cast<std::size_t>(traced().row)].request};
  return all;
}

// ---- the kernel -----------------------------------------------------------------------------------------

SourceMark PagedKvScene::source(const View& view) const {
  constexpr const char* kTiles = "kernels/attention/kv_cache/paged/tiles.hpp";
  const auto lines = lab::source_marks(kTiles).lines({"page", "copy"});
  SourceMark mark = source_mark(kTiles, lines, reading(view.cursor) ? 0 : -1);
  if (const ItemTrace* item = item_now(view.cursor)) {
    const auto row = static_cast<std::size_t>(item->row);
    mark.values[lines[0]] = fmt::format(
        "page = {} …", trace_.requests[row].pages[static_cast<std::size_t>(item->first_page)]);
  }
  return mark;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(paged_kv, PagedKvScene)
