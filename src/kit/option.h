// SPDX-License-Identifier: Apache-2.0
// Values of options of URIs. Errors name the option and what it takes.
#ifndef KEEL_SRC_KIT_OPTION_H_
#define KEEL_SRC_KIT_OPTION_H_

#include <keel/status.h>

// One of two words, as 0 or 1.
keel_status_t option_choice(const char *key, const char *value, const char *words[2], int *choice);

// Handles of a vendor's, `most` at most, as numbers that are not 0, with commas between them.
keel_status_t option_handles(const char *key, const char *value, void **handles, size_t most);

#endif
