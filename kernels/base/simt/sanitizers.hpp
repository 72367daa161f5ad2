#pragma once

/// \file
/// TILESTEP_ASAN and TILESTEP_TSAN: which sanitizer the code is built with, as g++ and Clang say it.

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TILESTEP_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define TILESTEP_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TILESTEP_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define TILESTEP_TSAN 1
#endif
