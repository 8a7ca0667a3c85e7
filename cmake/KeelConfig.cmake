# SPDX-License-Identifier: Apache-2.0
# Gives Keel::keel (shared) and Keel::keel_static.

include(CMakeFindDependencyMacro)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/KeelTargets.cmake)
