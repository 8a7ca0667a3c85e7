# SPDX-License-Identifier: Apache-2.0
# Kernels in a build: Keel's own, and, by find_package(Keel), those of its users.

set(KEEL_EMBED_TEMPLATE ${CMAKE_CURRENT_LIST_DIR}/embed.c.in)

# keel_add_kernels(NAME SOURCE [TARGETS TARGET...] [OPTIONS OPTION...] [IMAGES KIND:TARGET=FILE...]
# [OUTPUT FILE]): compiles a source of kernels (<keel/kernel.h>) by `keel cc` into a container,
# NAME.keel in the build folder, as part of the target NAME. Its path is the property KEEL_CONTAINER
# of that target. IMAGES were made elsewhere, maybe by the build; TARGETS may then be NONE.
function(keel_add_kernels name source)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" OUTPUT "TARGETS;OPTIONS;IMAGES")
    if(NOT arg_TARGETS)
        set(arg_TARGETS host)
    endif()
    if(NOT arg_OUTPUT)
        set(arg_OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.keel)
    endif()
    get_filename_component(source ${source} ABSOLUTE)
    list(JOIN arg_TARGETS , targets)
    list(TRANSFORM targets PREPEND --target=)
    set(written -MD -MF ${arg_OUTPUT}.d -MQ ${arg_OUTPUT})
    set(read DEPFILE ${arg_OUTPUT}.d)
    if(targets STREQUAL "--target=NONE") # no compiler runs, which would write what it has read
        set(targets)
        set(written)
        set(read)
    endif()
    list(TRANSFORM arg_IMAGES REPLACE "^[^=]*=" "" OUTPUT_VARIABLE images)
    list(TRANSFORM arg_IMAGES PREPEND --image=)
    if(TARGET keel_cc) # Keel's own build, in which there is no `keel` yet
        set(tool keel_cc)
        set(command keel_cc)
    else()
        set(tool Keel::tool)
        set(command Keel::tool cc)
    endif()
    add_custom_command(OUTPUT ${arg_OUTPUT}
        COMMAND ${command} ${source} -o ${arg_OUTPUT} ${targets} ${arg_OPTIONS} ${arg_IMAGES}
            ${written}
        ${read} DEPENDS ${source} ${images} $<TARGET_FILE:${tool}> VERBATIM
        COMMENT "Compiling kernels ${name}")
    add_custom_target(${name} ALL DEPENDS ${arg_OUTPUT})
    set_target_properties(${name} PROPERTIES KEEL_CONTAINER ${arg_OUTPUT})
endfunction()

# keel_embed_kernels(TARGET NAME): links the container of the kernels NAME into TARGET. C sees it as
#     extern const unsigned char keel_embed_NAME[];
#     extern const uint64_t keel_embed_NAME_size;
function(keel_embed_kernels target name)
    get_target_property(container ${name} KEEL_CONTAINER)
    keel_embed(${target} ${name} ${container})
    add_dependencies(${target} ${name})
endfunction()

# keel_embed(TARGET NAME FILE): the same for the bytes of any file, which may be a generator
# expression and may be made by the build.
function(keel_embed target name file)
    set(copy ${CMAKE_CURRENT_BINARY_DIR}/embed/${name}.bin)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/embed/${name}.c)
    add_custom_command(OUTPUT ${copy}
        COMMAND ${CMAKE_COMMAND} -E copy ${file} ${copy}
        DEPENDS ${file} VERBATIM)
    configure_file(${KEEL_EMBED_TEMPLATE} ${source} @ONLY)
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${copy})
    target_sources(${target} PRIVATE ${source})
endfunction()
