// Assembly as a worker answers it and a lab asks for it, by tools that are none: no toolkit is needed.
#include <thread>

#include "app/worker/lab_client.hpp"
#include "app/worker/protocol.hpp"
#include "tests/app/fake_cuda_tools.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

constexpr const char* kPath = "kernels/attention/online_softmax/one_pass.cu";

workbench::AssemblyRequest assembly_request(
    workbench::AssemblyForm form = workbench::AssemblyForm::ptx) {
  return {"online-softmax",
          {kPath, file_text(std::string(tilestep::tests::paths::kSource) + "/" + kPath)},
          form};
}

std::string line_of(Ticket ticket, const workbench::AssemblyRequest& request) {
  return protocol::line_of(protocol::Request(protocol::AssemblyWork{ticket, request})) + "\n";
}

json next_answer(Child& worker) {
  while (const auto line = worker.read_line(60s)) {
    json message = json::parse(*line);
    if (message.at("type") != "progress") return message;
  }
  return nullptr;
}

/// What the process of this test starts finds these tools for as long as it lives.
struct HereToo {
  explicit HereToo(const FakeCudaTools& tools) {
    for (const auto& [name, value] : tools.environment()) {
      if (name != "PATH") ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~HereToo() {
    ::unsetenv("TILESTEP_NVCC");
    ::unsetenv("TILESTEP_CACHE");
  }
};

ProcessLabOptions options_of() {
  ProcessLabOptions options;
  options.program = tilestep::tests::paths::kProgram;
  return options;
}

std::optional<LabUpdate> last_update(LabClient& lab, Ticket ticket) {
  std::optional<LabUpdate> last;
  eventually(
      [&] {
        while (auto update = lab.poll()) {
          if (update->ticket == ticket && !std::holds_alternative<LabProgress>(update->what)) {
            last = std::move(update);
          }
        }
        return last.has_value();
      },
      60s);
  return last;
}

}  // namespace

TEST_CASE("a worker answers with the kernels of the source, by line, in both forms", "[worker]") {
  const FakeCudaTools tools;
  Child worker({tilestep::tests::paths::kProgram, "worker"}, tools.environment());
  worker.write(line_of(1, assembly_request()));
  const json ptx = next_answer(worker);
  INFO(ptx.dump());
  REQUIRE(ptx.at("type") == "assembly");
  CHECK(ptx.at("ticket") == 1);
  const json& kernels = ptx.at("assembly").at("kernels");
  REQUIRE(kernels.size() == 2);  // the third has nothing of this source
  CHECK(kernels[0].at("name") == "loop<float>");
  CHECK(kernels[0].at("registers") == 40);
  CHECK(kernels[0].at("lines").at("line") == json({0, 105, 70, 70}));
  CHECK(kernels[0].at("lines").at("callers").at(2) == json({124}));
  CHECK(ptx.at("assembly").at("compiled").at("compiler") == "nvcc 13.0.88");

  worker.write(line_of(2, assembly_request(workbench::AssemblyForm::sass)));
  const json sass = next_answer(worker);
  INFO(sass.dump());
  REQUIRE(sass.at("type") == "assembly");
  CHECK(sass.at("assembly").at("kernels").at(0).at("lines").at("text").at(1) ==
        "FMUL R4, R1, R2 ;");
  CHECK(sass.at("assembly").at("kernels").at(0).at("spill_load_bytes") == 12);
  CHECK(tools.runs() == 1);  // the same PTX
}

TEST_CASE("what is wrong with a request for assembly is said about its ticket", "[worker]") {
  const FakeCudaTools tools({.disassembles = false});
  Child worker({tilestep::tests::paths::kProgram, "worker"}, tools.environment());
  const auto refused = [&](const std::string& line, int code, const char* words) {
    worker.write(line);
    const json answer = next_answer(worker);
    INFO(answer.dump());
    REQUIRE(answer.at("type") == "error");
    CHECK(answer.at("ticket") == 7);
    CHECK(answer.at("code") == code);
    check_contains(answer.at("message").get<std::string>(), words);
  };
  refused("{\"ticket\": 7, \"assembly\": 3}\n", 2, "assembly");
  refused("{\"ticket\": 7, \"assembly\": {\"lesson\": \"online-softmax\"}}\n", 2, "kernel");
  workbench::AssemblyRequest request = assembly_request();
  request.lesson = "nonsense";
  refused(line_of(7, request), 2, "online-softmax");
  request = assembly_request();
  request.kernel.path = "kernels/nothing.cu";
  refused(line_of(7, request), 2, "one_pass.cu");
  refused(line_of(7, assembly_request(workbench::AssemblyForm::sass)), 3, "nvdisasm");
  CHECK(tools.runs() == 0);  // before a minute was spent on it
  // The worker goes on, and runs are asked for as ever.
  worker.write("{\"ticket\": 8, \"lesson\": \"online-softmax\", \"backend\": \"emulated\"}\n");
  CHECK(next_answer(worker).at("type") == "report");
}

TEST_CASE("without nvcc a sentence says what to install, and a compiler's message has its line",
          "[worker]") {
  Environment none = FakeCudaTools().environment();
  none["TILESTEP_NVCC"] = "/no/such/nvcc";
  Child without({tilestep::tests::paths::kProgram, "worker"}, none);
  without.write(line_of(1, assembly_request()));
  const json missing = next_answer(without);
  CHECK(missing.at("code") == 3);
  check_contains(missing.at("message").get<std::string>(), "/no/such/nvcc");

  const FakeCudaTools tools(
      {.error = std::string("/c/edited/") + kPath + "(12): error: expected a \";\"\n"});
  Child worker({tilestep::tests::paths::kProgram, "worker"}, tools.environment());
  worker.write(line_of(2, assembly_request()));
  const json failed = next_answer(worker);
  INFO(failed.dump());
  CHECK(failed.at("code") == 1);
  CHECK(failed.at("diagnostics").at(0).at("line") == 12);
}

TEST_CASE("asking for assembly returns at once, tells what happens, and can be stopped", "[labs]") {
  const FakeCudaTools tools({.nvcc_seconds = 30});
  const HereToo here(tools);
  const auto lab = make_process_lab(options_of());
  const auto start = std::chrono::steady_clock::now();
  const Ticket ticket = lab->submit_assembly(0, assembly_request());
  CHECK(std::chrono::steady_clock::now() - start < 1s);
  bool told = false;
  CHECK(eventually([&] {
    while (const auto update = lab->poll()) {
      const auto* progress = std::get_if<LabProgress>(&update->what);
      told = told || (progress && progress->note == "compiling one_pass.cu for sm_90a");
    }
    return told && tools.runs() == 1;
  }));
  // A run waits for it; it does not take its place.
  lab::Request run;
  run.lesson = "online-softmax";
  run.backend = "emulated";
  const Ticket waits = lab->submit(run);
  lab->cancel(ticket);
  const auto last = last_update(*lab, ticket);
  REQUIRE(last);
  REQUIRE(std::holds_alternative<LabGivenUp>(last->what));
  CHECK(std::get<LabGivenUp>(last->what) == LabGivenUp::cancelled);
  const auto ran = last_update(*lab, waits);
  REQUIRE(ran);
  CHECK(std::holds_alternative<lab::Report>(ran->what));
  CHECK(std::chrono::steady_clock::now() - start < 25s);  // nobody waited for the compiler
}

TEST_CASE("a compiler that does not come to an end is ended at the deadline", "[labs]") {
  const FakeCudaTools tools({.nvcc_seconds = 60});
  const HereToo here(tools);
  ProcessLabOptions options = options_of();
  options.compile_deadline = 1s;
  const auto lab = make_process_lab(options);
  const auto last = last_update(*lab, lab->submit_assembly(0, assembly_request()));
  REQUIRE(last);
  const auto* failure = std::get_if<LabFailure>(&last->what);
  REQUIRE(failure != nullptr);
  check_contains(failure->sentence, "The compilation took longer than 1 seconds");
}

TEST_CASE("a lab reads the answer, and a newer question takes the place of an older", "[labs]") {
  const FakeCudaTools tools({.nvcc_seconds = 0.3});
  const HereToo here(tools);
  const auto lab = make_process_lab(options_of());
  const Ticket older = lab->submit_assembly(0, assembly_request());
  workbench::AssemblyRequest edited = assembly_request();
  edited.kernel.text += "// mine\n";
  const Ticket newer = lab->submit_assembly(0, edited);
  const auto last = last_update(*lab, newer);
  REQUIRE(last);
  const auto* assembly = std::get_if<LabAssembly>(&last->what);
  REQUIRE(assembly != nullptr);
  REQUIRE((*assembly)->kernels.size() == 2);
  CHECK((*assembly)->kernels[0].name == "loop<float>");
  CHECK((*assembly)->info.hash == lab::hash_of(edited.kernel.text));
  CHECK(older != newer);
}
