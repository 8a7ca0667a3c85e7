// SPDX-License-Identifier: Apache-2.0
// Devices that lack something, or behave otherwise than the card that the rest was measured on:
// `without=` and `quirk=` of KEEL_SIM_CUDA.
#ifndef SIM_CUDA_VARIANT_H_
#define SIM_CUDA_VARIANT_H_

#include "cuda/api.h"

#include <stdbool.h>

typedef enum quirk_t {
    QUIRK_ROOMY = 1 << 0,  // graphs always find room: to make one never waits for the device
    QUIRK_PROMPT = 1 << 1, // memory freed on a stream is free as soon as the stream is past that
    QUIRK_RIGID = 1 << 2,  // executable graphs refuse every change of a node
    QUIRK_EARLY = 1 << 3,  // a context has all its threads from the beginning
} quirk_t;

// Reads words with a plus between them into bits, to be kept in settings_t. False: one is unknown.
bool without_read(char *words, unsigned *bits);
bool quirk_read(char *words, unsigned *bits);

// Whether the library lacks the function, by the name that it is asked for; whether the device does
// not have what an attribute says that it has.
bool symbol_is_missing(const char *name);
bool attribute_is_missing(CUdevice_attribute attribute);

bool has_quirk(quirk_t quirk);

#endif
