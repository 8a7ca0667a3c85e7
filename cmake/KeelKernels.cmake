# SPDX-License-Identifier: Apache-2.0

# keel_kernels(NAME FOLDER): builds FOLDER/*.c into NAME, a shared object of kernels for the cpu
# driver. Without sources there is no target.
function(keel_kernels name folder)
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
    if(NOT sources)
        return()
    endif()
    add_library(${name} MODULE ${sources})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    target_compile_options(${name} PRIVATE -O2)
    set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX .so)
endfunction()

# keel_embed(TARGET NAME FILE): links the bytes of FILE into TARGET. C sees them as
#     extern const unsigned char keel_embed_NAME[];
#     extern const uint64_t keel_embed_NAME_size;
# FILE may be a generator expression and may be made by the build.
function(keel_embed target name file)
    set(copy ${CMAKE_CURRENT_BINARY_DIR}/embed/${name}.bin)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/embed/${name}.c)
    add_custom_command(OUTPUT ${copy}
        COMMAND ${CMAKE_COMMAND} -E copy ${file} ${copy}
        DEPENDS ${file} VERBATIM)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/embed.c.in ${source} @ONLY)
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${copy})
    target_sources(${target} PRIVATE ${source})
endfunction()
