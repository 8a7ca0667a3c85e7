# SPDX-License-Identifier: Apache-2.0
# What can be chosen, and the flags that follow from it. All of it is scoped to this directory, so a
# project that adds Keel as a subdirectory keeps its own flags.

option(KEEL_PORTABLE "Build without hwloc, liburing and anything particular to Linux" OFF)
option(KEEL_ASSERTS "Keep assertions, in optimised builds too" ON)
option(KEEL_TESTS "Build the unit tests" ${PROJECT_IS_TOP_LEVEL})
option(KEEL_EXAMPLES "Build the examples" ${KEEL_TESTS})
option(KEEL_SIM "Build the software GPUs" ON)
option(KEEL_WERROR "Treat warnings as errors" OFF)
set(KEEL_SANITIZE "" CACHE STRING
    "Sanitizer: address (with undefined), fuzzer (with both), thread, or none")
set_property(CACHE KEEL_SANITIZE PROPERTY STRINGS "" address fuzzer thread)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Kind of build" FORCE)
endif()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# CMake's optimised build types define NDEBUG. Keel's assertions guard the front door and cost
# little, so dropping them is a decision of its own: KEEL_ASSERTS=OFF.
foreach(type RELEASE RELWITHDEBINFO MINSIZEREL)
    string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${type} "${CMAKE_C_FLAGS_${type}}")
endforeach()
if(NOT KEEL_ASSERTS)
    add_compile_definitions(NDEBUG)
endif()

# Statuses name files of this tree (__FILE__), not the folder that it lies in.
add_compile_options(-g -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
    -Wall -Wextra -Wshadow -Wundef -Wvla -Wpointer-arith -Wwrite-strings -Wformat=2
    -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wimplicit-fallthrough
    # Entries of an ops table have the table's signature, whether they need every argument or not.
    -Wno-unused-parameter)
if(KEEL_WERROR)
    add_compile_options(-Werror)
endif()

# gcc clears structs on x86-64 by `rep stos`, which takes longer to start than stores of 16 bytes to
# be done with; a submission has three of them.
include(CheckCCompilerFlag)
set(clear -mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign)
check_c_compiler_flag(${clear} KEEL_HAVE_MEMSET_STRATEGY)
if(KEEL_HAVE_MEMSET_STRATEGY)
    add_compile_options(${clear})
endif()

# The portable build asks the C library for POSIX and what the BSDs have beside it, so that a GNU
# extension outside of its Linux branch does not compile.
if(KEEL_PORTABLE)
    add_compile_definitions(_DEFAULT_SOURCE _DARWIN_C_SOURCE KEEL_PORTABLE=1)
else()
    add_compile_definitions(_GNU_SOURCE KEEL_PORTABLE=0)
endif()

if(KEEL_SANITIZE STREQUAL "address")
    # Functions of vendors are declared with types of our own, which clang takes for others.
    set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all
        $<$<C_COMPILER_ID:Clang>:-fno-sanitize=function>)
elseif(KEEL_SANITIZE STREQUAL "fuzzer")
    set(sanitize -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all)
elseif(KEEL_SANITIZE STREQUAL "thread")
    # It does not see fences; gcc warns of each.
    set(sanitize -fsanitize=thread $<$<C_COMPILER_ID:GNU>:-Wno-tsan>)
elseif(KEEL_SANITIZE)
    message(FATAL_ERROR
        "KEEL_SANITIZE is '${KEEL_SANITIZE}': give address, fuzzer, thread or nothing")
endif()
if(KEEL_SANITIZE)
    add_compile_options(${sanitize} -fno-omit-frame-pointer)
    add_link_options(${sanitize})
endif()
