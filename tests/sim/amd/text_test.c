// SPDX-License-Identifier: Apache-2.0
// text_test FILE...: writes the code of each file as the disassembler of the interpreter sees it, a
// line for each instruction with its address in the file. text_check.py compares that with LLVM's.
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "sim/amd/bench/device.h"
#include "sim/amd/isa/state.h"

static void print_code(isa_t *isa, const module_t *module, uint64_t from, uint64_t size)
{
    for (uint64_t at = 0; at + 4 <= size;) {
        uint32_t words[2] = {0};
        char text[256];
        insn_t i;
        memcpy(words, module->image + from + at, size - at >= 8 ? 8 : 4);
        insn_decode(isa, &i, words);
        insn_text(isa, &i, text, sizeof text);
        printf("%llx %s\n", (unsigned long long)(from + at), text);
        at += 4u * i.words;
    }
}

int main(int argc, char **argv)
{
    for (int k = 1; k < argc; k++) {
        const char *file = strrchr(argv[k], '/') ? strrchr(argv[k], '/') + 1 : argv[k];
        gfx_t gfx = gfx_parse(file, strcspn(file, "-"));
        if (gfx == GFX_COUNT) return 2;
        isa_t *isa = isa_create(gfx, DEVICE_NODE, NULL);
        module_t module = module_load(argv[k]);
        const Elf64_Ehdr *header = (const Elf64_Ehdr *)module.image;
        const Elf64_Phdr *part = (const Elf64_Phdr *)(module.image + header->e_phoff);
        for (unsigned n = 0; n < header->e_phnum; n++) {
            if (part[n].p_type != PT_LOAD || !(part[n].p_flags & PF_X)) continue;
            print_code(isa, &module, part[n].p_vaddr, part[n].p_memsz);
        }
        module_unload(&module);
        isa_destroy(isa);
    }
    return argc < 2;
}
