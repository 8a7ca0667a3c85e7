# SPDX-License-Identifier: Apache-2.0
# The kernels that Keel's own programs hold: for this host and the software CUDA always, for GPUs
# where clang is found.

include(KeelKernels)

set(KEEL_KERNELS "" CACHE PATH "Folder of containers made elsewhere, taken instead of compiling")
find_program(KEEL_CLANG NAMES clang-22 clang-21 clang-20 clang-19 clang-18)
find_program(KEEL_LLD NAMES ld.lld-22 ld.lld-21 ld.lld-20 ld.lld-19 ld.lld-18 ld.lld)
set(KEEL_KERNELS_FOR "" CACHE STRING
    "What Keel's own kernels are compiled for; empty: all that the tools here can compile for")
# Not kept in the cache: a compiler that is installed later counts at the next configuring.
set(targets host)
if(KEEL_CLANG)
    list(APPEND targets nvptx:sm_70 msl)
endif()
if(KEEL_CLANG AND KEEL_LLD)
    list(APPEND targets gfx900 gfx90a gfx942)
endif()
if(KEEL_KERNELS_FOR)
    set(targets ${KEEL_KERNELS_FOR})
endif()
list(JOIN targets , KEEL_OWN_TARGETS)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/kernels)

# keel_options(OUT): what `keel cc` is called with in this build.
function(keel_options out)
    set(options -I${PROJECT_SOURCE_DIR}/include --host-cc=${CMAKE_C_COMPILER})
    if(KEEL_CLANG)
        list(APPEND options --clang=${KEEL_CLANG})
    endif()
    set(${out} ${options} PARENT_SCOPE)
endfunction()

# keel_sim_image(OUT NAME SOURCE [OPTION...]): compiles kernels for the software CUDA (docs/sim.md),
# which runs code of this host, with entry points of its own. OUT is an image for keel_add_kernels.
function(keel_sim_image out name source)
    set(file ${PROJECT_BINARY_DIR}/kernels/${name}.sim.so)
    string(REPLACE arm64 aarch64 host ${CMAKE_SYSTEM_PROCESSOR}-linux)
    if(APPLE)
        string(REPLACE linux macos host ${host})
    endif()
    get_filename_component(source ${source} ABSOLUTE)
    keel_options(options)
    add_custom_command(OUTPUT ${file}
        COMMAND keel_cc ${source} -o ${file} --target=${host} --bare ${options}
            -I${PROJECT_SOURCE_DIR}/sim -DKEEL_ENTRY_HEADER="cuda/entries.h" ${ARGN}
            -MD -MF ${file}.d -MQ ${file}
        DEPFILE ${file}.d DEPENDS ${source} $<TARGET_FILE:keel_cc> VERBATIM
        COMMENT "Compiling kernels ${name} for the software CUDA")
    set(${out} cubin:nvptx:sm_0=${file} PARENT_SCOPE)
endfunction()

# keel_own_kernels(NAME SOURCE [OPTION...]): NAME.keel in the folder kernels of the build.
function(keel_own_kernels name source)
    set(made "${KEEL_KERNELS}/${name}.keel")
    get_filename_component(made ${made} ABSOLUTE BASE_DIR ${CMAKE_BINARY_DIR})
    if(KEEL_KERNELS AND EXISTS ${made})
        add_custom_target(${name})
        set_target_properties(${name} PROPERTIES KEEL_CONTAINER ${made})
        return()
    endif()
    keel_options(options)
    keel_sim_image(image ${name} ${source} ${ARGN})
    keel_add_kernels(${name} ${source}
        TARGETS ${KEEL_OWN_TARGETS}
        OPTIONS ${options} ${ARGN}
        IMAGES ${image}
        OUTPUT ${PROJECT_BINARY_DIR}/kernels/${name}.keel)
endfunction()

# keel_host_kernels(NAME SOURCE...): a shared object of kernels for the cpu driver, written for
# <keel/host_kernel.h>.
function(keel_host_kernels name)
    add_library(${name} MODULE ${ARGN})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    target_compile_options(${name} PRIVATE -O2)
    set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX .so)
endfunction()
