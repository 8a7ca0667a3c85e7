// SPDX-License-Identifier: Apache-2.0
#include "executable/msgpack.h"

#include "fuzz/fuzz.h"

// Read value by value, and passed over as a whole: both must agree on where it ends.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_begin(1 << 17);
    msgpack_t whole = {data, data + size}, step = whole;
    keel_status_t status = msgpack_skip(&whole);
    uint64_t left = 1;
    while (left && !status) {
        msgpack_value_t value;
        status = msgpack_next(&step, &value);
        if (status) break;
        left--;
        if (value.type == MSGPACK_ARRAY) left += value.size;
        if (value.type == MSGPACK_MAP) left += 2 * value.size;
        bool data_follows = value.type == MSGPACK_TEXT || value.type == MSGPACK_BINARY ||
                            value.type == MSGPACK_EXTENSION;
        FUZZ_CHECK(data_follows == (value.data != NULL));
        FUZZ_CHECK(!data_follows || value.data + value.size == step.at);
    }
    FUZZ_CHECK(status || whole.at == step.at);
    FUZZ_CHECK(!status || keel_status_code(status) == KEEL_CORRUPT);
    keel_status_release(status);
    fuzz_end();
    return 0;
}
