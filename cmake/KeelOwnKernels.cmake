# SPDX-License-Identifier: Apache-2.0
# The kernels that Keel's own programs hold: for this host always, for GPUs where clang is found.

include(KeelKernels)

set(KEEL_KERNELS "" CACHE PATH "Folder of containers made elsewhere, taken instead of compiling")
find_program(KEEL_CLANG NAMES clang-22 clang-21 clang-20 clang-19 clang-18)
find_program(KEEL_LLD NAMES ld.lld-22 ld.lld-21 ld.lld-20 ld.lld-19 ld.lld-18 ld.lld)
set(targets host nvptx:sm_0)
if(KEEL_CLANG)
    list(APPEND targets nvptx:sm_70)
endif()
if(KEEL_CLANG AND KEEL_LLD)
    list(APPEND targets gfx900 gfx90a)
endif()
list(JOIN targets , targets)
set(KEEL_KERNEL_TARGETS ${targets} CACHE STRING "What Keel's own kernels are compiled for")

# keel_own_kernels(NAME SOURCE [OPTION...]): NAME.keel in the folder kernels of the build.
function(keel_own_kernels name source)
    set(made "${KEEL_KERNELS}/${name}.keel")
    get_filename_component(made ${made} ABSOLUTE BASE_DIR ${CMAKE_BINARY_DIR})
    if(KEEL_KERNELS AND EXISTS ${made})
        add_custom_target(${name})
        set_target_properties(${name} PROPERTIES KEEL_CONTAINER ${made})
        return()
    endif()
    set(options -I${PROJECT_SOURCE_DIR}/include --host-cc=${CMAKE_C_COMPILER} ${ARGN})
    if(KEEL_CLANG)
        list(APPEND options --clang=${KEEL_CLANG})
    endif()
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/kernels)
    keel_add_kernels(${name} ${source}
        TARGETS ${KEEL_KERNEL_TARGETS}
        OPTIONS ${options}
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
