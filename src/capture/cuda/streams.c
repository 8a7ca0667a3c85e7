// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda/streams.h"

#include <dlfcn.h>
#include <stdio.h>

#include "trace/event.h"

enum { DEVICES = 64, STREAMS = 4096 };

static char devices[DEVICES][96];
static _Atomic uint32_t memories[DEVICES];

typedef struct stream_t {
    stream_key_t key;
    _Atomic uint32_t queue; // 0: there is no such stream
} stream_t;
static stream_t streams[STREAMS];

void streams_name_devices(void)
{
    char name[64];
    void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = dlsym(cuda ? cuda : RTLD_DEFAULT, "cuDeviceGetName");
    int (*get_name)(char *, int, int) = (int (*)(char *, int, int))(uintptr_t)symbol;
    for (int i = 0; i < DEVICES; i++) {
        bool known = get_name && get_name(name, sizeof name, i) == 0;
        if (known)
            snprintf(devices[i], sizeof devices[i], "gpu %d (%s)", i, name);
        else
            snprintf(devices[i], sizeof devices[i], "gpu %d", i);
        if (!known) get_name = NULL; // there are no more
    }
}

static const char *device_name(uint32_t device)
{
    return device < DEVICES && *devices[device] ? devices[device] : "gpu";
}

// The place of a stream in the table; NULL: there is none left.
static stream_t *stream_find(stream_key_t key)
{
    uint32_t at = (key.device * 31 + key.context) * 131 + key.stream;
    for (uint32_t i = 0; i < STREAMS; i++, at++) {
        stream_t *stream = &streams[at % STREAMS];
        const stream_key_t *known = &stream->key;
        if (!stream->queue || (known->device == key.device && known->context == key.context &&
                               known->stream == key.stream))
            return stream;
    }
    return NULL;
}

uint32_t streams_queue(stream_key_t key)
{
    static _Atomic uint32_t others;
    char name[32];
    stream_t *stream = stream_find(key);
    if (!stream) return trace_queue(&others, device_name(key.device), "other streams", NULL);
    if (stream->queue) return stream->queue;
    stream->key = key;
    snprintf(name, sizeof name, "stream %u", key.stream);
    return trace_queue(&stream->queue, device_name(key.device), name, NULL);
}

uint32_t streams_memory(uint32_t device)
{
    char name[128];
    snprintf(name, sizeof name, "%s: memory", device_name(device));
    return trace_name_at(&memories[device % DEVICES], name);
}
