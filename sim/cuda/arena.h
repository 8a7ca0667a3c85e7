// SPDX-License-Identifier: Apache-2.0
// The memory that devices reach. All of it has addresses in one span of the process, with guards
// between allocations, so that device code may use the addresses as they are. Device memory cannot
// be touched at these addresses but while kernels may run (arena_open); the library itself goes
// through a second view of the same bytes. All of it under the lock.
#ifndef SIM_CUDA_ARENA_H_
#define SIM_CUDA_ARENA_H_

#include "cuda/state.h"
#include "cuda/work.h"

typedef enum range_kind_t {
    RANGE_DEVICE,
    RANGE_POOL, // device memory, allocated in the order of a stream
    RANGE_HOST, // pinned
    RANGE_MANAGED,
    RANGE_REGISTERED, // the user's own
    RANGE_GLOBAL,     // a variable of a module
    RANGE_VIRTUAL,    // a mapping of the virtual memory API
} range_kind_t;

typedef enum range_state_t {
    RANGE_LIVE,
    RANGE_PROMISED, // its allocation has not been reached by its stream
} range_state_t;

typedef struct range_t {
    uint64_t base, size;
    uint64_t span, span_size;   // whole pages
    uint64_t whole, whole_size; // the reservation that a mapping lies in; else itself
    range_kind_t kind;
    range_state_t state;
    device_t *device;
    CUcontext context; // that owns it; NULL: none
    CUmemoryPool pool;
    unsigned flags;
    bool writable; // by devices
    bool ending;   // its free is enqueued
    uint64_t id;
    const char *maker; // the exported function that made it
} range_t;

// Once, with as many bytes as devices have in all; false when the system does not give the space.
bool arena_init(uint64_t memory);

// A new range of that kind, device, context and maker; the rest is chosen here. NULL: no space.
range_t *arena_alloc(range_kind_t kind, uint64_t size, device_t *device, CUcontext context);
// A range of memory that lies elsewhere.
range_t *arena_adopt(range_kind_t kind, uint64_t base, uint64_t size, CUcontext context);
// Addresses with nothing behind them, for arena_map.
uint64_t arena_reserve(uint64_t size, uint64_t align);
// Puts a file's bytes at reserved addresses, or nothing (fd -1); false when the system refuses.
bool arena_map(uint64_t address, uint64_t size, int fd, uint64_t offset);
range_t *arena_track(uint64_t address, uint64_t size, device_t *device);

// Makes a promised range usable.
void arena_begin(range_t *range);
void arena_free(range_t *range);
void arena_free_all(CUcontext context);

// The range that holds an address, or NULL.
range_t *arena_find(uint64_t address);
// The range that begins at an address, or NULL.
range_t *arena_find_base(uint64_t address);
// Whether any range has a byte of [address, address + size).
bool arena_overlaps(uint64_t address, uint64_t size);
// Any range of that kind that a context owns, or NULL.
range_t *arena_first(CUcontext context, range_kind_t kind);
unsigned arena_count(CUcontext context);

// Where the library reads and writes the byte at an address.
void *arena_bytes(uint64_t address);

// Whether [address, address + size) is inside one range that may be used then. If not, says why, in
// terms of the nearest allocation and of `maker`.
bool arena_check(uint64_t address, uint64_t size, moment_t moment, const char *maker);

// Whether work that is not over uses the range; tells of it.
bool arena_is_busy(const range_t *range);

// Lets kernels touch device memory, and forbids it again.
void arena_open(void);
void arena_close(void);

// Describes an address by the allocation it belongs or belonged to. Needs no lock, for it is called
// when all is lost.
void arena_describe(uint64_t address, char *text, size_t size);
bool arena_owns(uint64_t address);

#endif
