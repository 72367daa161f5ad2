#include "kernels/base/lab/edit.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/sentence.hpp"

namespace tilestep::lab {

std::string hash_of(std::string_view text) {
  // FNV-1a (Fowler, Noll and Vo), 64 bits.
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return fmt::format("{:016x}", hash);
}

std::string why_no_source(std::string_view text) {
  if (text.size() > kMostKernelBytes) {
    return fmt::format("has {} bytes; a kernel source has at most {}", text.size(),
                       kMostKernelBytes);
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return "is UTF-16; a kernel source is UTF-8: save it as UTF-8";
  }
  int line = 1;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      return fmt::format("has a byte in line {} that is not UTF-8: save it as UTF-8", line);
    }
    const auto c = static_cast<unsigned char>(text[0]);
    if ((c < 0x20 && c != '\n' && c != '\t' && c != '\r' && c != '\f') || c == 0x7f) {
      return fmt::format("has the control character 0x{:02x} in line {}, so it is no text",
                         static_cast<unsigned>(c), line);
    }
    line += c == '\n' ? 1 : 0;
    text.remove_prefix(length);
  }
  return {};
}

std::vector<Diagnostic> diagnostics_of(const Error& error) {
  const auto* of_source = dynamic_cast<const SourceError*>(&error);
  return of_source == nullptr ? std::vector<Diagnostic>() : of_source->diagnostics();
}

const Fields<Diagnostic>& diagnostic_fields() {
  static const auto kFields = Fields<Diagnostic>()
                                  .whole(TILESTEP_MEMBERS(Diagnostic, line, column), 0)
                                  .name("severity", &Diagnostic::severity)
                                  .text("text", &Diagnostic::text);
  return kFields;
}

const Fields<KernelEdit>& kernel_edit_fields() {
  static const auto kFields = Fields<KernelEdit>()
                                  .text(TILESTEP_MEMBERS(KernelEdit, path, text))
                                  .check([](const KernelEdit& edit) -> std::string {
                                    const std::string why = why_no_source(edit.text);
                                    return why.empty() ? "" : "its text " + why;
                                  });
  return kFields;
}

const Fields<EditedKernel>& edited_kernel_fields() {
  static const auto kFields =
      Fields<EditedKernel>()
          .text(TILESTEP_MEMBERS(EditedKernel, path, hash, compiler))
          .real("compile_ms", &EditedKernel::compile_ms)
          .flag("cached", &EditedKernel::cached)
          .flag("idle", &EditedKernel::idle)
          .optional()
          .list("diagnostics", &EditedKernel::diagnostics, diagnostic_fields());
  return kFields;
}

}  // namespace tilestep::lab
