// SPDX-License-Identifier: Apache-2.0
// One file for each action that was done. Its name is made of all that the action depends on: what
// is to be done, the options, the inputs, and which compiler it is. It begins with a digest of the
// rest: the number of results, and each with its kind, its name and its bytes.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comgr/comgr.h"
#include "comgr/text.h"

enum { HEAD = 2 * sizeof(uint64_t) };

static bool is_kept(int kind)
{
    return kind == COMGR_COMPILE || kind == COMGR_LINK_BITCODE || kind == COMGR_GENERATE ||
           kind == COMGR_LINK || kind == COMGR_COMPILE_AND_LINK;
}

// Whether nothing is in the set yet.
static bool is_empty(const comgr_t *c, uint64_t set)
{
    size_t count = 0;
    for (int kind = 1; kind < COMGR_KINDS; kind++)
        if (!c->count(set, kind, &count) && count) return false;
    return true;
}

// What is asked for in two calls, its size first. If it is optional, there may be none.
#define PUT(text, get, optional, ...)                                                              \
    do {                                                                                           \
        size_t size_ = 0;                                                                          \
        bool none_ = (get)(__VA_ARGS__, &size_, NULL) != 0;                                        \
        if (none_) size_ = 0;                                                                      \
        if (none_ && !(optional)) (text)->bad = true;                                              \
        text_number(text, size_);                                                                  \
        char *place_ = text_grow(text, size_);                                                     \
        if (place_ && size_ && (get)(__VA_ARGS__, &size_, place_)) (text)->bad = true;             \
    } while (0)

// The library takes no data that is empty, and gives some, mostly logs: these are left out.
static bool put_data(const comgr_t *c, text_t *text, int kind, uint64_t data)
{
    size_t size = 0;
    if (c->get_data(data, &size, NULL)) text->bad = true;
    if (!size) return false;
    text_number(text, (uint64_t)kind);
    PUT(text, c->get_name, true, data);
    PUT(text, c->get_data, false, data);
    return true;
}

// How many there are, and each.
static void put_set(const comgr_t *c, text_t *text, uint64_t set)
{
    uint64_t all = 0;
    size_t where = text->size, count;
    text_number(text, 0);
    for (int kind = 1; kind < COMGR_KINDS; kind++) {
        count = 0;
        if (c->count(set, kind, &count)) continue;
        for (size_t i = 0; i < count; i++) {
            uint64_t data = 0;
            if (c->at(set, kind, i, &data)) {
                text->bad = true;
                return;
            }
            all += put_data(c, text, kind, data);
            c->release(data);
        }
    }
    if (!text->bad) memcpy(text->bytes + where, &all, sizeof all);
}

static void put_info(const comgr_t *c, text_t *text, uint64_t info)
{
    int language = 0;
    bool logging = false;
    size_t count = 0;
    text->bad |= c->get_language(info, &language) || c->get_logging(info, &logging) ||
                 c->get_option_count(info, &count);
    text_number(text, (uint64_t)language);
    text_number(text, logging);
    text_number(text, count);
    for (size_t i = 0; i < count; i++) PUT(text, c->get_option, false, info, i);
    PUT(text, c->get_isa_name, true, info);
}

// Another compiler is another file, or has another date.
static void put_compiler(const comgr_t *c, text_t *text)
{
    struct stat status;
    size_t major = 0, minor = 0;
    text->bad = stat(COMGR_PATH, &status) != 0;
    if (text->bad) return;
    c->get_version(&major, &minor);
    text_number(text, major);
    text_number(text, minor);
    text_number(text, (uint64_t)status.st_size);
    text_number(text, (uint64_t)status.st_mtime);
}

