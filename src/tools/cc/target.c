// SPDX-License-Identifier: Apache-2.0
#include "tools/cc/target.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "executable/image.h"

#if defined(__APPLE__)
#define SYSTEM "macos"
#else
#define SYSTEM "linux"
#endif
#if defined(__aarch64__)
#define MACHINE "aarch64"
#else
#define MACHINE "x86_64"
#endif

// The hosts there are code for. Vectors get longer from level to level, so each is worth an image.
static const struct host_t {
    const char *text, *triple, *option;
    bool by_host; // among those that "host" stands for
} hosts[] = {
    {"x86_64-linux", "x86_64-linux-gnu", "-march=x86-64", true},
    {"x86_64-linux:v2", "x86_64-linux-gnu", "-march=x86-64-v2", false},
    {"x86_64-linux:v3", "x86_64-linux-gnu", "-march=x86-64-v3", true},
    {"x86_64-linux:v4", "x86_64-linux-gnu", "-march=x86-64-v4", true},
    {"aarch64-linux", "aarch64-linux-gnu", "-march=armv8-a", true},
    {"aarch64-linux:sve", "aarch64-linux-gnu", "-march=armv8.2-a+sve", true},
    {"aarch64-linux:sve2", "aarch64-linux-gnu", "-march=armv9-a", false},
    {"x86_64-macos", "x86_64-apple-macos", "-march=x86-64", true},
    {"x86_64-macos:v3", "x86_64-apple-macos", "-march=x86-64-v3", true},
    {"aarch64-macos", "arm64-apple-macos", "-mcpu=apple-m1", true},
};

static const char own[] = MACHINE "-" SYSTEM;

static bool is_own(const struct host_t *host)
{
    return strncmp(host->text, own, sizeof own - 1) == 0;
}

static bool target_add(target_list_t *list, const target_t *target)
{
    for (int i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].text, target->text) != 0) continue;
        fprintf(stderr, "keel cc: the target %s is given twice\n", target->text);
        return false;
    }
    if (list->count == TARGETS_MAX) {
        fprintf(stderr, "keel cc: more than %d targets\n", TARGETS_MAX);
        return false;
    }
    list->items[list->count++] = *target;
    return true;
}

static target_t host_target(const struct host_t *host)
{
    target_t target = {.family = TARGET_HOST, .kind = KEEL_IMAGE_HOST, .foreign = !is_own(host)};
    snprintf(target.text, sizeof target.text, "%s", host->text);
    snprintf(target.triple, sizeof target.triple, "%s", host->triple);
    snprintf(target.machine, sizeof target.machine, "%s", host->option);
    return target;
}

static bool hosts_add(target_list_t *list)
{
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        if (!is_own(&hosts[i]) || !hosts[i].by_host) continue;
        target_t target = host_target(&hosts[i]);
        if (!target_add(list, &target)) return false;
    }
    return true;
}

static bool text_is(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strncmp(text, prefix, length) != 0 || !text[length]) return false;
    for (text += length; *text; text++)
        if (!isalnum((unsigned char)*text)) return false;
    return true;
}

static bool target_parse(const char text[TARGET_TEXT], target_list_t *list)
{
    target_t target = {.family = TARGET_NVPTX, .kind = KEEL_IMAGE_PTX};
    if (!strcmp(text, "host")) return hosts_add(list);
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        if (strcmp(text, hosts[i].text) != 0) continue;
        target = host_target(&hosts[i]);
        return target_add(list, &target);
    }
    memcpy(target.text, text, TARGET_TEXT);
    if (text_is(text, "nvptx:sm_")) {
        snprintf(target.triple, sizeof target.triple, "nvptx64-nvidia-cuda");
        snprintf(target.machine, sizeof target.machine, "-march=%s", text + strlen("nvptx:"));
    } else if (text_is(text, "gfx")) {
        target.family = TARGET_AMDGCN;
        target.kind = KEEL_IMAGE_HSACO;
        snprintf(target.triple, sizeof target.triple, "amdgcn-amd-amdhsa");
        snprintf(target.machine, sizeof target.machine, "-mcpu=%s", text);
    } else if (!strcmp(text, "msl")) {
        target.family = TARGET_MSL;
        target.kind = KEEL_IMAGE_MSL;
        snprintf(target.triple, sizeof target.triple, "spir64-unknown-unknown");
    } else {
        fprintf(stderr,
                "keel cc: no target is called '%s'; there are host, x86_64-linux[:v2|:v3|:v4], "
                "aarch64-linux[:sve|:sve2], nvptx:sm_70 and its like, gfx90a and its like, msl\n",
                text);
        return false;
    }
    return target_add(list, &target);
}

static bool nothing_between_commas(void)
{
    fprintf(stderr, "keel cc: --target=LIST has a place without a target\n");
    return false;
}

bool target_list_parse(const char *text, target_list_t *list)
{
    if (!*text) return nothing_between_commas();
    while (*text) {
        char one[TARGET_TEXT] = "";
        size_t length = strcspn(text, ",");
        if (!length || !strcmp(text + length, ",")) return nothing_between_commas();
        if (length >= sizeof one - 8) {
            fprintf(stderr, "keel cc: no target is called '%.*s'\n", (int)length, text);
            return false;
        }
        memcpy(one, text, length);
        if (!target_parse(one, list)) return false;
        text += length + (text[length] == ',');
    }
    return true;
}

bool target_list_give(const char *text, target_list_t *list)
{
    target_t target = {.family = TARGET_GIVEN};
    size_t kind = strcspn(text, ":"), end = strcspn(text, "=");
    size_t length = end > kind ? end - kind - 1 : 0;
    for (int i = KEEL_IMAGE_HOST; i <= KEEL_IMAGE_METALLIB; i++) {
        const char *name = image_kind_name((keel_image_kind_t)i);
        if (strlen(name) == kind && !strncmp(name, text, kind)) target.kind = (keel_image_kind_t)i;
    }
    if (!target.kind || !length || length >= TARGET_TEXT || !text[end] || !text[end + 1]) {
        fprintf(stderr,
                "keel cc: --image=%s is not KIND:TARGET=FILE, as in cubin:nvptx:sm_90=k.cubin\n",
                text);
        return false;
    }
    memcpy(target.text, text + kind + 1, length);
    target.given = text + end + 1;
    return target_add(list, &target);
}
