#pragma once

#include <version>

#if defined(__cpp_lib_source_location)
#include <source_location>
#endif

namespace tilestep::simt {

#if defined(__cpp_lib_source_location)
using Location = std::source_location;
#else
/// Clang has std::source_location from version 15 on; what of it is used here.
class Location {
 public:
  static constexpr Location current(const char* file = __builtin_FILE(),
                                    unsigned line = __builtin_LINE(),
                                    unsigned column = __builtin_COLUMN()) {
    Location here;
    here.file_ = file;
    here.line_ = line;
    here.column_ = column;
    return here;
  }
  constexpr const char* file_name() const { return file_; }
  constexpr unsigned line() const { return line_; }
  constexpr unsigned column() const { return column_; }

 private:
  const char* file_ = "";
  unsigned line_ = 0, column_ = 0;
};
#endif

}  // namespace tilestep::simt
