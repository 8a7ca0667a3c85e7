// SPDX-License-Identifier: Apache-2.0
// What objects are called in messages.
#ifndef KEEL_SRC_KIT_LABEL_H_
#define KEEL_SRC_KIT_LABEL_H_

#include <stdio.h>

#include <keel/driver/object.h>

enum { LABEL_SIZE = 128 };

// "buffer 'weights' of 64 bytes", or "unnamed buffer of 64 bytes". Writes it to `text` and returns
// that.
static inline const char *buffer_extent(const keel_buffer_t *buffer, char text[LABEL_SIZE])
{
    unsigned long long size = buffer->size;
    if (buffer->name)
        snprintf(text, LABEL_SIZE, "buffer '%.80s' of %llu bytes", buffer->name, size);
    else
        snprintf(text, LABEL_SIZE, "unnamed buffer of %llu bytes", size);
    return text;
}

// The same, with the size only where there is no name.
static inline const char *buffer_label(const keel_buffer_t *buffer, char text[LABEL_SIZE])
{
    if (!buffer->name) return buffer_extent(buffer, text);
    snprintf(text, LABEL_SIZE, "buffer '%.80s'", buffer->name);
    return text;
}

// As arguments of a message.
#define BUFFER_EXTENT(buffer) buffer_extent(buffer, (char[LABEL_SIZE]){0})
#define BUFFER_LABEL(buffer)  buffer_label(buffer, (char[LABEL_SIZE]){0})

#endif
