// SPDX-License-Identifier: Apache-2.0
#include "executable/offload.h"

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader(data, size, offload_read);
}
