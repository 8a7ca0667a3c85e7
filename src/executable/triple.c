// SPDX-License-Identifier: Apache-2.0
#include "executable/triple.h"

#include <string.h>

#include "executable/build.h"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

keel_status_t triple_target(image_info_t *info, const char *triple, const char *processor,
                            const char **target)
{
    if (begins(triple, "nvptx"))
        return image_format(info, target, "nvptx%s%s", processor[0] ? ":" : "", processor);
    bool amd = begins(triple, "amdgcn") || begins(triple, "amdgpu");
    if (amd && processor[0]) return image_format(info, target, "%s", processor);
    if (begins(triple, "spirv")) return image_format(info, target, "spirv");
    bool apple = strstr(triple, "-apple-") != NULL;
    if (!apple && !strstr(triple, "-linux")) return image_format(info, target, "%s", triple);
    const char *system = apple ? "macos" : "linux";
    if (begins(triple, "arm64-") || begins(triple, "aarch64-"))
        return image_format(info, target, "aarch64-%s", system);
    int length = (int)strcspn(triple, "-");
    return image_format(info, target, "%.*s-%s", length < 64 ? length : 64, triple, system);
}

const char *triple_processor(const char *name)
{
    const char *at = name;
    for (int parts = 0; parts < 4; parts++, at++) {
        at = strchr(at, '-');
        if (!at) return name;
    }
    return at;
}
