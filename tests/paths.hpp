#pragma once

/// Where a test finds what it starts and reads. Each test program has a source of its own that CMake writes, with those
/// that it was given (tilestep_test in tests/CMakeLists.txt): as definitions on the command line they would make every
/// clone compile all tests again.
namespace tilestep::tests::paths {

extern const char* const kSource;   ///< the repository
extern const char* const kProgram;  ///< tilestep, or what stands in for it
extern const char* const kClassWorker;
extern const char* const kFailingModule;
extern const char* const kFakeModuleSame;
extern const char* const kFakeModuleOther;
extern const char* const kFakeModuleUnhashed;
extern const char* const kFaultsShim;

}  // namespace tilestep::tests::paths
