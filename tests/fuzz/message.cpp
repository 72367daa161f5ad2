// A line from a worker, which may be any program on any machine; its report is shown.
#include "app/worker/protocol.hpp"
#include "kernels/base/lab/json.hpp"
#include "kernels/catalog.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

namespace protocol = app::protocol;

const std::vector<nlohmann::json>& whole() {
  static const std::vector<nlohmann::json> all = [] {
    std::vector<nlohmann::json> texts;
    const auto add = [&](const protocol::Message& message) {
      texts.push_back(nlohmann::json::parse(protocol::line_of(message)));
    };
    add(protocol::Progressed{5, {0.5, "half of it"}});
    add(protocol::Failed{
        5, {"query is 9", ExitCode::bad_input, false, lab::fix_to("query", std::int64_t{7})}});
    workbench::AssemblyKernel kernel{"_Z1fv", "f", 40, 0, 8, 12, 256, {{"ret;", 70, {40, 124}}}};
    add(protocol::AssemblyAnswered{
        5, workbench::to_json(workbench::Assembly{
               {"kernels/a.cu", "0123456789abcdef", "nvcc 13.0", 1, false, {}}, {kernel}})});
    add(protocol::NotTaken{"this line is not JSON"});
    add(protocol::own_hello());
    for (const nlohmann::json& report : short_run_texts()) add(protocol::Answered{5, report});
    return texts;
  }();
  return all;
}

void read(std::string_view bytes) {
  const std::string line = text_of(bytes, whole());
  const protocol::Message message = protocol::message_from(line);
  const std::string written = protocol::line_of(message);
  require(written.find('\n') == written.npos, "a message is one line");
  require(protocol::line_of(protocol::message_from(written)) == written,
          "a message reads as it was written");
  if (const auto* assembly = std::get_if<protocol::AssemblyAnswered>(&message)) {
    workbench::assembly_from_json(assembly->assembly);
  }
  const auto* answered = std::get_if<protocol::Answered>(&message);
  if (answered == nullptr) return;
  const lab::Report report = lab::report_from_json(answered->report);
  lesson(report.lesson);
  show(report);
}

const Target kTarget("message", read);

}  // namespace
}  // namespace tilestep::fuzz
