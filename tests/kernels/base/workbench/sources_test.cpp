// Which sources a lesson's kernels are made of.

#include "kernels/base/workbench/sources.hpp"

#include <algorithm>
#include <set>

#include "kernels/base/lab/assets.hpp"
#include "kernels/catalog.hpp"
#include "tests/catch.hpp"

namespace tilestep::workbench {
namespace {

using Names = std::vector<std::string>;

const std::string kFlash = "kernels/attention/flash_attention/";

TEST_CASE("every lesson has sources to edit, and files that compile them", "[workbench]") {
  for (const lab::Lesson* lesson : lessons()) {
    const std::string& id = lesson->info().id;
    INFO(id);
    const Names sources = editable_sources(id);
    CHECK_FALSE(sources.empty());
    // A file that is handed in, a draft and the list under Kernel know a source by its name alone.
    std::set<std::string_view> names;
    for (const std::string& source : sources) CHECK(names.insert(name_of_file(source)).second);
    for (const std::string& source : sources) {
      INFO(source);
      CHECK(tests::contains(lab::asset(source),
                            source.ends_with(".cu") ? "__global__" : "__device__"));
      CHECK_FALSE(launch_sources_of(id, source).empty());
    }
  }
}

TEST_CASE("the files that an edit reaches are compiled, and the one with the set of kernels",
          "[workbench]") {
  CHECK(launch_sources_of("online-softmax", "kernels/attention/online_softmax/one_pass.cu") ==
        Names{"kernels/attention/online_softmax/launch.cu"});
  CHECK(launch_sources_of("flash-attention", kFlash + "flash_1.cu") == Names{kFlash + "launch.cu"});
  CHECK(launch_sources_of("flash-attention", kFlash + "quantized/quantized.cu") ==
        Names{kFlash + "launch.cu", kFlash + "quantized/quantized_launch.cu"});
  // Included by a header.
  const std::string third = "kernels/attention/flash_attention_3/";
  CHECK(launch_sources_of("flash-attention-3", third + "flash_3.cu") ==
        Names{third + "launch.cu", third + "launch/launch_explained.cu",
              third + "launch/launch_timed.cu"});
}

TEST_CASE("a function that a kernel calls is found where it is written", "[workbench]") {
  const std::string folder = "kernels/matmul/hopper_gemm/", path = folder + "specialized.cu";
  const Definitions found = functions_in_reach("hopper-gemm", path);
  const auto line_of = [](const Definition& definition) {
    std::string_view text = lab::asset(definition.path);
    for (int line = 1; line < definition.line; ++line) text.remove_prefix(text.find('\n') + 1);
    return text.substr(0, text.find('\n'));
  };
  int elsewhere = 0;
  for (const auto& [name, definition] : found) {
    CAPTURE(name, definition.path, definition.line);
    CHECK(tests::contains(line_of(definition), name + "("));
    elsewhere += definition.path != path ? 1 : 0;
  }
  CHECK(elsewhere > 3);
  const Definitions own =
      functions_in_reach("online-softmax", "kernels/attention/online_softmax/one_pass.cu");
  for (const char* name : {"finite_base", "warp_reduce", "online_softmax", "online_one_read"}) {
    CAPTURE(name);
    REQUIRE(own.contains(name));
    CHECK(tests::contains(line_of(own.at(name)), name));
  }
  CHECK_FALSE(own.contains("__launch_bounds__"));
}

TEST_CASE("a file is an edit of the source of its name, or of the one most like it",
          "[workbench]") {
  const std::string path = "kernels/memory/coalescing/ladders.cu";
  const std::string text(lab::asset(path));
  CHECK(source_meant("coalescing", "/home/me/ladders.cu", "anything") == path);
  CHECK(source_meant("coalescing", "/home/me/try.cu", text + "\n// mine\n") == path);
  CHECK(tests::error_of([&] { source_meant("online-softmax", "try.cu", text); }) ==
        "'try.cu', by its name and by its lines, is no kernel source of 'online-softmax'; allowed: "
        "one_pass.cu");
  CHECK(tests::error_of([&] { require_source("online-softmax", path); }) ==
        "'kernels/memory/coalescing/ladders.cu' is no kernel source of 'online-softmax'; allowed: "
        "one_pass.cu");
  CHECK(tests::contains(tests::error_of([] { folder_of("nothing"); }), "'nothing'"));
}

}  // namespace
}  // namespace tilestep::workbench
