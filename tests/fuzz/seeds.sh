#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# seeds.sh KEEL: makes the seeds of the corpora, corpus/*/seed-*, anew with clang's, LLVM's,
# Khronos's and FlatBuffers' tools and with `keel cc`. They are kept so that
# replaying and fuzzing do not need these tools.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
keel=$(realpath "${1:-$here/../../build/keel}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
corpus() { mkdir -p "$here/corpus/$1" && cat "$3" >"$here/corpus/$1/seed-$2"; }

cat >k.c <<'END'
typedef struct { char tag; double value; } pair_t;
__attribute__((address_space(3), loader_uninitialized)) int tile[256];
#ifdef __NVPTX__
#define KERNEL [[clang::nvptx_kernel]] void
#else
#define KERNEL [[clang::amdgpu_kernel]] void
#endif
KERNEL saxpy(float *y, const float *x, float a, char b, long n) { y[n] = x[n] * a + b; }
KERNEL grouped(pair_t p, int *out) { tile[out[0]] = out[1]; out[2] = tile[out[3]] + (int)p.value; }
END
clang-19 --target=nvptx64-nvidia-cuda -march=sm_70 -std=c23 -O1 -nogpulib -S k.c -o k.ptx
cat >hand.ptx <<'END'
// by hand
.version 8.5
.target sm_90a, debug
.address_size 64
.file 1 "a.cu", 12, 34
.extern .shared .align 16 .b8 dynamic[];
.shared .f32 one, pair[2];
.visible .global .align 4 .u32 table[3] = {1, 0x2, {3}};
.weak .func (.param .b32 r) helper (.param .b64 a) { { ret; } }
.visible .entry many(.param .u64 .ptr .global .align 4 p, .param .align 16 .b8 q[24],
    .param .v2 .f32 r, .param .texref s) .maxntid 128, 2 .pragma "nounroll";
.entry many(.param .u64 .ptr .shared .align 1 p) .reqntid 8, 4, 2
{ .shared .align 4 .b8 inner[10]; $L: ld.shared::cta.u32 %r1, [pair+4]; /* } */ ret; }
.section .debug_str { info: .b8 1, 2 }
END
corpus ptx clang k.ptx
corpus ptx hand hand.ptx
corpus ptx_token hand hand.ptx

cat >h.c <<'END'
#include <keel/host_kernel.h>
static int one(const keel_host_dispatch_t *d, const keel_host_group_t *g) { return d == 0 && g; }
static const uint32_t access[] = {1, 3};
static const char *const names[] = {"x", "y"};
static const keel_host_entry_t entries[] = {{"one", one, {64, 2, 1}, 8, 2, 256, access, names}};
KEEL_HOST_LIBRARY(entries, 0, 0)
END
for machine in x86_64 aarch64; do
    clang-19 --target=$machine-linux-gnu -ffreestanding -nostdlib -fuse-ld=lld -shared -fPIC -Os \
        -I"$here/../../include" -Wl,-s,-z,max-page-size=4096 h.c -o $machine.so
    corpus host $machine $machine.so
done

for architecture in gfx900 gfx1100; do
    clang-19 --target=amdgcn-amd-amdhsa -mcpu=$architecture -std=c23 -O1 -nogpulib -Wl,-s k.c \
        -o $architecture.hsaco
    corpus hsaco $architecture $architecture.hsaco
done
llvm-objcopy-19 --dump-section .note=note gfx900.hsaco
tail -c +21 note >metadata
corpus msgpack metadata metadata
printf '\336\0\4\1\377\320\200\313\0\0\0\0\0\0\0\0\302\300\304\1x\327t12345678' >forms
corpus msgpack forms forms

corpus cubin sm_75 "$here/../data/native.sm_75.cubin"
corpus fatbin lz4 "$here/../data/native.lz4.fatbin"
corpus fatbin zstd "$here/../data/native.zstd.fatbin"

cat >k.comp <<'END'
#version 450
layout(local_size_x = 8, local_size_y_id = 1) in;
layout(push_constant) uniform Push { vec3 a; mat4 m; float tail[3]; } push;
layout(set = 1, binding = 3) readonly buffer In { float x[]; } source[2];
layout(binding = 1, rgba8) uniform readonly image2D picture;
shared float tile[64];
float helper(uint i) { return source[1].x[i]; }
void main() { tile[0] = helper(gl_GlobalInvocationID.x) + push.tail[2]
    + imageLoad(picture, ivec2(0)).x; }
END
for version in 1.0 1.2; do
    glslangValidator --target-env vulkan$version k.comp -o k.spv >/dev/null
    corpus spirv vulkan$version k.spv
done
python3 -c 'import array, sys; words = array.array("I", open("k.spv", "rb").read())
words.byteswap(); open("swapped.spv", "wb").write(words.tobytes())'
corpus spirv swapped swapped.spv
cat >k.asm <<'END'
OpCapability Kernel
OpCapability Addresses
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %kernel "kernel"
%void = OpTypeVoid
%char = OpTypeInt 8 0
%global = OpTypePointer CrossWorkgroup %char
%local = OpTypePointer Workgroup %char
%type = OpTypeFunction %void %global %char %local
%kernel = OpFunction %void None %type
%a = OpFunctionParameter %global
%b = OpFunctionParameter %char
%c = OpFunctionParameter %local
%l = OpLabel
OpReturn
OpFunctionEnd
END
spirv-as k.asm -o k.spv
corpus spirv kernel k.spv

printf '.version 7.0 .target sm_70 .entry k() { ret; }' >s.ptx
printf 'BC\300\336' >s.bc
clang-offload-packager-19 -o o.bin \
    --image=file=s.ptx,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda \
    --image=file=s.bc,triple=amdgcn-amd-amdhsa,arch=gfx90a:xnack+,kind=hip
corpus offload two o.bin
targets=host-x86_64-unknown-linux-gnu,openmp-nvptx64-nvidia-cuda--sm_70
targets=$targets,hipv4-amdgcn-amd-amdhsa--gfx90a
for compress in '' --compress; do
    clang-offload-bundler-19 --type=o $compress --input=/dev/null --input=s.ptx --input=s.bc \
        --targets=$targets --output=b.bin
    corpus bundle "three$compress" b.bin
    corpus image "bundle$compress" b.bin
done
clang-offload-bundler-19 --type=s --input=/dev/null --input=s.ptx --input=s.ptx \
    --targets=$targets --output=b.s
corpus bundle texts b.s
corpus image fatbin "$here/../data/native.lz4.fatbin"
corpus image offload o.bin
corpus image spirv k.spv
corpus image ptx s.ptx
corpus image hsaco gfx900.hsaco

cat >c.c <<'END'
#include <keel/kernel.h>
KEEL_KERNEL(scale, KEEL_GROUP(64, 2), KEEL_IN(float, x), KEEL_OUT(float, y),
            KEEL_CONSTANTS(float, a), KEEL_LOCAL(float, tile, 64))
{
    KEEL_ITEMS { tile[keel_local_id(0)] = x[keel_global_id(0)] * a; }
    KEEL_BARRIER();
    KEEL_ITEMS { y[keel_global_id(0)] = tile[63 - keel_local_id(0)]; }
}
END
for compress in '' --compress; do
    "$keel" cc c.c -o c.keel --target=nvptx:sm_70,gfx900 -Os $compress -I"$here/../../include"
    corpus container "cc$compress" c.keel
done
# As another tool would write it.
cat >contents.json <<'END'
{"producer": "flatc", "images": [
  {"target": "gfx90a", "kind": "hsaco", "offset": 4096, "stored": 5, "size": 5,
   "hash": {"bytes": [HASH]},
   "entries": [{"name": "gr\u00f6\u00dfe", "group_size": {"x": 1, "y": 1, "z": 1}, "arguments": 40},
               {"name": "b", "group_size": {"x": 8, "y": 2, "z": 1}, "abi": "direct",
                "bindings": [{"name": "x", "access": "read"}, {"access": "read write"}]}]},
  {"target": "x86_64-linux:v3", "kind": "host", "compression": "zstd", "offset": 4160,
   "stored": 14, "size": 15, "hash": {"bytes": [HASH]}}]}
END
python3 - <<'END'
import hashlib
hash = hashlib.blake2b(b"image", digest_size=32).digest()
text = open("contents.json").read().replace("[HASH]", str(list(hash)))
open("contents.json", "w").write(text)
END
flatc --binary "$here/../../src/executable/container.fbs" contents.json
python3 - <<'END'
import hashlib, struct
contents = open("contents.bin", "rb").read()
hash = hashlib.blake2b(contents, digest_size=32).digest()
size = 4160 + 14
prefix = b"KEEL\r\n\x1a\n" + struct.pack("<IIQQ", 1, len(contents), size, 0) + hash
images = b"image".ljust(64, b"\0") + bytes.fromhex("28b52ffd200f") + b"zzzzzzzz"
open("flatc.keel", "wb").write((prefix + contents).ljust(4096, b"\0") + images)
END
corpus container flatc flatc.keel
corpus image container c.keel

"$here/traces.py" "$here/corpus"
