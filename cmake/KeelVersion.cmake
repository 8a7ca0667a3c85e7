# SPDX-License-Identifier: Apache-2.0
# KEEL_VERSION as the public headers state it, so that it is written in one place.

set(header ${CMAKE_CURRENT_SOURCE_DIR}/include/keel/base.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
set(KEEL_VERSION)
foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${header} line REGEX "define KEEL_VERSION_${part} ")
    string(REGEX MATCH "[0-9]+$" number "${line}")
    list(APPEND KEEL_VERSION ${number})
endforeach()
list(JOIN KEEL_VERSION . KEEL_VERSION)
