#include "kernels/base/lab/quick.hpp"

#include <utility>

namespace tilestep::lab {
namespace {

thread_local bool quick_asked = false;
constexpr const char* kLeftOut = "left_out";

}  // namespace

LadderPlan quick(LadderPlan plan) {
  plan.rounds = 1;
  plan.turn = kQuickTurn;
  plan.counters.clear();
  return plan;
}

bool is_quick(const Request& request) {
  const auto found = request.params.find(kQuickParam);
  if (request.action != Request::Action::bench || found == request.params.end()) return false;
  const auto* flag = std::get_if<bool>(&found->second);
  if (flag == nullptr) throw Error("quick is true or false");
  return *flag;
}

QuickBench::QuickBench(bool asked) {
  quick_asked = asked;
}
QuickBench::~QuickBench() {
  quick_asked = false;
}
bool QuickBench::asked() {
  return quick_asked;
}

void leave_out(Report& report, std::initializer_list<std::string_view> what) {
  Table table{kLeftOut,
              "A quick bench, one short round of each; a full one also has",
              {column("what", "left out")},
              {}};
  for (const std::string_view one : what) table.add({one});
  report.add(std::move(table));
}

std::string left_out(const Report& report) {
  std::string all;
  const Table* table = report.table(kLeftOut);
  for (std::size_t row = 0; table != nullptr && row < table->rows.size(); ++row) {
    all += (row == 0 ? "" : ", ") + table->text(row, 0);
  }
  return all;
}

}  // namespace tilestep::lab
