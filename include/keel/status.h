// SPDX-License-Identifier: Apache-2.0
// How calls fail.
//
// A status is a pointer. NULL is success. Anything else is an immutable, reference-counted error:
//
//     code     what kind of error it is: one of KEEL_CODES
//     message  what went wrong, with names and numbers
//     place    file and line of the library where the error was noticed
//     path     the operation it happened in: queue, submission, recording, debug groups, command
//     cause    the status that this one explains, or NULL
//
// A function that returns a status gives its caller one reference. The caller returns it (KEEL_TRY)
// or releases it (keel_status_release). Making a status allocates memory. If there is none, the
// library returns a static status with the same code and a general message. An error is never lost.
//
//     keel_status_t status = keel_device_open("cuda://0", NULL, &gpu);
//     if (status) {
//         keel_status_print(status, stderr);   // NOT_FOUND: no NVIDIA driver can ...
//         keel_status_release(status);
//     }
//
// Every function below may be called from any thread and never waits.
#ifndef KEEL_STATUS_H_
#define KEEL_STATUS_H_

#include <keel/base.h>
#include <stdio.h>

// One line per code: its name, and what it means to a caller. docs/errors.md has examples.
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

// KEEL_OK, KEEL_INVALID_ARGUMENT and so on, in the order above.
typedef enum keel_code_t {
#define KEEL_CODE_(name, meaning) KEEL_##name,
    KEEL_CODES(KEEL_CODE_)
#undef KEEL_CODE_
} keel_code_t;

// NULL, or one reference to an error.
typedef struct keel_status *keel_status_t;

// Evaluates `call` once. If it fails, the function that contains KEEL_TRY returns the error to its
// own caller.
#define KEEL_TRY(call)                                                                             \
    do {                                                                                           \
        keel_status_t keel_try_ = (call);                                                          \
        if (__builtin_expect(keel_try_ != NULL, 0)) return keel_try_;                              \
    } while (0)

// Makes an error of the application's own, to return from a host call or to fail a semaphore with.
// The arguments after `code` are those of printf. The result is NULL only if `code` is KEEL_OK.
//     return KEEL_ERROR(KEEL_ABORTED, "token %d has no page", token);
#define KEEL_ERROR(code, ...) keel_status_make((code), __FILE__, __LINE__, __VA_ARGS__)

KEEL_EXTERN_C_BEGIN

// What KEEL_ERROR calls. `file` is kept, not copied: pass a string literal. A code that keel_code_t
// does not have becomes KEEL_INTERNAL. Returns one reference; NULL only for KEEL_OK. Without
// memory, returns the static status of that code.
KEEL_API keel_status_t keel_status_make(keel_code_t code, const char *file, int line,
                                        const char *format, ...)
    KEEL_PRINTF(4, 5) KEEL_MUST_USE KEEL_COLD;

// Returns a new status whose cause is `cause`, with the same code and a further sentence. It
// consumes the caller's reference to `cause`. NULL returns NULL. Without memory, returns `cause`
// itself.
KEEL_API keel_status_t keel_status_wrap(keel_status_t cause, const char *format, ...)
    KEEL_PRINTF(2, 3) KEEL_MUST_USE KEEL_COLD;

// Adds a reference and returns `status`. NULL and static statuses are fine.
KEEL_API keel_status_t keel_status_retain(keel_status_t status);

// Gives up one reference. The last one frees the status and gives up its reference to the cause.
// NULL and static statuses are fine.
KEEL_API void keel_status_release(keel_status_t status);

// Returns the code; KEEL_OK for NULL. This is what a program decides by.
KEEL_API keel_code_t keel_status_code(keel_status_t status);

// Returns the message, for people; "success" for NULL. Never NULL. Borrowed from the status. The
// wording is not part of the API.
KEEL_API const char *keel_status_message(keel_status_t status);

// Returns the path of the operation in which the error happened, as "queue 'q', submission 1 >
// command 0 (dispatch 'f')". If this status has no path, returns that of the nearest cause that has
// one. "" if there is none. Never NULL. Borrowed from the status.
KEEL_API const char *keel_status_path(keel_status_t status);

// Returns the status that this one explains, or NULL. Borrowed: retain it to keep it.
KEEL_API keel_status_t keel_status_cause(keel_status_t status);

// Returns the name of a code without its prefix: "INVALID_ARGUMENT". "UNKNOWN" for a number that is
// no code. The string is static.
KEEL_API const char *keel_code_name(keel_code_t code);

// Writes the whole status as text for people: code, message, path, place and causes, on several
// lines without a last newline. Writes at most `size` bytes, the terminating zero included. Returns
// the length of the whole text without the zero, as snprintf does. `text` may be NULL if `size` is
// 0.
KEEL_API size_t keel_status_format(keel_status_t status, char *text, size_t size);

// Writes what keel_status_format makes, and a newline, to `file`. Text beyond 4095 bytes is cut
// off.
KEEL_API void keel_status_print(keel_status_t status, FILE *file);

KEEL_EXTERN_C_END

#endif
