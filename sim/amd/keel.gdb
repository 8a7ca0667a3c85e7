# SPDX-License-Identifier: Apache-2.0
# Commands for kernels under gdb; `keel sim --break=KERNEL -- PROGRAM` loads this.
set breakpoint pending on
set pagination off
set confirm off
break keel_sim_break

define sim-step
  tbreak keel_sim_step
  continue
  printf "0x%lx: %s\n", address, text
end
document sim-step
Goes on to the next instruction of a kernel and prints it. `wave` is the wave that runs it.
end

define sim-scalars
  set $k = 0
  while $k < 104
    printf "s%-3d %08x %08x %08x %08x %08x %08x %08x %08x\n", $k, wave->s[$k], wave->s[$k + 1], wave->s[$k + 2], wave->s[$k + 3], wave->s[$k + 4], wave->s[$k + 5], wave->s[$k + 6], wave->s[$k + 7]
    set $k = $k + 8
  end
  printf "vcc %08x%08x exec %08x%08x scc %u m0 %08x\n", wave->s[107], wave->s[106], wave->s[127], wave->s[126], wave->scc, wave->s[124]
end
document sim-scalars
Prints the scalar registers of the wave.
end

define sim-vector
  set $k = 0
  while $k < 64
    printf "lane %-2d %08x %08x %08x %08x %08x %08x %08x %08x\n", $k, wave->v[$arg0][$k], wave->v[$arg0][$k + 1], wave->v[$arg0][$k + 2], wave->v[$arg0][$k + 3], wave->v[$arg0][$k + 4], wave->v[$arg0][$k + 5], wave->v[$arg0][$k + 6], wave->v[$arg0][$k + 7]
    set $k = $k + 8
  end
end
document sim-vector
sim-vector N: prints the lanes of vector register N; those of accumulation register N are at 256 + N.
end
