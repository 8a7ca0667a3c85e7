// SPDX-License-Identifier: Apache-2.0
// The entry points of a text are found by reading it: each `kernel void NAME(...)` has a list of
// parameters with an attribute each. Behind the text comes a function for each of them, which takes
// the arguments from a thread_t. clang compiles both as C++ for OpenCL.
#include "metal/msl.h"

#include "metal/compile.h"
#include "metal/static.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const positions[POSITIONS] = {
    [IN_GRID] = "thread_position_in_grid",
    [IN_GROUP] = "thread_position_in_threadgroup",
    [GROUP_IN_GRID] = "threadgroup_position_in_grid",
    [THREADS_PER_GROUP] = "threads_per_threadgroup",
    [THREADS_PER_GRID] = "threads_per_grid",
    [GROUPS_PER_GRID] = "threadgroups_per_grid",
    [INDEX_IN_GROUP] = "thread_index_in_threadgroup",
    [INDEX_IN_LANES] = "thread_index_in_simdgroup",
    [LANES_INDEX] = "simdgroup_index_in_threadgroup",
    [LANES_PER_GROUP] = "simdgroups_per_threadgroup",
    [THREADS_PER_LANES] = "threads_per_simdgroup",
};

// A part of a text.
typedef struct piece_t {
    const char *begin, *end;
} piece_t;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static piece_t trim(piece_t piece)
{
    while (piece.begin < piece.end && isspace((unsigned char)*piece.begin)) piece.begin++;
    while (piece.begin < piece.end && isspace((unsigned char)piece.end[-1])) piece.end--;
    return piece;
}

// Overwrites comments, so that none is taken for code.
static void blank_comments(char *text)
{
    for (char *at = text; *at; at++) {
        const char *end = NULL;
        if (at[0] == '/' && at[1] == '/')
            end = strchr(at, '\n');
        else if (at[0] == '/' && at[1] == '*')
            end = strstr(at + 2, "*/");
        else
            continue;
        if (!end)
            end = at + strlen(at);
        else if (at[1] == '*')
            end += 2;
        for (; at < end; at++)
            if (*at != '\n') *at = ' ';
        at--;
    }
}

// The next word `kernel` at or after a place; NULL if there is none.
static const char *find_kernel(const char *text, const char *from)
{
    for (const char *at = from; (at = strstr(at, "kernel")) != NULL; at += 6)
        if ((at == text || !is_word(at[-1])) && !is_word(at[6])) return at;
    return NULL;
}

// Where the parenthesis that is open before `at` ends.
static const char *find_close(const char *at)
{
    for (int depth = 1; *at; at++) {
        depth += (*at == '(') - (*at == ')');
        if (depth == 0) return at;
    }
    return NULL;
}

// How many pointers the struct of that name has, if they are numbered, as in an argument buffer.
static uint8_t count_arguments(const char *text, piece_t name)
{
    char head[160];
    unsigned count = 0;
    snprintf(head, sizeof head, "struct %.*s", (int)(name.end - name.begin), name.begin);
    for (const char *at = text; (at = strstr(at, head)) != NULL; at++) {
        if (is_word(at[strlen(head)])) continue;
        const char *end = strchr(at, '}');
        for (; end && (at = strstr(at, "[[id(")) != NULL && at < end; at++) count++;
        break;
    }
    return (uint8_t)count;
}

// `constant NAME &` may be an argument buffer.
static uint8_t find_arguments(const char *text, piece_t type)
{
    static const char space[] = "constant";
    type = trim(type);
    piece_t name = type;
    if ((size_t)(type.end - type.begin) < sizeof space) return 0;
    if (memcmp(type.begin, space, sizeof space - 1) != 0 || type.end[-1] != '&') return 0;
    name.begin += sizeof space - 1;
    name.end--;
    return count_arguments(text, trim(name));
}

static bool begins(piece_t piece, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(piece.end - piece.begin) >= length && !memcmp(piece.begin, word, length);
}

// Of a scalar or a vector, by its name; 0: it is another type.
static uint8_t find_alignment(piece_t type)
{
    static const struct {
        const char *name;
        uint8_t size;
    } scalars[] = {{"uchar", 1}, {"char", 1},   {"bool", 1},        {"ushort", 2},    {"short", 2},
                   {"half", 2},  {"uint", 4},   {"int", 4},         {"float", 4},     {"ulong", 8},
                   {"long", 8},  {"size_t", 8}, {"atomic_uint", 4}, {"atomic_int", 4}};
    static const char *const before[] = {"device", "constant", "const", "volatile"};
    for (unsigned i = 0; i < sizeof before / sizeof *before;) {
        type = trim(type);
        bool found = begins(type, before[i]) && !is_word(type.begin[strlen(before[i])]);
        if (found) type.begin += strlen(before[i]);
        i = found ? 0 : i + 1;
    }
    for (unsigned i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        if (!begins(type, scalars[i].name)) continue;
        const char *rest = type.begin + strlen(scalars[i].name);
        if (*rest == '2') return (uint8_t)(2 * scalars[i].size);
        if (*rest == '3' || *rest == '4') return (uint8_t)(4 * scalars[i].size);
        if (!is_word(*rest)) return scalars[i].size;
    }
    return 0;
}

// `[[max_total_threads_per_threadgroup(N)]]` right before `kernel`.
static unsigned find_threads(const char *text, const char *kernel)
{
    static const char word[] = "[[max_total_threads_per_threadgroup(";
    piece_t before = trim((piece_t){text, kernel});
    if (before.end - before.begin < 2 || before.end[-1] != ']') return THREADS_MAX;
    const char *at = before.end;
    while (at > before.begin && strncmp(at, "[[", 2) != 0) at--;
    unsigned threads =
        strncmp(at, word, sizeof word - 1) ? 0 : (unsigned)atoi(at + sizeof word - 1);
    return threads && threads < THREADS_MAX ? threads : THREADS_MAX;
}

