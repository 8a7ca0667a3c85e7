// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "tools/inspect/inspect.h"

enum { COLUMNS = 6, CELL = 256, ROWS = 512 };

// Rows of cells, printed with each column as wide as its widest.
typedef struct table_t {
    char cells[ROWS + 1][COLUMNS][CELL]; // the last one takes what is not shown
    int rows, left_out;
} table_t;

static table_t table; // one at a time

static const char *const titles[KEEL_IMAGE_KINDS] = {
    [KEEL_IMAGE_UNKNOWN] = "not recognised",
    [KEEL_IMAGE_HOST] = "shared object of kernels",
    [KEEL_IMAGE_PTX] = "PTX",
    [KEEL_IMAGE_CUBIN] = "cubin",
    [KEEL_IMAGE_FATBIN] = "fatbin",
    [KEEL_IMAGE_HSACO] = "HSA code object",
    [KEEL_IMAGE_SPIRV] = "SPIR-V",
    [KEEL_IMAGE_MSL] = "Metal source",
    [KEEL_IMAGE_METALLIB] = "Metal library",
    [KEEL_IMAGE_OFFLOAD] = "LLVM offload binary",
    [KEEL_IMAGE_BUNDLE] = "clang offload bundle",
    [KEEL_IMAGE_CONTAINER] = "Keel container",
    [KEEL_IMAGE_BITCODE] = "LLVM bitcode",
};

// Names come from files: what could move a terminal's cursor is shown, not sent.
static void clean(char *to, size_t size, const char *from)
{
    size_t used = 0;
    for (; *from && used + 5 < size; from++) {
        unsigned char c = (unsigned char)*from;
        if (c >= ' ' && c != 0x7f)
            to[used++] = (char)c;
        else
            used += (size_t)snprintf(to + used, size - used, "\\x%02x", c);
    }
    to[used] = 0;
}

static void table_begin(void)
{
    table.rows = table.left_out = 0;
}

// Starts a row with what its first cell says.
static char (*row_begin(const char *first))[CELL]
{
    char(*row)[CELL] = table.cells[table.rows];
    if (table.rows < ROWS)
        table.rows++;
    else
        table.left_out++;
    memset(row, 0, sizeof table.cells[0]);
    clean(row[0], CELL, first);
    return row;
}

// How wide a text is on a terminal: characters, not bytes.
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++) width += (*text & 0xc0) != 0x80;
    return width;
}

static void table_print(FILE *file, int indent)
{
    int widths[COLUMNS] = {0};
    for (int r = 0; r < table.rows; r++)
        for (int c = 0; c < COLUMNS; c++) {
            int width = width_of(table.cells[r][c]);
            if (width > widths[c]) widths[c] = width;
        }
    for (int r = 0; r < table.rows; r++) {
        int last = COLUMNS - 1;
        while (last > 0 && !table.cells[r][last][0]) last--;
        fprintf(file, "%*s", indent, "");
        for (int c = 0; c <= last; c++) {
            const char *cell = table.cells[r][c];
            bool pads = c < last && widths[c];
            fprintf(file, "%s%*s", cell, pads ? widths[c] - width_of(cell) + 2 : 0, "");
        }
        fputc('\n', file);
    }
    if (table.left_out) fprintf(file, "%*sand %d more\n", indent, "", table.left_out);
}

