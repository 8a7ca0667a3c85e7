// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include "base/live.h"
#include "base/memory.h"

struct keel_status {
    _Atomic uint32_t refs; // unused in static ones
    keel_code_t code;
    bool is_static;
    int line;
    const char *file;    // a literal
    keel_status_t cause; // owned
    char *path;          // owned
    const char *message; // in `text`, or a literal in static ones
    char text[];
};

// What remains of an error when there is no memory to describe it.
static struct keel_status bare[] = {
#define BARE(name, meaning)                                                                        \
    {.code = KEEL_##name,                                                                          \
     .is_static = true,                                                                            \
     .file = "",                                                                                   \
     .message = meaning " (no memory for details)"},
    KEEL_CODES(BARE)
#undef BARE
};

static struct keel_status timed_out = {
    .code = KEEL_DEADLINE_EXCEEDED,
    .is_static = true,
    .file = "",
    .message = "the wait ended before its points were reached",
};

static struct keel_status forgotten = {
    .code = KEEL_ABORTED,
    .is_static = true,
    .file = "",
    .message = "the work failed; its cause is no longer kept, for thousands have failed since",
};

keel_status_t status_forgotten(void)
{
    return &forgotten;
}

keel_status_t status_no_memory(void)
{
    return &bare[KEEL_OUT_OF_MEMORY];
}

keel_status_t status_timed_out(void)
{
    return &timed_out;
}

KEEL_PRINTF(2, 0)
static keel_status_t status_create(keel_code_t code, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t size = length < 0 ? 1 : (size_t)length + 1;
    keel_status_t status = mem_zalloc(sizeof *status + size);
    if (!status) return &bare[code];
    vsnprintf(status->text, size, format, args);
    atomic_init(&status->refs, 1);
    status->code = code;
    status->file = "";
    status->message = status->text;
    live_add(LIVE_STATUS, 1);
    return status;
}

keel_status_t keel_status_make(keel_code_t code, const char *file, int line, const char *format,
                               ...)
{
    if (code == KEEL_OK) return NULL;
    if ((unsigned)code >= sizeof bare / sizeof bare[0]) code = KEEL_INTERNAL;
    va_list args;
    va_start(args, format);
    keel_status_t status = status_create(code, format, args);
    va_end(args);
    if (!status->is_static) {
        status->file = file;
        status->line = line;
    }
    return status;
}

keel_status_t keel_status_wrap(keel_status_t cause, const char *format, ...)
{
    if (!cause) return NULL;
    va_list args;
    va_start(args, format);
    keel_status_t status = status_create(cause->code, format, args);
    va_end(args);
    if (status->is_static) return cause;
    status->cause = cause;
    return status;
}

// The same words once more, to be changed while others read the first ones.
static keel_status_t status_copy(keel_status_t status)
{
    keel_status_t copy =
        keel_status_make(status->code, status->file, status->line, "%s", status->message);
    if (copy->is_static) return status;
    // What has happened at one place, and now at another, has both.
    copy->cause = keel_status_retain(status->path ? status : status->cause);
    keel_status_release(status);
    return copy;
}

keel_status_t status_at(keel_status_t status, const char *path)
{
    if (!status || status->is_static) return status;
    if (status->path || atomic_load(&status->refs) > 1) status = status_copy(status);
    bool ours = !status->path && atomic_load(&status->refs) == 1; // or there was no memory
    if (ours) status->path = mem_copy_text(path);
    return status;
}

static bool is_bare(keel_status_t status)
{
    return status && status == &bare[status->code];
}

keel_status_t status_as(keel_status_t status, keel_code_t code)
{
    if (is_bare(status)) return &bare[code];
    if (status && !status->is_static) status->code = code;
    return status;
}

keel_code_t status_errno_code(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR: return KEEL_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
    case ETXTBSY:
    case ELOOP: return KEEL_PERMISSION_DENIED;
    case EBADF:
    case EINVAL:
    case EISDIR:
    case ENAMETOOLONG: return KEEL_INVALID_ARGUMENT;
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EFBIG: // a limit of the process or the file system
    case EDQUOT: return KEEL_RESOURCE_EXHAUSTED;
    case ENOMEM: return KEEL_OUT_OF_MEMORY;
    case ENOTSUP: return KEEL_UNSUPPORTED;
    default: return KEEL_IO;
    }
}

keel_status_t status_from_errno(keel_code_t code, int error, const char *what)
{
    char text[128] = "";
    // Whichever variant of strerror_r the system has, a message it could not give is a number.
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
    const char *message = strerror_r(error, text, sizeof text);
#else
    const char *message = strerror_r(error, text, sizeof text) == 0 ? text : "unknown error";
#endif
    return KEEL_ERROR(code, "%s: %s (errno %d)", what, message, error);
}

keel_status_t keel_status_retain(keel_status_t status)
{
    // relaxed: the caller has a reference already.
    if (status && !status->is_static)
        atomic_fetch_add_explicit(&status->refs, 1, memory_order_relaxed);
    return status;
}

void keel_status_release(keel_status_t status)
{
    while (status && !status->is_static) {
        // acq_rel: all uses by others come before the free.
        if (atomic_fetch_sub_explicit(&status->refs, 1, memory_order_acq_rel) != 1) return;
        keel_status_t cause = status->cause;
        mem_free(status->path);
        mem_free(status);
        live_add(LIVE_STATUS, -1);
        status = cause;
    }
}

keel_code_t keel_status_code(keel_status_t status)
{
    return status ? status->code : KEEL_OK;
}

const char *keel_status_message(keel_status_t status)
{
    return status ? status->message : "success";
}

const char *keel_status_path(keel_status_t status)
{
    for (; status; status = status->cause)
        if (status->path) return status->path;
    return "";
}

keel_status_t keel_status_cause(keel_status_t status)
{
    return status ? status->cause : NULL;
}

const char *keel_code_name(keel_code_t code)
{
    static const char *const names[] = {
#define NAME(name, meaning) #name,
        KEEL_CODES(NAME)
#undef NAME
    };
    return (unsigned)code < sizeof names / sizeof names[0] ? names[code] : "UNKNOWN";
}

// A bounded writer that goes on counting when it is full.
typedef struct text_t {
    char *at;
    size_t size, length;
} text_t;

KEEL_PRINTF(2, 3) static void text_add(text_t *text, const char *format, ...)
{
    size_t room = text->length < text->size ? text->size - text->length : 0;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(room ? text->at + text->length : NULL, room, format, args);
    va_end(args);
    if (length > 0) text->length += (size_t)length;
}

size_t keel_status_format(keel_status_t status, char *text, size_t size)
{
    text_t out = {text, size, 0};
    if (size) text[0] = 0;
    text_add(&out, "%s: %s", keel_code_name(keel_status_code(status)), keel_status_message(status));
    for (keel_status_t s = status; s; s = s->cause) {
        if (s != status) text_add(&out, "\n  because: %s", s->message);
        if (s->path) text_add(&out, "\n  at %s", s->path);
        if (s->file[0]) text_add(&out, " [%s:%d]", s->file, s->line);
    }
    return out.length;
}

void keel_status_print(keel_status_t status, FILE *file)
{
    char text[4096];
    keel_status_format(status, text, sizeof text);
    fprintf(file, "%s\n", text);
}
