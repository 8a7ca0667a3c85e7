// SPDX-License-Identifier: Apache-2.0
// Reading ELF files that may be damaged or not ELF at all.
#ifndef KEEL_SRC_EXECUTABLE_ELF_H_
#define KEEL_SRC_EXECUTABLE_ELF_H_

#include <keel/status.h>

// That the file is a whole shared object for this machine, so that the system's loader can be
// trusted with it: KEEL_CORRUPT if it is damaged or no ELF file, KEEL_UNSUPPORTED if it is for
// another machine.
keel_status_t elf_check_host_library(int fd) KEEL_MUST_USE;

#endif