// One parameter: its type, and [[attribute]] or [[attribute(index)]].
static bool write_parameter(FILE *out, entry_t *entry, const char *text, piece_t parameter)
{
    const char *open = memmem(parameter.begin, (size_t)(parameter.end - parameter.begin), "[[", 2);
    if (!open) return false;
    piece_t type = trim((piece_t){parameter.begin, open});
    while (type.end > type.begin && is_word(type.end[-1])) type.end--; // the parameter's name
    int length = (int)(type.end - type.begin);
    char name[64] = "";
    unsigned index = 0;
    int read = sscanf(open, "[[ %63[a-z_] ( %u", name, &index);
    if (read == 2 && index >= BUFFERS) return false;
    if (read == 2 && !strcmp(name, "buffer")) {
        entry->buffers |= 1u << index;
        entry->arguments[index] = find_arguments(text, type);
        entry->aligned[index] = find_alignment(type);
        entry->constants |= (uint32_t)begins(type, "constant") << index;
        return fprintf(out, "sim::bound<%.*s>::at(w[%u])", length, type.begin, index) > 0;
    }
    if (read == 2 && !strcmp(name, "threadgroup")) {
        entry->groups |= 1u << index;
        return fprintf(out, "sim::bound<%.*s>::at(w[%u])", length, type.begin, BUFFERS + index) > 0;
    }
    for (unsigned i = 0; i < POSITIONS; i++)
        if (!strcmp(name, positions[i]))
            return fprintf(out, "sim::position<%.*s>((__global const uint *)(w + %d) + %u)", length,
                           type.begin, 2 * BUFFERS, 3 * i) > 0;
    return false;
}

static bool write_entry(FILE *out, entry_t *entry, const char *text, piece_t list)
{
    fprintf(out, "extern \"C\" void sim_entry_%s(__global const ulong *w) { %s(", entry->name,
            entry->name);
    int depth = 0;
    for (const char *at = list.begin, *begin = at; at <= list.end; at++) {
        if (at < list.end && (depth += (*at == '(' || *at == '<') - (*at == ')' || *at == '>')) > 0)
            continue;
        if (at < list.end && *at != ',') continue;
        piece_t parameter = trim((piece_t){begin, at});
        if (parameter.begin == parameter.end) break;
        if (begin != list.begin) fputs(", ", out);
        if (!write_parameter(out, entry, text, parameter)) {
            fprintf(out, ");}\n#error \"kernel %s: a parameter has no attribute that is known\"\n",
                    entry->name);
            return false;
        }
        begin = at + 1;
    }
    return fputs("); }\n", out) >= 0;
}

// Writes all entry points behind the text, and lists them.
static void write_entries(FILE *out, code_t *code, const char *source)
{
    char *text = strdup(source);
    blank_comments(text);
    for (const char *at = text; (at = find_kernel(text, at)) != NULL;) {
        entry_t *entry = make(sizeof *entry);
        int past = 0;
        entry->threads = find_threads(text, at);
        at += 6;
        sscanf(at, " ]] void %127[A-Za-z0-9_] ( %n", entry->name, &past);
        if (!past) sscanf(at, " void %127[A-Za-z0-9_] ( %n", entry->name, &past);
        const char *close = past ? find_close(at + past) : NULL;
        if (!close || !write_entry(out, entry, text, (piece_t){at + past, close})) {
            free(entry);
            continue;
        }
        entry->next = code->entries;
        code->entries = entry;
    }
    free(text);
}

// The loader has a lock of its own, of which ThreadSanitizer does not know.
static pthread_mutex_t loader = PTHREAD_MUTEX_INITIALIZER;

static bool load(code_t *code, const char *path)
{
    pthread_mutex_lock(&loader);
    code->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    pthread_mutex_unlock(&loader);
    if (!code->handle) complain("compiled MSL cannot be loaded: %s", dlerror());
    if (!code->handle) return false;
    for (entry_t *entry = code->entries; entry; entry = entry->next) {
        char name[160];
        snprintf(name, sizeof name, "sim_entry_%s", entry->name);
        *(void **)&entry->run = dlsym(code->handle, name);
        if (!entry->run) return false;
        entry->group_bytes = static_memory(path, entry->name);
    }
    return true;
}

code_t *msl_compile(const char *source, bool fast, char **log)
{
    code_t *code = make(sizeof *code);
    pthread_mutex_init(&code->lock, NULL);
    paths_t paths;
    compile_begin(&paths);
    paths.fast = fast;
    FILE *file = fopen(paths.source, "w");
    if (!file) die("%s cannot be written", paths.source);
    fprintf(file, "#include <metal_stdlib>\n#line 1 \"program_source\"\n%s\n#line 1 \"entries\"\n",
            source);
    write_entries(file, code, source);
    bool good = fclose(file) == 0 && compile(&paths) && load(code, paths.object);
    *log = read_text(paths.log);
    compile_end(&paths);
    if (good) return code;
    msl_free(code);
    return NULL;
}

void msl_free(code_t *code)
{
    if (!code) return;
    for (entry_t *entry; (entry = code->entries) != NULL;) {
        code->entries = entry->next;
        free(entry);
    }
    pthread_mutex_lock(&loader);
    if (code->handle) dlclose(code->handle);
    pthread_mutex_unlock(&loader);
    pthread_mutex_destroy(&code->lock);
    free(code);
}
