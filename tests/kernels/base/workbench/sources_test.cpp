// Which sources a lesson's kernels are made of.

#include "kernels/base/workbench/sources.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "kernels/base/lab/assets.hpp"
#include "kernels/catalog.hpp"
#include "tests/catch.hpp"

namespace tilestep::workbench {
namespace {

using Names = std::vector<std::string>;

const std::string kFlash = "kernels/attention/flash_attention/";

std::string_view line_of(const Definition& definition) {
  std::string_view text = lab::asset(definition.path);
  for (int line = 1; line < definition.line; ++line) text.remove_prefix(text.find('\n') + 1);
  return text.substr(0, text.find('\n'));
}

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

TEST_CASE("the body of a function that lessons share is the one that a GPU runs", "[workbench]") {
  const std::string simt = "kernels/base/simt/";
  const Definitions third =
      functions_in_reach("flash-attention-3", "kernels/attention/flash_attention_3/flash_3.cu");
  for (const auto& [name, header] :
       std::map<std::string, std::string>{{"consumer_wait", "ring.hpp"},
                                          {"wgmma", "cuda/hopper_cuda.hpp"},
                                          {"raise_maximum", "softmax_step.hpp"}}) {
    CAPTURE(name);
    REQUIRE(third.contains(name));
    CHECK(third.at(name).path == simt + header);
  }
  const Definitions ring = functions_in_reach("flash-attention-3", simt + "ring.hpp");
  REQUIRE(ring.contains("wait_for"));
  CHECK(ring.at("wait_for").path == simt + "cuda/hopper_cuda.hpp");
  for (const lab::Lesson* lesson : lessons()) {
    for (const std::string& header : shared_headers(lesson->info().id)) {
      CAPTURE(header);
      CHECK_FALSE(tests::contains(header, "emulator"));
      CHECK(tests::error_of([&] { require_source(lesson->info().id, header); }) != "");
    }
  }
}

/// Names alone mean little for members and lambdas: `load` is many things in a lesson.
bool is_free_in_header(const Definition& definition) {
  return definition.path.ends_with(".hpp") && line_of(definition).front() != ' ';
}

TEST_CASE("every call of a header's device function opens its body", "[workbench]") {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (const lab::Lesson* lesson : lessons()) {
    const std::string& id = lesson->info().id;
    std::map<std::string, Definitions> reach;
    Definitions all;
    for (const std::string& source : editable_sources(id)) {
      reach[source] = functions_in_reach(id, source);
      all.insert(reach[source].begin(), reach[source].end());
    }
    std::erase_if(all, [](const auto& each) { return !is_free_in_header(each.second); });
    for (const auto& [source, own] : reach) {
      const std::string_view text = lab::asset(source);
      for (const auto& [name, body] : all) {
        const bool lambda = tests::contains(text, "auto " + name + " = [");
        CHECK_FALSE((lambda && own.contains(name)));
        if (lambda || own.contains(name)) continue;
        for (std::size_t at = text.find(name + "("); at != text.npos;
             at = text.find(name + "(", at + 1)) {
          const char before = at > 0 ? text[at - 1] : ' ';
          // Of the shared headers' names a lesson's own parameter may have one.
          if (is_part(before) || (is_shared_header(body.path) && before != ':')) continue;
          INFO(id << ", " << source << " calls " << name << " of " << body.path);
          const std::size_t begin = text.rfind('\n', at) + 1;
          CHECK(tests::contains(text.substr(begin, at - begin), "//"));  // a comment may name it
        }
      }
    }
  }
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
