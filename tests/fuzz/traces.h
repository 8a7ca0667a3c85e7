// SPDX-License-Identifier: Apache-2.0
// What the targets for traces share: files made of an input, and all that `keel trace` does with
// them.
#ifndef TESTS_FUZZ_TRACES_H_
#define TESTS_FUZZ_TRACES_H_

#include <stdbool.h>
#include <stddef.h>

enum { TRACES_PATH = 32 };

// Writes a new file, to be unlinked, and gives its path.
void traces_file(const void *data, size_t size, char path[TRACES_PATH]);

// SQLite is installed. Without it, databases are left out.
bool traces_has_sqlite(void);

// Reads one trace, or merges two, and makes all texts of it; and databases, one of which is read
// again, if `databases`: they take most of the time. Aborts if the model or what is made of it
// breaks a promise, if memory is left behind, or if it takes seconds of computing. `other` may be
// NULL.
void traces_use(const char *path, const char *other, bool databases);

#endif
