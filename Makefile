# SPDX-License-Identifier: Apache-2.0
# A thin front for CMake and .ci/steps. `make demo` and `make test` do everything, packages
# included.

.PHONY: build lib demo test test-all test-rocm test-metal check asan tsan foreign sweep
.PHONY: fuzz bench install format clean

build:
	@cmake --preset default >/dev/null
	@cmake --build --preset default

# The libraries and the command, without tests, examples and software GPUs.
lib:
	@.ci/setup lib
	@cmake --preset lib >/dev/null
	@cmake --build --preset lib

# SIM=1 shows it on an AMD GPU in software, under the ROCm that is installed, or Debian's.
demo:
	@.ci/setup demo
	@$(if $(SIM),.ci/setup sim)
	@cmake --preset default >/dev/null
	@cmake --build --preset default --target example_demo $(if $(SIM),keel_tool sim_amd_kfd)
	@$(if $(SIM),build/keel sim --gpus=gfx90a --) build/examples/demo $(if $(SIM),hip://0)

# Builds with each compiler, then checks, unit tests, examples and conformance. See .ci/steps.
test:
	@.ci/setup test
	@.ci/run-steps build check test

# The same, then the sanitizers, the long runs and a foreign processor.
test-all:
	@.ci/setup all
	@.ci/run-steps build check test asan tsan foreign long

check:
	@.ci/setup test
	@cmake --preset default >/dev/null
	@cmake --build --preset default --target keel_shared keel_static
	@.ci/run-steps check

asan tsan:
	@.ci/setup test
	@.ci/run-steps $@

# Builds for the other of x86-64 and aarch64, and runs the tests under qemu.
foreign:
	@.ci/setup all
	@.ci/run-steps $@

# Runs tests of ROCm and HIP on the software AMD GPU, with the ROCm of these Debian suites, which it
# fetches: make test-rocm [SUITES="trixie sid"]
test-rocm:
	@.ci/setup test
	@cmake --preset default >/dev/null
	@cmake --build --preset default --target keel_tool keel_trace capture_dump \
		facts test_drivers_triton test_drivers_hip_beside test_drivers_hip_hidden \
		test_drivers_amdgpu_hidden test_drivers_amdgpu_fence sim_hip sim/amd/all
	@tests/sim/amd/rocm.sh build $(or $(SUITES),bookworm trixie sid)

# Tries the driver of Metal, on a Mac on its GPU, elsewhere on the software Metal, and writes what
# to send us: make test-metal [FILTER="dispatch.*"]
test-metal:
ifeq ($(shell uname),Darwin)
	@cmake --preset lib -DKEEL_PORTABLE=ON >/dev/null
	@cmake --build --preset lib --target keel_tool
	@tests/macos/metal.sh build-lib/keel "$(FILTER)"
else
	@.ci/setup test
	@cmake --preset default >/dev/null
	@cmake --build --preset default --target keel_tool sim_metal
	@tests/macos/metal.sh build/keel "$(FILTER)"
endif

# Lets every function of a vendor's library fail, in every conformance test, over software; goes on
# where it was interrupted: make sweep [DRIVER=cuda] [AREA="pool wait"] [EACH=12]
sweep:
	@.ci/setup test
	@cmake --preset default >/dev/null
	@cmake --build --preset default --target keel_tool \
		sim_cuda sim_hip sim_hsa sim_metal sim/amd/all
	@tests/conformance/sweep.sh build "$(or $(DRIVER),cuda)" "$(or $(EACH),12)" $(AREA)

# Fuzzes the readers of images and the software GPU: make fuzz [TARGET=ptx] [SECONDS=60]
fuzz:
	@.ci/setup test
	@cmake --preset fuzz >/dev/null
	@cmake --build --preset fuzz --target fuzzers
	@tests/fuzz/run.sh build-fuzz "$(TARGET)" "$(SECONDS)"

bench:
	@.ci/setup bench
	@cmake --preset default >/dev/null
	@cmake --build --preset default --target keel_tool
	@build/keel bench

install: build
	@cmake --install build

format:
	@find include src sim conformance tests bench examples -name '*.[ch]' 2>/dev/null | \
	    xargs clang-format-19 -i

clean:
	rm -rf build build-*
