// SPDX-License-Identifier: Apache-2.0
// The kinds of images, and how to tell them. The readers of collections ask, so this stands below
// them.
#ifndef KEEL_SRC_EXECUTABLE_KIND_H_
#define KEEL_SRC_EXECUTABLE_KIND_H_

#include <keel/driver/image.h>

// The kinds that drivers know have the same numbers here.
typedef enum image_kind_t {
    IMAGE_UNKNOWN = KEEL_IMAGE_UNKNOWN,
    IMAGE_HOST = KEEL_IMAGE_HOST,         // ELF shared object for a host's processor
    IMAGE_PTX = KEEL_IMAGE_PTX,           // NVIDIA's virtual assembly, text
    IMAGE_CUBIN = KEEL_IMAGE_CUBIN,       // ELF with code of an NVIDIA GPU
    IMAGE_FATBIN = KEEL_IMAGE_FATBIN,     // NVIDIA's collection of PTX and cubins
    IMAGE_HSACO = KEEL_IMAGE_HSACO,       // ELF with code of an AMD GPU
    IMAGE_SPIRV = KEEL_IMAGE_SPIRV,       // a SPIR-V module
    IMAGE_MSL = KEEL_IMAGE_MSL,           // Metal's language, text: not read
    IMAGE_METALLIB = KEEL_IMAGE_METALLIB, // compiled for Metal: not read
    IMAGE_OFFLOAD,                        // LLVM's OffloadBinary, several of them end to end
    IMAGE_BUNDLE,                         // clang's offload bundle, plain or compressed
    IMAGE_CONTAINER,                      // Keel's own
    IMAGE_BITCODE,                        // LLVM's intermediate code: not read
    IMAGE_KINDS,
} image_kind_t;

// What the bytes look like by their beginning; IMAGE_UNKNOWN for anything else.
image_kind_t image_recognise(const void *data, size_t size);

// A short lower-case name: "ptx", "hsaco".
const char *image_kind_name(image_kind_t kind);

#endif
