// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda/nvtx.h"

#include "capture/mode.h"
#include "capture/ranges.h"
#include "trace/name.h"
#include "trace/trace.h"

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(nvtx_export_fn get_export);

// Domains and registered texts are told by numbers of names.
static void *handle_of(uint32_t name)
{
    return (void *)(uintptr_t)(name ? name : UINT32_MAX);
}

static uint32_t name_of_handle(const void *handle)
{
    uintptr_t name = (uintptr_t)handle;
    return name < UINT32_MAX ? (uint32_t)name : 0;
}

static uint32_t name_of(const char *text)
{
    return trace_is_on() && text ? trace_text(text) : 0;
}

// One character as UTF-8; returns how many bytes.
static size_t utf8(uint32_t code, char out[4])
{
    if (code < 0x80) return out[0] = (char)code, 1;
    size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[more] | code >> 6 * more);
    for (size_t i = 1; i <= more; i++) out[i] = (char)(0x80 | (code >> 6 * (more - i) & 0x3f));
    return more + 1;
}

static uint32_t name_of_wide(const wchar_t *wide)
{
    char text[1024];
    size_t length = 0;
    if (!trace_is_on() || !wide) return 0;
    for (; *wide && length + 5 < sizeof text; wide++)
        length += utf8((uint32_t)*wide & 0x1fffff, text + length);
    text[length] = 0;
    return trace_text(text);
}

static uint32_t name_of_event(const nvtx_attributes_t *event)
{
    if (!event || event->size < sizeof *event) return 0;
    switch (event->message_type) {
    case NVTX_TEXT: return name_of(event->message.text);
    case NVTX_WIDE_TEXT: return name_of_wide(event->message.wide);
    case NVTX_REGISTERED: return name_of_handle(event->message.registered);
    default: return 0;
    }
}

static const char core; // whose address is the domain of what has none

static void mark_ex(const nvtx_attributes_t *event)
{
    ranges_mark(name_of_event(event));
}

static void mark_a(const char *text)
{
    ranges_mark(name_of(text));
}

static void mark_w(const wchar_t *text)
{
    ranges_mark(name_of_wide(text));
}

static uint64_t start_ex(const nvtx_attributes_t *event)
{
    return ranges_start(name_of_event(event));
}

static uint64_t start_a(const char *text)
{
    return ranges_start(name_of(text));
}

static uint64_t start_w(const wchar_t *text)
{
    return ranges_start(name_of_wide(text));
}

static void end(uint64_t range)
{
    ranges_stop(range);
}

static int push_ex(const nvtx_attributes_t *event)
{
    return ranges_push(&core, name_of_event(event));
}

static int push_a(const char *text)
{
    return ranges_push(&core, name_of(text));
}

static int push_w(const wchar_t *text)
{
    return ranges_push(&core, name_of_wide(text));
}

static int pop(void)
{
    return ranges_pop(&core);
}

static void domain_mark_ex(void *domain, const nvtx_attributes_t *event)
{
    (void)domain;
    mark_ex(event);
}

static uint64_t domain_start_ex(void *domain, const nvtx_attributes_t *event)
{
    (void)domain;
    return start_ex(event);
}

static void domain_end(void *domain, uint64_t range)
{
    (void)domain;
    ranges_stop(range);
}

static int domain_push_ex(void *domain, const nvtx_attributes_t *event)
{
    return ranges_push(domain ? domain : &core, name_of_event(event));
}

static int domain_pop(void *domain)
{
    return ranges_pop(domain ? domain : &core);
}

static void *register_a(void *domain, const char *text)
{
    (void)domain;
    return handle_of(name_of(text));
}

static void *register_w(void *domain, const wchar_t *text)
{
    (void)domain;
    return handle_of(name_of_wide(text));
}

static void *create_a(const char *name)
{
    return handle_of(name_of(name));
}

static void *create_w(const wchar_t *name)
{
    return handle_of(name_of_wide(name));
}

typedef struct entry_t {
    unsigned place;
    nvtx_fn function;
} entry_t;

static const entry_t core_entries[] = {
    {NVTX_MARK_EX, (nvtx_fn)mark_ex},       {NVTX_MARK_A, (nvtx_fn)mark_a},
    {NVTX_MARK_W, (nvtx_fn)mark_w},         {NVTX_RANGE_START_EX, (nvtx_fn)start_ex},
    {NVTX_RANGE_START_A, (nvtx_fn)start_a}, {NVTX_RANGE_START_W, (nvtx_fn)start_w},
    {NVTX_RANGE_END, (nvtx_fn)end},         {NVTX_RANGE_PUSH_EX, (nvtx_fn)push_ex},
    {NVTX_RANGE_PUSH_A, (nvtx_fn)push_a},   {NVTX_RANGE_PUSH_W, (nvtx_fn)push_w},
    {NVTX_RANGE_POP, (nvtx_fn)pop},
};
static const entry_t domain_entries[] = {
    {NVTX_DOMAIN_MARK_EX, (nvtx_fn)domain_mark_ex},
    {NVTX_DOMAIN_RANGE_START_EX, (nvtx_fn)domain_start_ex},
    {NVTX_DOMAIN_RANGE_END, (nvtx_fn)domain_end},
    {NVTX_DOMAIN_RANGE_PUSH_EX, (nvtx_fn)domain_push_ex},
    {NVTX_DOMAIN_RANGE_POP, (nvtx_fn)domain_pop},
    {NVTX_DOMAIN_REGISTER_A, (nvtx_fn)register_a},
    {NVTX_DOMAIN_REGISTER_W, (nvtx_fn)register_w},
    {NVTX_DOMAIN_CREATE_A, (nvtx_fn)create_a},
    {NVTX_DOMAIN_CREATE_W, (nvtx_fn)create_w},
};

static bool table_fill(const nvtx_callbacks_t *callbacks, uint32_t module, const entry_t *entries,
                       size_t count)
{
    nvtx_fn **table = NULL;
    unsigned size = 0;
    if (callbacks->get_table(module, &table, &size) != 1 || !table) return false;
    for (size_t i = 0; i < count; i++)
        if (entries[i].place < size && table[entries[i].place])
            *table[entries[i].place] = entries[i].function;
    return true;
}

// 1: our functions are there. NVTX calls nothing if there are none.
int InitializeInjectionNvtx2(nvtx_export_fn get_export)
{
    const nvtx_callbacks_t *callbacks = get_export(NVTX_TABLE_CALLBACKS);
    if (!trace_is_on() || !capture_mode()->calls || !callbacks ||
        callbacks->size < sizeof *callbacks)
        return 0;
    bool good = table_fill(callbacks, NVTX_MODULE_CORE, core_entries,
                           sizeof core_entries / sizeof *core_entries);
    table_fill(callbacks, NVTX_MODULE_DOMAINS, domain_entries,
               sizeof domain_entries / sizeof *domain_entries);
    return good;
}
