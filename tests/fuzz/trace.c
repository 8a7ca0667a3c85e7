// SPDX-License-Identifier: Apache-2.0
// The file of a traced process. An input that has the format's mark is the file; another one is the
// end of a header, and records, which are merged with the second half of them from another machine.
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "fuzz/traces.h"
#include "trace/format.h"

enum { GIVEN = 64, OFFSET = offsetof(trace_header_t, clock) };

static void file_make(const uint8_t *header, const uint8_t *records, size_t size,
                      char path[TRACES_PATH])
{
    static union {
        trace_header_t header;
        uint8_t bytes[TRACE_HEADER_SIZE + TRACE_CHUNK];
    } file;
    memset(&file, 0, sizeof file);
    memcpy(file.header.magic, TRACE_MAGIC, sizeof TRACE_MAGIC);
    file.header.version = TRACE_VERSION;
    file.header.slots = TRACE_SLOTS;
    memcpy(file.bytes + OFFSET, header, GIVEN);
    file.header.boot[0] = (char)('a' + size % 26);
    memcpy(file.bytes + TRACE_HEADER_SIZE, records, size < TRACE_CHUNK ? size : TRACE_CHUNK);
    traces_file(&file, sizeof file, path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[TRACES_PATH], other[TRACES_PATH] = "";
    if (size < GIVEN || memcmp(data, TRACE_MAGIC, sizeof TRACE_MAGIC) == 0) {
        traces_file(data, size, path);
    } else {
        size_t records = size - GIVEN;
        size_t half = records / sizeof(trace_record_t) / 2 * sizeof(trace_record_t);
        file_make(data, data + GIVEN, records, path);
        file_make(data, data + GIVEN + half, records - half, other);
    }
    traces_use(path, *other ? other : NULL, size && data[0] % 4 == 0);
    unlink(path);
    if (*other) unlink(other);
    return 0;
}
