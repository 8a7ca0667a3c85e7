// SPDX-License-Identifier: Apache-2.0
// Values of options of URIs. Errors name the option and what it takes.
#ifndef KEEL_SRC_KIT_OPTION_H_
#define KEEL_SRC_KIT_OPTION_H_

#include <keel/status.h>

// One of two words, as 0 or 1.
keel_status_t option_choice(const char *key, const char *value, const char *words[2], int *choice);

// A handle of a vendor's, as a number that is not 0.
keel_status_t option_handle(const char *key, const char *value, void **handle);

#endif
