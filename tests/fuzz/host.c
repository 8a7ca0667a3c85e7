// SPDX-License-Identifier: Apache-2.0
#include "executable/host.h"

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader(data, size, host_read);
}