// "1 KiB", "1.5 KiB", "72 bytes".
static void size_format(char *text, size_t size, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB"};
    if (bytes < 1024) {
        snprintf(text, size, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
        return;
    }
    int unit = 0;
    double value = (double)bytes / 1024;
    while (value >= 1024 && unit < 2) value /= 1024, unit++;
    bool whole = value == (double)(uint64_t)value;
    snprintf(text, size, whole ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

static const char *access_name(uint32_t access)
{
    static const char *const names[] = {"", "read", "write", "read and write"};
    return names[access & KEEL_ACCESS_ALL];
}

static void row_size(const char *name, uint32_t bytes, const char *remark)
{
    if (!bytes || bytes == KEEL_UNSAID) return;
    char(*row)[CELL] = row_begin(name);
    size_format(row[1], CELL, bytes);
    snprintf(row[1] + strlen(row[1]), CELL - strlen(row[1]), "%s", remark);
}

static void row_groups(const keel_image_entry_info_t *entry)
{
    char(*row)[CELL] = row_begin("groups");
    size_t used;
    if (entry->group_size[0] != KEEL_UNSAID)
        snprintf(row[1], CELL, "%" PRIu32 " x %" PRIu32 " x %" PRIu32 " work-items",
                 entry->group_size[0], entry->group_size[1], entry->group_size[2]);
    else if (entry->max_group_size != KEEL_UNSAID)
        snprintf(row[1], CELL, "of up to %" PRIu32 " work-items", entry->max_group_size);
    else
        snprintf(row[1], CELL, "of any size");
    used = strlen(row[1]);
    if (entry->wave_size != KEEL_UNSAID)
        snprintf(row[1] + used, CELL - used, ", in waves of %" PRIu32, entry->wave_size);
}

static void row_registers(const keel_image_entry_info_t *entry)
{
    if (entry->vector_registers == KEEL_UNSAID) return;
    char(*row)[CELL] = row_begin("registers");
    if (entry->scalar_registers == KEEL_UNSAID)
        snprintf(row[1], CELL, "%" PRIu32, entry->vector_registers);
    else
        snprintf(row[1], CELL, "%" PRIu32 " vector, %" PRIu32 " scalar", entry->vector_registers,
                 entry->scalar_registers);
}

static void print_params(FILE *file, const keel_image_entry_info_t *entry, int indent)
{
    if (!entry->param_count) return;
    table_begin();
    for (uint32_t i = 0; i < entry->param_count; i++) {
        const keel_image_param_t *param = &entry->params[i];
        char(*row)[CELL] = row_begin("");
        snprintf(row[0], CELL, "at %" PRIu32, param->offset);
        size_format(row[1], CELL, param->size);
        snprintf(row[2], CELL, "%s", param_kind_word(param->kind));
        clean(row[3], CELL, param->type);
        clean(row[4], CELL, param->name);
        snprintf(row[5], CELL, "%s", access_name(param->access));
    }
    table_print(file, indent);
}

static void print_bindings(FILE *file, const keel_image_entry_info_t *entry, int indent)
{
    if (!entry->binding_count) return;
    bool sets = entry->bindings[entry->binding_count - 1].set > 0;
    table_begin();
    for (uint32_t i = 0; i < entry->binding_count; i++) {
        const keel_image_binding_t *binding = &entry->bindings[i];
        char(*row)[CELL] = row_begin("");
        if (sets)
            snprintf(row[0], CELL, "set %" PRIu32 " binding %" PRIu32, binding->set,
                     binding->binding);
        else
            snprintf(row[0], CELL, "binding %" PRIu32, binding->binding);
        clean(row[1], CELL, binding->type);
        if (binding->count != 1)
            snprintf(row[2], CELL, binding->count ? "[%" PRIu32 "]" : "[]", binding->count);
        clean(row[3], CELL, binding->name);
        snprintf(row[4], CELL, "%s", access_name(binding->access));
    }
    table_print(file, indent);
}

static void print_entry(FILE *file, const keel_image_entry_info_t *entry, int indent)
{
    char name[CELL];
    clean(name, sizeof name, entry->name);
    fprintf(file, "%*s%s\n", indent, "", name);
    table_begin();
    row_groups(entry);
    row_size("constants", entry->constants, "");
    row_size("local memory", entry->local_memory, " per group");
    row_size("private memory", entry->private_memory, " per work-item");
    row_registers(entry);
    row_size("arguments", entry->param_size, "");
    table_print(file, indent + 2);
    print_params(file, entry, indent + 4);
    print_bindings(file, entry, indent + 2);
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static void version_format(char *text, size_t size, const keel_image_info_t *node)
{
    char version[64];
    clean(version, sizeof version, node->version);
    snprintf(text, size, "%s%s", version[0] ? ", version " : "", version);
}

// "8 KiB", or what it takes in its owner as well.
static void stored_format(char *text, size_t size, const keel_image_info_t *node)
{
    size_format(text, size, node->size);
    if (same_text(node->packing, "plain")) return;
    char stored[64];
    size_format(stored, sizeof stored, node->stored);
    size_t used = strlen(text);
    snprintf(text + used, size - used, ", %s by %s", stored, node->packing);
}

// What images there are, in a line each.
static void print_members(FILE *file, const keel_image_info_t *node, int indent)
{
    table_begin();
    for (uint32_t i = 0; i < node->member_count; i++) {
        const keel_image_info_t *child = &node->members[i];
        char(*row)[CELL] = row_begin("");
        snprintf(row[0], CELL, "%" PRIu32, i + 1);
        clean(row[1], CELL, node->members[i].name);
        snprintf(row[2], CELL, "%s", child->size ? titles[child->kind] : "empty");
        clean(row[3], CELL, child->target);
        stored_format(row[4], CELL, child);
        image_devices(child, row[5], CELL);
    }
    table_print(file, indent);
}

static bool same_entry(const keel_image_entry_info_t *a, const keel_image_entry_info_t *b)
{
    if (!same_text(a->name, b->name) || a->constants != b->constants ||
        a->local_memory != b->local_memory || a->binding_count != b->binding_count ||
        memcmp(a->group_size, b->group_size, sizeof a->group_size) != 0)
        return false;
    for (uint32_t i = 0; i < a->binding_count; i++)
        if (!same_text(a->bindings[i].name, b->bindings[i].name) ||
            a->bindings[i].access != b->bindings[i].access)
            return false;
    return true;
}

static bool has_entry(const keel_image_info_t *member, const keel_image_entry_info_t *entry)
{
    for (uint32_t i = 0; i < member->entry_count; i++)
        if (same_entry(&member->entries[i], entry)) return true;
    return false;
}

// Whether a container gives all of its images the same entry points, in any order, as one made from
// one source does.
static bool same_entries(const keel_image_info_t *info)
{
    if (info->kind != KEEL_IMAGE_CONTAINER) return false;
    const keel_image_info_t *first = info->members;
    for (uint32_t i = 0; i < info->member_count; i++) {
        const keel_image_info_t *member = &info->members[i];
        if (!member->entry_count || member->entry_count > ROWS ||
            member->entry_count != first->entry_count)
            return false;
        for (uint32_t k = 0; k < first->entry_count; k++)
            if (!has_entry(member, &first->entries[k])) return false;
    }
    return info->member_count > 0;
}

static void print_entries(FILE *file, const keel_image_entry_info_t *entries, uint32_t count,
                          int indent)
{
    for (uint32_t i = 0; i < count; i++) {
        fputc('\n', file);
        print_entry(file, &entries[i], indent);
    }
}

static void print_body(FILE *file, const keel_image_info_t *node, int indent);

// The members, each under a line of its own, if there is more to say of it than its line did.
static void print_children(FILE *file, const keel_image_info_t *node, int indent)
{
    for (uint32_t i = 0; i < node->member_count; i++) {
        const keel_image_info_t *child = &node->members[i];
        if (!child->failure && !child->entry_count && !child->member_count) continue;
        char target[CELL], version[CELL];
        clean(target, sizeof target, child->target);
        version_format(version, sizeof version, child);
        fprintf(file, "\n%*s%" PRIu32 ": %s%s%s%s\n", indent, "", i + 1, titles[child->kind],
                target[0] ? " for " : "", target, version);
        print_body(file, child, indent + 2);
    }
}

static void print_body(FILE *file, const keel_image_info_t *node, int indent)
{
    if (node->failure) {
        char message[CELL];
        clean(message, sizeof message, keel_status_message(node->failure));
        fprintf(file, "%*scannot be read: %s\n", indent, "", message);
    }
    print_entries(file, node->entries, node->entry_count, indent);
    if (!node->member_count) return;
    print_members(file, node, indent);
    if (same_entries(node)) {
        const keel_image_info_t *first = node->members;
        fprintf(file, "\n%*sin each:\n", indent, "");
        print_entries(file, first->entries, first->entry_count, indent);
    } else {
        print_children(file, node, indent);
    }
}

void text_print(FILE *file, const char *name, const keel_image_info_t *root)
{
    char text[CELL], version[CELL], size[64], devices[256];
    clean(text, sizeof text, name);
    fprintf(file, "%s: %s", text, titles[root->kind]);
    clean(text, sizeof text, root->target);
    version_format(version, sizeof version, root);
    size_format(size, sizeof size, root->size);
    fprintf(file, "%s%s%s, %s", text[0] ? " for " : "", text, version, size);
    clean(text, sizeof text, root->producer);
    fprintf(file, "%s%s\n", text[0] ? ", by " : "", text);
    image_devices(root, devices, sizeof devices);
    if (devices[0]) fprintf(file, "  loads on %s\n", devices);
    print_body(file, root, 2);
}
