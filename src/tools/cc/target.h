// SPDX-License-Identifier: Apache-2.0
// What kernels are compiled for, by the texts that containers have.
#ifndef TOOLS_CC_TARGET_H_
#define TOOLS_CC_TARGET_H_

#include <keel/driver/image.h>
#include <stdbool.h>

enum { TARGETS_MAX = 64, TARGET_TEXT = 32 };

typedef enum target_family_t {
    TARGET_HOST,
    TARGET_NVPTX,
    TARGET_AMDGCN,
    TARGET_MSL,
    TARGET_GIVEN, // nothing is compiled: the image is there already
} target_family_t;

typedef struct target_t {
    char text[TARGET_TEXT];
    target_family_t family;
    keel_image_kind_t kind;
    bool foreign;                  // code of another kind of host than this
    char triple[TARGET_TEXT];      // clang's name of the machine
    char machine[TARGET_TEXT + 8]; // the option that names the processor: -march=sm_70
    const char *given;             // TARGET_GIVEN: the file of the image
} target_t;

typedef struct target_list_t {
    target_t items[TARGETS_MAX];
    int count;
} target_list_t;

// Reads texts separated by commas; "host" stands for all levels of this machine's architecture.
// Prints what is wrong and returns false.
bool target_list_parse(const char *text, target_list_t *list);

// Adds an image that is given as KIND:TARGET=FILE; the same.
bool target_list_give(const char *text, target_list_t *list);

#endif