// The path of the file that the action's results are kept in; false when they are not to be.
static bool path_make(const comgr_t *c, int kind, uint64_t info, uint64_t input, char path[4096])
{
    const char *folder = getenv("KEEL_SIM_CACHE");
    if (!folder || !*folder || !is_kept(kind)) return false;
    text_t text = {0};
    uint64_t digest[2];
    put_compiler(c, &text);
    text_number(&text, (uint64_t)kind);
    put_info(c, &text, info);
    put_set(c, &text, input);
    bool good = !text.bad;
    if (good) text_digest(&text, digest);
    text_finish(&text);
    return good && snprintf(path, 4096, "%s/%016llx%016llx", folder, (unsigned long long)digest[0],
                            (unsigned long long)digest[1]) < 4096;
}

// What is left to read of a file's bytes.
typedef struct {
    const char *at, *end;
} reader_t;

static uint64_t read_number(reader_t *r)
{
    uint64_t number = 0;
    if ((size_t)(r->end - r->at) < sizeof number) return 0;
    memcpy(&number, r->at, sizeof number);
    r->at += sizeof number;
    return number;
}

static const char *read_bytes(reader_t *r, size_t *size)
{
    *size = read_number(r);
    const char *bytes = r->at;
    if (*size > (size_t)(r->end - bytes)) *size = (size_t)(r->end - bytes);
    r->at += *size;
    return bytes;
}

// A name has its zero with it.
static int add_data(const comgr_t *c, reader_t *r, uint64_t set)
{
    uint64_t data;
    size_t name_size, size;
    int kind = (int)read_number(r);
    const char *name = read_bytes(r, &name_size), *bytes = read_bytes(r, &size);
    int error = c->create(kind, &data);
    if (error) return error;
    if (name_size) error = c->set_name(data, name);
    if (!error) error = c->set_data(data, size, bytes);
    if (!error) error = c->add(set, data);
    c->release(data);
    return error;
}

static bool file_read(const char *path, text_t *text)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    text->bad = fstat(file, &status) != 0;
    char *place = text->bad ? NULL : text_grow(text, (size_t)status.st_size);
    bool whole = place && read(file, place, text->size) == (ssize_t)text->size;
    close(file);
    return whole;
}

static void digest_rest(const text_t *text, uint64_t digest[2])
{
    const text_t rest = {text->bytes + HEAD, text->size - HEAD, 0, false};
    text_digest(&rest, digest);
}

// Puts what the file has into the set; false when there is no such file, or it is damaged.
static bool results_find(const comgr_t *c, const char *path, uint64_t set, int *error)
{
    text_t text = {0};
    uint64_t digest[2];
    bool good = file_read(path, &text) && text.size >= HEAD + sizeof(uint64_t);
    if (good) digest_rest(&text, digest);
    good = good && !memcmp(text.bytes, digest, HEAD);
    if (good) {
        reader_t r = {text.bytes + HEAD, text.bytes + text.size};
        *error = 0;
        for (uint64_t left = read_number(&r); left && !*error; left--)
            *error = add_data(c, &r, set);
    }
    text_finish(&text);
    return good;
}

// Under another name first, so that no process finds half of it.
static void file_write(const char *path, const text_t *text)
{
    char draft[4200];
    snprintf(draft, sizeof draft, "%s.XXXXXX", path);
    int file = mkstemp(draft);
    if (file < 0) return;
    bool whole = write(file, text->bytes, text->size) == (ssize_t)text->size;
    if (close(file) || !whole || rename(draft, path)) unlink(draft);
}

static void results_keep(const comgr_t *c, const char *path, uint64_t set)
{
    text_t text = {0};
    uint64_t digest[2];
    text_grow(&text, HEAD);
    put_set(c, &text, set);
    if (!text.bad) {
        digest_rest(&text, digest);
        memcpy(text.bytes, digest, HEAD);
        file_write(path, &text);
    }
    text_finish(&text);
}

int cache_action(const comgr_t *comgr, int kind, uint64_t info, uint64_t input, uint64_t result)
{
    char path[4096];
    int error;
    bool kept = is_empty(comgr, result) && path_make(comgr, kind, info, input, path);
    if (kept && results_find(comgr, path, result, &error)) return error;
    error = comgr->do_action(kind, info, input, result);
    if (kept && !error) results_keep(comgr, path, result);
    return error;
}
