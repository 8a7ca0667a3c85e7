# SPDX-License-Identifier: Apache-2.0
# Cross build for x86-64 Linux; tests run under qemu-user. Libraries come from the amd64 packages of
# this system.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE x86_64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-x86_64)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/x86_64-linux-gnu/pkgconfig)
