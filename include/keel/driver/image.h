// SPDX-License-Identifier: Apache-2.0
// Images: the code of an executable as a driver gets it to load, from a container
// (docs/container.md) or as some other tool made it.
//
// A target is a short text that names what an image runs on:
//
//     x86_64-linux  x86_64-linux:v3  aarch64-linux  aarch64-linux:sve  aarch64-macos
//     nvptx:sm_70   gfx90a  gfx1100  spirv  msl
#ifndef KEEL_DRIVER_IMAGE_H_
#define KEEL_DRIVER_IMAGE_H_

#include <keel/executable.h>
#include <keel/image.h>

// How a kernel takes its arguments.
typedef enum keel_abi_t {
    KEEL_ABI_RAW = 0,    // a block of its own making: dispatches give it
    KEEL_ABI_HOST = 1,   // host_kernel.h
    KEEL_ABI_OLDER = 2,  // what `keel cc` made once; no device takes it any more
    KEEL_ABI_DIRECT = 3, // one block by value: the grid, addresses, lengths, constants
    KEEL_ABI_BOUND = 4,  // what is bound by number, constants apart: shaders, argument buffers
} keel_abi_t;

typedef struct keel_image_entry_t {
    keel_entry_info_t info;
    const keel_binding_info_t *bindings; // [info.bindings]
    uint32_t abi;                        // keel_abi_t
    uint32_t arguments;                  // bytes of the block; 0: not known
} keel_image_entry_t;

// What executable_load gets. Everything is borrowed for the call.
typedef struct keel_image_t {
    keel_image_kind_t kind;            // KEEL_IMAGE_UNKNOWN: it came alone, and its bytes tell
    const char *target;                // as the container says; "" if it came alone
    const void *data;                  // in memory that no other thread writes
    size_t size;                       //
    const void *hash;                  // of these, 32 bytes, as checked; NULL if it came alone
    const keel_image_entry_t *entries; // as the container says; NULL if it came alone
    uint32_t entry_count;              //
} keel_image_t;

// What executable_rank answers: 0 if the device cannot run it, else one of these plus up to 0xffff
// to tell better from worse within it.
enum {
    KEEL_RANK_PORTABLE = 0x10000,   // translated for the device when it is loaded
    KEEL_RANK_COMPATIBLE = 0x20000, // for a lesser device of the family
    KEEL_RANK_EXACT = 0x30000,      // for this very architecture
};

#endif
