// SPDX-License-Identifier: Apache-2.0
// How calls fail.
//
// A status is a pointer: NULL is success, anything else an immutable, reference-counted error that
// says what went wrong (code and message), where it was noticed (file and line of the library), at
// which operation (the path: queue, submission, recording, debug groups, command), and what caused
// it (another status, or NULL).
//
// A function that returns a status gives its caller one reference, to be passed on (KEEL_TRY) or
// released (keel_status_release; NULL is fine). Making a status allocates; when even that fails, a
// static one with the same code and no message takes its place, so an error is never lost.
//
//     keel_status_t status = keel_device_open("cuda://0", NULL, &gpu);
//     if (status) {
//         keel_status_print(status, stderr);   // NOT_FOUND: no NVIDIA driver can ...
//         keel_status_release(status);
//     }
//
// Statuses may be used from any thread.
#ifndef KEEL_STATUS_H_
#define KEEL_STATUS_H_

#include <keel/base.h>
#include <stdio.h>

// One line per code: name, and what a caller should understand by it.
#define KEEL_CODES(X)                                                                              \
    X(OK, "success")                                                                               \
    X(INVALID_ARGUMENT, "an argument is wrong whatever the state of the system")                   \
    X(OUT_OF_RANGE, "an index, offset or length lies outside of what it refers to")                \
    X(NOT_FOUND, "nothing has that name, path or number")                                          \
    X(UNSUPPORTED, "the device cannot do this; its capabilities say so")                           \
    X(FAILED_PRECONDITION, "the object is not in a state that allows this")                        \
    X(PERMISSION_DENIED, "the buffer's access or usage, or the system, does not allow this")       \
    X(OUT_OF_MEMORY, "host memory ran out")                                                        \
    X(RESOURCE_EXHAUSTED, "a limit was reached: a pool's, a device's, the system's")               \
    X(DEADLINE_EXCEEDED, "the wait ended before the points were reached")                          \
    X(CANCELLED, "the work was given up before it began, for the device was closed")               \
    X(ABORTED, "the kernel or host call reported a failure of its own")                            \
    X(DEVICE_LOST, "the device can do no more work; the cause is attached")                        \
    X(CORRUPT, "a file or image is damaged or not what it claims to be")                           \
    X(IO, "reading or writing a file failed")                                                      \
    X(INTERNAL, "the library or a vendor's broke its own rules; please report it")

typedef enum keel_code_t {
#define KEEL_CODE_(name, meaning) KEEL_##name,
    KEEL_CODES(KEEL_CODE_)
#undef KEEL_CODE_
} keel_code_t;

typedef struct keel_status *keel_status_t;

// Returns the error of `call` to the caller of the function that contains it.
#define KEEL_TRY(call)                                                                             \
    do {                                                                                           \
        keel_status_t keel_try_ = (call);                                                          \
        if (__builtin_expect(keel_try_ != NULL, 0)) return keel_try_;                              \
    } while (0)

// An error of your own, to return from a host call or to fail a semaphore with. Never NULL unless
// code is KEEL_OK.
#define KEEL_ERROR(code, ...) keel_status_make((code), __FILE__, __LINE__, __VA_ARGS__)

KEEL_EXTERN_C_BEGIN

KEEL_API keel_status_t keel_status_make(keel_code_t code, const char *file, int line,
                                        const char *format, ...)
    KEEL_PRINTF(4, 5) KEEL_MUST_USE KEEL_COLD;

// Explains `cause` (consumed) by a further sentence; the code is the cause's. NULL stays NULL.
KEEL_API keel_status_t keel_status_wrap(keel_status_t cause, const char *format, ...)
    KEEL_PRINTF(2, 3) KEEL_MUST_USE KEEL_COLD;

KEEL_API keel_status_t keel_status_retain(keel_status_t status);
KEEL_API void keel_status_release(keel_status_t status);

// What a status says. Strings and the cause are borrowed from it and never NULL, except the cause.
KEEL_API keel_code_t keel_status_code(keel_status_t status); // KEEL_OK for NULL
KEEL_API const char *keel_status_message(keel_status_t status);
KEEL_API const char *keel_status_path(keel_status_t status); // "" if it happened in no operation
KEEL_API keel_status_t keel_status_cause(keel_status_t status);

// The name of a code: "INVALID_ARGUMENT".
KEEL_API const char *keel_code_name(keel_code_t code);

// The whole of it as a person would read it, causes and places included. Writes at most `size`
// bytes, always terminated, and returns the length it would have had.
KEEL_API size_t keel_status_format(keel_status_t status, char *text, size_t size);
KEEL_API void keel_status_print(keel_status_t status, FILE *file);

KEEL_EXTERN_C_END

#endif
