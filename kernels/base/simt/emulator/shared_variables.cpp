#include "kernels/base/simt/emulator/shared_variables.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string_view>

#include "kernels/base/simt/emulator/global_watch.hpp"

// What every access to a thread_local of a shared object calls (Drepper, "ELF Handling For Thread-Local Storage").
extern "C" void* __tls_get_addr(void* module_and_offset);

namespace tilestep::simt::emulated {
namespace {

struct Known {
  std::string name;
  std::size_t offset = 0, bytes = 0;
};
std::mutex mutex;
std::uint64_t generation = 0;
std::size_t tls_module = 0;
std::vector<Known> known;  ///< in the module's thread-local storage

/// "tile" of _ZZN8tilestep6tiling…5naiveE…E4tile.
std::string short_name(const char* symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string name = text == nullptr ? symbol : text;
  std::free(text);
  if (const std::size_t colon = name.rfind("::"); colon != std::string::npos)
    name.erase(0, colon + 2);
  return name;
}

/// An ELF file ("Tool Interface Standard: ELF", version 1.2). What lies outside of it reads as nothing.
class Image {
 public:
  explicit Image(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(stream), {});
    const auto header = read<ElfW(Ehdr)>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
    for (unsigned i = 0; i < header.e_shnum; ++i) {
      sections_.push_back(read<ElfW(Shdr)>(header.e_shoff + i * sizeof(ElfW(Shdr))));
    }
  }

  /// Those of a type (STT_TLS, STT_OBJECT) that can be written.
  std::vector<Known> variables(int type) const {
    std::vector<Known> all;
    for (const auto& symbols : sections_) {
      if (symbols.sh_type != SHT_SYMTAB || symbols.sh_link >= sections_.size()) continue;
      const auto& names = sections_[symbols.sh_link];
      for (std::size_t at = 0; at < symbols.sh_size; at += sizeof(ElfW(Sym))) {
        const auto symbol = read<ElfW(Sym)>(symbols.sh_offset + at);
        if (ELF64_ST_TYPE(symbol.st_info) != type || symbol.st_size == 0 ||
            symbol.st_shndx >= sections_.size() ||
            (sections_[symbol.st_shndx].sh_flags & SHF_WRITE) == 0) {
          continue;
        }
        const std::size_t place = names.sh_offset + symbol.st_name;
        const char* name = place < bytes_.size() ? bytes_.c_str() + place : "";
        const std::string_view mangled(name);
        if (mangled.empty() || mangled.starts_with("_ZT")) continue;  // virtual functions
        // Whether one is constructed; what the emulator's headers keep for an OS thread.
        const bool ours = mangled.starts_with("_ZGV") ||
                          mangled.starts_with("_ZZN8tilestep4simt") ||
                          mangled.starts_with("_ZN8tilestep4simt");
        all.push_back({ours ? "" : short_name(name), symbol.st_value, symbol.st_size});
      }
    }
    return all;
  }

 private:
  template <class T>
  T read(std::size_t at) const {
    T value{};
    if (at <= bytes_.size() && sizeof value <= bytes_.size() - at) {
      std::memcpy(&value, bytes_.data() + at, sizeof value);
    }
    return value;
  }

  std::string bytes_;
  std::vector<ElfW(Shdr)> sections_;
};

struct Search {
  std::uintptr_t inside;
  std::size_t tls_module = 0;
  std::uintptr_t base = 0, end = 0;
};
int find_module(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool found = false;
  std::uintptr_t end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    found = found || search.inside - (info->dlpi_addr + part.p_vaddr) < part.p_memsz;
    end = std::max<std::uintptr_t>(end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
  }
  if (!found) return 0;
  search.tls_module = info->dlpi_tls_modid;
  search.base = info->dlpi_addr;
  search.end = end;
  return 1;
}

}  // namespace

void know_variables(const std::string& file, const void* inside) {
  Search search{reinterpret_cast<std::uintptr_t>(inside)};
  if (dl_iterate_phdr(find_module, &search) == 0) return;
  const Image image(file);
  const auto* base = reinterpret_cast<const char*>(search.base);
  static const char* watched = nullptr;
  if (watched != nullptr) global_watch().end(watched);
  watched = base;
  global_watch().begin(base, search.end - search.base);
  for (const Known& each : image.variables(STT_OBJECT)) {
    global_watch().add(base + each.offset, each.bytes, false);
    global_watch().name(base + each.offset, 0, each.name.c_str());
  }
  const std::lock_guard lock(mutex);
  ++generation;
  tls_module = search.tls_module;
  known = tls_module == 0 ? std::vector<Known>{} : image.variables(STT_TLS);
}

bool shared_variables(std::uint64_t& seen, std::vector<SharedVariable>& variables) {
  const std::lock_guard lock(mutex);
  if (seen == generation) return false;
  seen = generation;
  variables.clear();
  for (const Known& each : known) {
    std::size_t place[2] = {tls_module, each.offset};
    variables.push_back(
        {each.name, reinterpret_cast<std::uintptr_t>(__tls_get_addr(place)), each.bytes});
  }
  std::sort(variables.begin(), variables.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return true;
}

}  // namespace tilestep::simt::emulated
