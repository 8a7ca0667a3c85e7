// SPDX-License-Identifier: Apache-2.0
#include "metal/hazard_cells.h"

#include "metal/base.h"

#include <stdlib.h>
#include <sys/mman.h>

typedef struct split_t {
    struct split_t *next;
    cell_t each[CELLS_PIECE];
} split_t;

typedef struct piece_t {
    cell_t all;     // of its bytes
    split_t *split; // NULL: `all` is theirs
} piece_t;

static size_t pieces_of(const cells_t *cells)
{
    return (cells->length + CELLS_PIECE - 1) / CELLS_PIECE;
}

cells_t cells_make(size_t length)
{
    cells_t cells = {.length = length};
    cells.pieces = mmap(NULL, pieces_of(&cells) * sizeof(piece_t), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cells.pieces == MAP_FAILED) die("no memory to look for hazards");
    return cells;
}

void cells_free(cells_t *cells)
{
    for (split_t *split; (split = cells->splits) != NULL;) {
        cells->splits = split->next;
        free(split);
    }
    munmap(cells->pieces, pieces_of(cells) * sizeof(piece_t));
}

static cell_t *cell_in(piece_t *piece, size_t at)
{
    return piece->split ? &piece->split->each[at % CELLS_PIECE] : &piece->all;
}

const cell_t *cell_at(const cells_t *cells, size_t at)
{
    return cell_in(&cells->pieces[at / CELLS_PIECE], at);
}

size_t cells_next(const cells_t *cells, size_t at)
{
    while (at < cells->length) {
        const piece_t *piece = &cells->pieces[at / CELLS_PIECE];
        if (piece->split || piece->all.writer || piece->all.reader) return at;
        at = (at / CELLS_PIECE + 1) * CELLS_PIECE;
    }
    return cells->length;
}

static void piece_split(cells_t *cells, piece_t *piece)
{
    split_t *split = make(sizeof *split);
    for (unsigned i = 0; i < CELLS_PIECE; i++) split->each[i] = piece->all;
    split->next = cells->splits;
    piece->split = cells->splits = split;
}

cell_t *cell_need(cells_t *cells, size_t at, size_t end, size_t *count)
{
    piece_t *piece = &cells->pieces[at / CELLS_PIECE];
    size_t size = cells->length - at < CELLS_PIECE ? cells->length - at : CELLS_PIECE;
    bool whole = at % CELLS_PIECE == 0 && end - at >= size;
    if (!whole && !piece->split) piece_split(cells, piece);
    *count = piece->split ? 1 : size;
    return cell_in(piece, at);
}
