# SPDX-License-Identifier: Apache-2.0
# A thin front for CMake: `make demo` and `make test` do everything, the rest are parts of them.

.PHONY: build debug asan tsan portable clang install clean

build debug asan tsan portable clang:
	@cmake --preset $(subst build,default,$@) >/dev/null
	@cmake --build --preset $(subst build,default,$@)

install: build
	@cmake --install build

clean:
	rm -rf build build-*
