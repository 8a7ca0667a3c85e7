// SPDX-License-Identifier: Apache-2.0
// The device library: what the driver runs on the GPU, for itself. make.sh makes library.co of it.
#include "builtin/kernels.c"
