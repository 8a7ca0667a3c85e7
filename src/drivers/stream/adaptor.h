// SPDX-License-Identifier: Apache-2.0
// What adaptors of vendors share: filling in the table, slots that are functions of the vendor's,
// and the arguments of launches.
#ifndef KEEL_SRC_DRIVERS_STREAM_ADAPTOR_H_
#define KEEL_SRC_DRIVERS_STREAM_ADAPTOR_H_

#include "drivers/stream/api.h"
#include "drivers/stream/slots.h"

// A slot that calls `symbol` with these arguments. CALL(symbols, symbol, ...) makes a status of
// what that returns.
#define STREAM_PARAMETERS(...) (stream_vendor_t * v, __VA_ARGS__)
#define STREAM_FORWARDS(CALL, slot, symbol, parameters, ...)                                       \
    static keel_status_t slot STREAM_PARAMETERS parameters                                         \
    {                                                                                              \
        return CALL(v->symbols, symbol, __VA_ARGS__);                                              \
    }
// The same for a slot that gives something back. A failure is not reported: no caller is left.
#define STREAM_DISCARDS(CALL, slot, symbol, parameters, ...)                                       \
    static void slot STREAM_PARAMETERS parameters                                                  \
    {                                                                                              \
        keel_status_release(CALL(v->symbols, symbol, __VA_ARGS__));                                \
    }
// The same for what `handle` names, which is made of `what`.
#define STREAM_RELEASES(CALL, slot, symbol, handle)                                                \
    STREAM_DISCARDS(CALL, slot, symbol, (void *what), handle)

// The arguments of a launch as one block: marks of the vendor's, each with what it announces.
typedef struct stream_extra_t {
    size_t size;
    void *list[5];
} stream_extra_t;

typedef struct stream_marks_t {
    void *pointer, *size, *end;
} stream_marks_t;

static inline void stream_extra_init(stream_extra_t *extra, const stream_launch_t *launch,
                                     stream_marks_t marks)
{
    extra->size = launch->size;
    extra->list[0] = marks.pointer;
    extra->list[1] = (void *)(uintptr_t)launch->arguments;
    extra->list[2] = marks.size;
    extra->list[3] = &extra->size;
    extra->list[4] = marks.end;
}

// The table, filled in at the first call by `fills`, which end with NULL. The last of them sets
// `driver`. Any thread.
typedef void stream_fill_t(stream_api_t *api);
const stream_api_t *stream_api_once(stream_api_t *api, stream_fill_t *const fills[]);

#endif
