// SPDX-License-Identifier: Apache-2.0
// The bytes of buffers. They are in files without a name, one for each process, which other
// processes open by a handle or a descriptor that they were given. A file begins with a ledger of
// what is in it; bytes go when the last process that holds them lets go. A store belongs to the
// lock of memory.c: no two threads may be in here at once.
#ifndef SIM_AMD_KFD_STORE_H_
#define SIM_AMD_KFD_STORE_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct store store_t;

// Where the bytes of a buffer are.
typedef struct {
    store_t *store; // NULL: nowhere
    uint32_t entry; // in its ledger
} place_t;

// What a buffer is, for the process that opens it.
typedef struct {
    uint64_t size; // in bytes, a multiple of the page
    uint32_t flags, gpu_id;
} content_t;

// Each of the next three returns a place that is held, or one without a store when it fails.
// Makes room in the file of this process.
place_t store_add(const content_t *content);

// Opens what another process, or this one, has exported as a descriptor or as a handle.
place_t store_import(int descriptor);
place_t store_open(const uint32_t handle[4]);

// Lets go of the bytes.
void store_drop(place_t place);

content_t store_content(place_t place);

// A descriptor for the bytes, which the caller closes; -1 when there is none to be had.
int store_export(place_t place);

// Whether a descriptor is of such a file, of whatever process.
bool store_is(int descriptor);

// The system's lseek: the library's own is for programs (file_seek).
int64_t store_seek(int descriptor, int64_t offset, int whence);

// A handle that is good as long as this process holds the bytes.
void store_handle(place_t place, uint32_t handle[4]);

// The file of the bytes and where they are in it.
int store_file(place_t place, uint64_t *out_offset);

// The file of this process; -1 when memory is short.
int store_own(void);

// Forgets everything, in a process that was forked off another.
void store_forget(void);

#endif
