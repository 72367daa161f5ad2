#include "kernels/base/lab/edit.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "kernels/base/lab/fields.hpp"

namespace tilestep::lab {

std::string hash_of(std::string_view text) {
  // FNV-1a (Fowler, Noll and Vo), 64 bits.
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return fmt::format("{:016x}", hash);
}

std::vector<Diagnostic> diagnostics_of(const Error& error) {
  const auto* of_source = dynamic_cast<const SourceError*>(&error);
  return of_source == nullptr ? std::vector<Diagnostic>() : of_source->diagnostics();
}

const Fields<Diagnostic>& diagnostic_fields() {
  static const auto kFields = Fields<Diagnostic>()
                                  .whole("line", &Diagnostic::line, 0)
                                  .whole("column", &Diagnostic::column, 0)
                                  .name("severity", &Diagnostic::severity)
                                  .text("text", &Diagnostic::text);
  return kFields;
}

const Fields<KernelEdit>& kernel_edit_fields() {
  static const auto kFields =
      Fields<KernelEdit>().text("path", &KernelEdit::path).text("text", &KernelEdit::text);
  return kFields;
}

const Fields<EditedKernel>& edited_kernel_fields() {
  static const auto kFields =
      Fields<EditedKernel>()
          .text("path", &EditedKernel::path)
          .text("hash", &EditedKernel::hash)
          .text("compiler", &EditedKernel::compiler)
          .real("compile_ms", &EditedKernel::compile_ms)
          .flag("cached", &EditedKernel::cached)
          .list("diagnostics", &EditedKernel::diagnostics, diagnostic_fields());
  return kFields;
}

}  // namespace tilestep::lab
