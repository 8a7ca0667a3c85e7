// SPDX-License-Identifier: Apache-2.0
// What fuzz targets share. Each NAME.c here defines LLVMFuzzerTestOneInput for one reader; it is
// linked with libFuzzer (`make fuzz`), and with replay.c, which gives it the files of corpus/NAME.
#ifndef TESTS_FUZZ_FUZZ_H_
#define TESTS_FUZZ_FUZZ_H_

#include "executable/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef keel_status_t (*fuzz_read_fn)(const void *data, size_t size, image_info_t *info);

// Reads an image and looks at all that it is said to hold. Aborts if that breaks a promise of
// image.h, takes more memory than `size` can justify or seconds of computing, or leaves any memory
// behind. Returns 0.
int fuzz_reader(const uint8_t *data, size_t size, fuzz_read_fn read);

// The same checks around other code: memory that the library allocates between the two is counted,
// must stay below `limit` and must be free at the end; and it must not take long.
void fuzz_begin(size_t limit);
void fuzz_end(void);

// Looks at every text and array of a description.
void fuzz_look(const image_info_t *info);
void fuzz_look_entry(const keel_image_entry_info_t *entry);

// Aborts, saying why, unless `condition`.
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) fuzz_fail(__FILE__, __LINE__, #condition);                               \
    } while (0)
void fuzz_fail(const char *file, int line, const char *condition) __attribute__((noreturn));

#endif
