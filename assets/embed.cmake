# Writes ${OUT}: the ${FILES} below ${ROOT} as string literals, found again through lab::asset().
set(rows "")
set(bodies "")
set(index 0)
foreach(file IN LISTS FILES)
  file(READ ${ROOT}/${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND bodies "const unsigned char file${index}[] = {${bytes}0};\n")
  string(APPEND rows
         "    {\"${file}\", {reinterpret_cast<const char*>(file${index}), sizeof(file${index}) - 1}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT} "// Made by assets/embed.cmake.
#include \"kernels/base/lab/assets.hpp\"

namespace tilestep::lab {
namespace {
${bodies}const Asset kAssets[] = {
${rows}};
}  // namespace
std::span<const Asset> assets() { return kAssets; }
}  // namespace tilestep::lab
")
