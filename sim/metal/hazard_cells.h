// SPDX-License-Identifier: Apache-2.0
// Who touched the bytes of a buffer last. Pieces of it whose bytes were always touched together
// have one cell; the first touch of a part of one gives each of its bytes a cell. Not safe between
// threads.
#ifndef SIM_METAL_HAZARD_CELLS_H_
#define SIM_METAL_HAZARD_CELLS_H_

#include <stdbool.h>
#include <stddef.h>

// Works: the writer, and of the readers since then two that nothing orders, or a plain one and an
// atomic one behind it. Those that did so atomically have a bit for that (hazard_memory.c).
typedef struct cell_t {
    unsigned writer, reader, other;
} cell_t;

enum { CELLS_PIECE = 64 }; // bytes

typedef struct cells_t {
    struct piece_t *pieces; // mapped
    struct split_t *splits; // owned
    size_t length;          // in bytes
} cells_t;

cells_t cells_make(size_t length);
void cells_free(cells_t *cells);

const cell_t *cell_at(const cells_t *cells, size_t at);
// The first byte from this one on that may have been touched; the length: there is none.
size_t cells_next(const cells_t *cells, size_t at);
// For a change of bytes from `at` to `end`, or of the first of them: how many it is for.
cell_t *cell_need(cells_t *cells, size_t at, size_t end, size_t *count);

#endif
