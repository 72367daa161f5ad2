#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/base/lab/number.hpp"
#include "kernels/base/lab/report.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::lab;

namespace {

/// While it lives, C's own functions read and write a comma where the point is. Made from nothing,
/// because few machines have such a locale installed: glibc's LC_NUMERIC is a magic number, how many
/// fields there are, where they begin, and the fields.
class CommaLocale {
 public:
  CommaLocale() : folder_(std::filesystem::temp_directory_path() / "tilestep-locales") {
    using namespace std::string_literals;
    std::filesystem::create_directories(folder_ / "comma");
    std::vector<std::uint32_t> head = {0x20031115u ^ LC_NUMERIC, 6};
    std::string fields;
    for (const std::string& field :
         {",\0"s, "\0"s, "\x7f\0"s, ",\0\0\0"s, "\0\0\0\0"s, "UTF-8\0"s}) {
      fields.resize((fields.size() + 3) / 4 * 4);
      head.push_back(static_cast<std::uint32_t>(8 * sizeof(std::uint32_t) + fields.size()));
      fields += field;
    }
    std::ofstream file(folder_ / "comma" / "LC_NUMERIC", std::ios::binary);
    file.write(reinterpret_cast<const char*>(head.data()),
               static_cast<std::streamsize>(head.size() * sizeof(std::uint32_t)));
    file << fields;
    file.close();
    setenv("LOCPATH", folder_.c_str(), 1);
    set_ = std::setlocale(LC_NUMERIC, "comma") != nullptr;
  }
  ~CommaLocale() {
    std::setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    std::filesystem::remove_all(folder_);
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

  bool set() const { return set_; }

 private:
  std::filesystem::path folder_;
  bool set_ = false;
};

}  // namespace

TEST_CASE("numbers are read and written with a point in every locale", "[lab]") {
  const CommaLocale locale;
  if (!locale.set()) {
    WARN("skipped: this C library does not take the locale");
    return;
  }
  REQUIRE(std::strtod("2,5", nullptr) == 2.5);  // it is in force

  Knob knob;
  knob.id = "skew";
  knob.kind = KnobKind::real;
  knob.max = 3;
  CHECK(std::get<double>(knob.parsed("2.5")) == 2.5);
  CHECK_THROWS_AS(knob.parsed("2,5"), Error);
  CHECK(to_text(KnobValue(2.5)) == "2.5");
  CHECK(number_of<double>("0.125") == 0.125);
  CHECK(knob.allowed() == "0–3");

  Report report;
  report.tables.push_back({"t", "T", {{"a", "a", "", 2}}, {}});
  report.tables.back().add({0.128});
  const nlohmann::json json = to_json(report);
  CHECK(json["tables"][0]["rows"][0][0] == 0.13);
  CHECK(json.dump().find("0.13") != std::string::npos);
}
