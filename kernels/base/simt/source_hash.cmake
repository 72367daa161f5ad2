# cmake -DROOT=DIR -DFILES="a;b" -DOUT=FILE.cpp -P source_hash.cmake
# One hash over names and contents of FILES (relative to ROOT), as a C++ source.
set(all "")
foreach(file IN LISTS FILES)
  file(SHA256 ${ROOT}/${file} hash)
  string(APPEND all "${hash} ${file}\n")
endforeach()
string(SHA256 hash "${all}")
file(WRITE ${OUT} "#include \"kernels/base/simt/source_hash.hpp\"

const char* tilestep::simt::source_hash() {
  return \"${hash}\";
}
")
