# SPDX-License-Identifier: Apache-2.0
# Gives Keel::keel (shared), Keel::keel_static, Keel::tool (the keel command), and the functions
# keel_add_kernels() and keel_embed_kernels().

include(CMakeFindDependencyMacro)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/KeelTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/KeelKernels.cmake)
