#ifndef CLIBFUZZER_H
#define CLIBFUZZER_H

#include <stddef.h>
#include <stdint.h>

// Why C: the toolchain has libFuzzer as a library, without a header or a module of its own.

/// Runs libFuzzer with the command line of a program that keeps its own `main`.
int LLVMFuzzerRunDriver(
    int *_Nonnull argc, char *_Nullable *_Nonnull *_Nonnull argv,
    int (*_Nonnull body)(const uint8_t *_Nullable data, size_t size));

#endif
