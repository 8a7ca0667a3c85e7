// SPDX-License-Identifier: Apache-2.0
// One object per image. Keys are always there, in this order; what is not known is null.
#include <inttypes.h>

#include "tools/inspect/inspect.h"

// The length of the UTF-8 sequence at `at`, or 0 if it is none.
static int sequence_length(const unsigned char *at)
{
    int length = at[0] < 0x80                    ? 1
                 : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
                 : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
                 : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                                 : 0;
    for (int i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool surrogate = at[0] == 0xed && at[1] >= 0xa0, beyond = at[0] == 0xf4 && at[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

static void print_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int length = sequence_length(at);
        if (!length)
            fprintf(file, "\\ufffd");
        else if (*at < ' ' || *at == 0x7f)
            fprintf(file, "\\u%04x", *at);
        else if (*at == '"' || *at == '\\')
            fprintf(file, "\\%c", *at);
        else
            fwrite(at, 1, (size_t)length, file);
        at += length ? length : 1;
    }
    fputc('"', file);
}

static void print_text(FILE *file, const char *key, const char *text, const char *end)
{
    fprintf(file, "\"%s\": ", key);
    if (text[0])
        print_string(file, text);
    else
        fprintf(file, "null");
    fputs(end, file);
}

static void print_number(FILE *file, const char *key, uint32_t value, const char *end)
{
    fprintf(file, "\"%s\": ", key);
    if (value == KEEL_UNSAID)
        fprintf(file, "null");
    else
        fprintf(file, "%" PRIu32, value);
    fputs(end, file);
}

static void print_access(FILE *file, uint32_t access)
{
    static const char *const names[] = {"null", "\"read\"", "\"write\"", "\"read write\""};
    fprintf(file, "\"access\": %s}", names[access & KEEL_ACCESS_ALL]);
}

static void print_params(FILE *file, const keel_image_entry_info_t *entry)
{
    fprintf(file, "\"parameters\": [");
    for (uint32_t i = 0; i < entry->param_count; i++) {
        const keel_image_param_t *param = &entry->params[i];
        fprintf(file, "%s{", i ? ", " : "");
        print_text(file, "name", param->name, ", ");
        print_text(file, "type", param->type, ", ");
        print_text(file, "kind", param_kind_word(param->kind), ", ");
        print_number(file, "offset", param->offset, ", ");
        print_number(file, "size", param->size, ", ");
        print_number(file, "align", param->align, ", ");
        print_access(file, param->access);
    }
    fprintf(file, "], ");
}

static void print_bindings(FILE *file, const keel_image_entry_info_t *entry)
{
    fprintf(file, "\"bindings\": [");
    for (uint32_t i = 0; i < entry->binding_count; i++) {
        const keel_image_binding_t *binding = &entry->bindings[i];
        fprintf(file, "%s{", i ? ", " : "");
        print_text(file, "name", binding->name, ", ");
        print_text(file, "type", binding->type, ", ");
        print_number(file, "set", binding->set, ", ");
        print_number(file, "binding", binding->binding, ", ");
        print_number(file, "count", binding->count, ", ");
        print_access(file, binding->access);
    }
    fprintf(file, "]}");
}

static void print_entry(FILE *file, const keel_image_entry_info_t *entry)
{
    fprintf(file, "{");
    print_text(file, "name", entry->name, ", ");
    print_text(file, "abi", entry->abi, ", ");
    if (entry->group_size[0] == KEEL_UNSAID)
        fprintf(file, "\"group_size\": null, ");
    else
        fprintf(file, "\"group_size\": [%" PRIu32 ", %" PRIu32 ", %" PRIu32 "], ",
                entry->group_size[0], entry->group_size[1], entry->group_size[2]);
    print_number(file, "max_group_size", entry->max_group_size, ", ");
    print_number(file, "wave_size", entry->wave_size, ", ");
    print_number(file, "constants", entry->constants, ", ");
    print_number(file, "local_memory", entry->local_memory, ", ");
    print_number(file, "private_memory", entry->private_memory, ", ");
    print_number(file, "vector_registers", entry->vector_registers, ", ");
    print_number(file, "scalar_registers", entry->scalar_registers, ", ");
    print_number(file, "parameter_size", entry->param_size, ", ");
    print_params(file, entry);
    print_bindings(file, entry);
}

static void print_entries(FILE *file, const char *indent, const keel_image_entry_info_t *entries,
                          uint32_t count)
{
    fprintf(file, "\"entries\": [");
    for (uint32_t i = 0; i < count; i++) {
        fprintf(file, "%s\n%s  ", i ? "," : "", indent);
        print_entry(file, &entries[i]);
    }
    if (count) fprintf(file, "\n%s", indent);
    fprintf(file, "]");
}

static void print_failure(FILE *file, keel_status_t failure)
{
    print_text(file, "error", failure ? keel_status_message(failure) : "", ",\n");
}

// The keys of an image, after `indent`; a member's are preceded by what its owner says.
static void print_node(FILE *file, const keel_image_info_t *node, int depth)
{
    char devices[256];
    image_devices(node, devices, sizeof devices);
    int indent = 2 + depth * 4;
    char spaces[64];
    snprintf(spaces, sizeof spaces, "%*s", indent < 60 ? indent : 60, "");
    fprintf(file, "%s", spaces);
    print_text(file, "kind", node->kind_name, ", ");
    print_text(file, "target", node->target, ", ");
    print_text(file, "version", node->version, ", ");
    print_text(file, "producer", node->producer, ", ");
    fprintf(file, "\"size\": %" PRIu64 ",\n%s", node->size, spaces);
    print_text(file, "devices", devices, ",\n");
    fprintf(file, "%s", spaces);
    print_failure(file, node->failure);
    fprintf(file, "%s", spaces);
    print_entries(file, spaces, node->entries, node->entry_count);
    fprintf(file, ",\n%s\"members\": [", spaces);
    for (uint32_t i = 0; i < node->member_count; i++) {
        const keel_image_info_t *child = &node->members[i];
        fprintf(file, "%s\n%s  {\n%s    ", i ? "," : "", spaces, spaces);
        print_text(file, "name", child->name, ", ");
        print_text(file, "packing", child->packing, ", ");
        fprintf(file, "\"stored\": %" PRIu64 ",\n", child->stored);
        print_node(file, child, depth + 1);
        fprintf(file, "\n%s  }", spaces);
    }
    if (node->member_count) fprintf(file, "\n%s", spaces);
    fprintf(file, "]");
}

void json_print(FILE *file, const char *name, const keel_image_info_t *root)
{
    fprintf(file, "{\n  ");
    print_text(file, "file", name, ",\n");
    print_node(file, root, 0);
    fprintf(file, "\n}\n");
}

void json_print_failure(FILE *file, const char *name, uint64_t size, keel_status_t failure)
{
    keel_image_info_t unread = {
        .kind_name = "unknown",
        .target = "",
        .version = "",
        .producer = "",
        .size = size,
        .failure = failure,
    };
    json_print(file, name, &unread);
}
