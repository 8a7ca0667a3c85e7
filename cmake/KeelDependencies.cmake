# SPDX-License-Identifier: Apache-2.0
# The libraries Keel links. KEEL_LIBRARIES holds bare names, since users of the installed static
# library link them too. Every KEEL_HAVE_ macro is defined, as 0 or 1.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

set(KEEL_LIBRARIES)
set(have_hwloc 0)
set(have_uring 0)
if(NOT KEEL_PORTABLE)
    pkg_check_modules(HWLOC REQUIRED hwloc>=2.4)
    pkg_check_modules(URING liburing>=2.1)
    set(have_hwloc 1)
    list(APPEND KEEL_LIBRARIES hwloc)
    if(URING_FOUND)
        set(have_uring 1)
        list(APPEND KEEL_LIBRARIES uring)
    endif()
endif()
pkg_check_modules(ZSTD libzstd>=1.4)
set(have_zstd 0)
if(ZSTD_FOUND)
    set(have_zstd 1)
    list(APPEND KEEL_LIBRARIES zstd)
endif()
pkg_check_modules(LZ4 liblz4)
set(have_lz4 0)
if(LZ4_FOUND)
    set(have_lz4 1)
    list(APPEND KEEL_LIBRARIES lz4)
endif()
pkg_check_modules(ZLIB zlib)
set(have_zlib 0)
if(ZLIB_FOUND)
    set(have_zlib 1)
    list(APPEND KEEL_LIBRARIES z)
endif()
list(APPEND KEEL_LIBRARIES ${CMAKE_DL_LIBS} m)

include_directories(SYSTEM ${HWLOC_INCLUDE_DIRS} ${URING_INCLUDE_DIRS} ${ZSTD_INCLUDE_DIRS}
    ${LZ4_INCLUDE_DIRS} ${ZLIB_INCLUDE_DIRS})
link_directories(${HWLOC_LIBRARY_DIRS} ${URING_LIBRARY_DIRS} ${ZSTD_LIBRARY_DIRS}
    ${LZ4_LIBRARY_DIRS} ${ZLIB_LIBRARY_DIRS})
add_compile_definitions(KEEL_HAVE_HWLOC=${have_hwloc} KEEL_HAVE_URING=${have_uring}
    KEEL_HAVE_ZSTD=${have_zstd} KEEL_HAVE_LZ4=${have_lz4} KEEL_HAVE_ZLIB=${have_zlib})
