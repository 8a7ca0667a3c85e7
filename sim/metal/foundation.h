// SPDX-License-Identifier: Apache-2.0
// NSString, NSError and NSArray, as far as Metal hands them out or takes them.
#ifndef SIM_METAL_FOUNDATION_H_
#define SIM_METAL_FOUNDATION_H_

#include "metal/classes.h"

typedef struct string_t {
    object_t object;
    char *text; // owned
} string_t;

// Each is new, with count 1.
string_t *string_new(const char *text);
void *error_new(const char *domain, long code, const char *text);
void *array_new(void *const *objects, unsigned long count); // retains them

#endif
