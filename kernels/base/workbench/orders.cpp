#include "kernels/base/workbench/orders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/lab/compare.hpp"
#include "kernels/base/lab/names.hpp"

namespace tilestep::workbench {
namespace {

using simt::ThreadOrder;

/// A student waits for these runs.
constexpr std::chrono::milliseconds kLongestForTwo{400}, kLongestForOne{1500};
constexpr const char* kWhy =
    "; where the order of threads matters, two of them use the same memory and nothing makes one "
    "wait for the other.";

lab::Report run_in(const OrderedRun& run, ThreadOrder order,
                   std::span<const simt::KernelEntry> kernels, lab::Progress& progress) {
  simt::EmulationOptions emulation = run.emulation;
  emulation.order = order;
  const auto device = simt::make_emulated_device(kernels, emulation);
  return run.lesson.run(run.settings, *device, progress);
}

/// The tables by themselves: they are named to people, so a difference there is told first.
lab::Report tables_of(const lab::Report& report) {
  lab::Report tables;
  tables.lesson = report.lesson;
  tables.tables = report.tables;
  return tables;
}

std::optional<lab::Difference> difference(const lab::Report& first, const lab::Report& again,
                                          const lab::Replay& replay) {
  const auto in_tables = lab::compare(tables_of(first), tables_of(again), replay).difference;
  if (in_tables) return in_tables;
  return lab::compare(first, again, replay).difference;
}

/// "tables.tiles.end[2]" in words: "row 3 of the column 'end' of 'Tiles'".
std::string place_of(const std::string& path, const lab::Report& report) {
  const std::string_view start = "tables.";
  if (!path.starts_with(start)) return path;
  const std::string inside = path.substr(start.size());
  for (const lab::Table& table : report.tables) {
    if (!inside.starts_with(table.id + ".")) continue;
    const std::string cell = inside.substr(table.id.size() + 1);
    const std::size_t bracket = cell.find('[');
    if (bracket == std::string::npos) return fmt::format("{} of '{}'", cell, table.title);
    return fmt::format("row {} of the column '{}' of '{}'",
                       std::atoi(cell.c_str() + bracket + 1) + 1, cell.substr(0, bracket),
                       table.title);
  }
  return path;
}

std::string sentence(ThreadOrder order, const lab::Difference& difference,
                     const lab::Report& report) {
  return fmt::format("With the threads of a block in {} order, {} is {} instead of {}{}",
                     name_of(order), place_of(difference.path, report), difference.replayed,
                     difference.recorded, kWhy);
}

/// What is wrong in this order; nothing: nothing is.
std::optional<std::string> wrong_in(ThreadOrder order, const lab::Report& first,
                                    const OrderedRun& run, lab::Progress& progress) {
  std::optional<std::string> wrong;
  try {
    const lab::Report again = run_in(run, order, run.edited, progress);
    if (const auto differs = difference(first, again, run.lesson.replay())) {
      wrong = sentence(order, *differs, first);
    }
  } catch (const Cancelled&) {
    throw;
  } catch (const simt::KernelFault& fault) {
    if (fault.ends_process()) throw;
    return fmt::format("With the threads of a block in {} order, {}", name_of(order),
                       with_line(fault.what(), line_of(fault.place(), run.module), run.module));
  } catch (const Error& error) {
    return fmt::format("With the threads of a block in {} order there is no result: {}",
                       name_of(order), error.what());
  }
  if (!wrong) return std::nullopt;
  const lab::Report before = run_in(run, run.emulation.order, run.original, progress);
  const lab::Report after = run_in(run, order, run.original, progress);
  if (difference(before, after, run.lesson.replay())) return std::nullopt;
  return wrong;
}

}  // namespace

void check_orders(lab::Report& report, const OrderedRun& run, std::chrono::milliseconds took,
                  lab::Progress& progress) {
  if (took > kLongestForOne) return;
  std::vector<ThreadOrder> others = {ThreadOrder::descending, ThreadOrder::shuffled,
                                     ThreadOrder::ascending};
  std::erase(others, run.emulation.order);
  if (took > kLongestForTwo) others.pop_back();
  lab::Check check{kOrderCheck, true, 0, 0,
                   fmt::format("The same numbers with the threads of a block in {}.",
                               others.size() == 2 ? "three orders" : "two orders")};
  for (std::size_t i = 0; i < std::min<std::size_t>(2, others.size()) && check.ok; ++i) {
    progress.check();
    if (auto wrong = wrong_in(others[i], report, run, progress)) {
      check.ok = false;
      check.detail = std::move(*wrong);
    }
  }
  report.checks.push_back(std::move(check));
}

}  // namespace tilestep::workbench
