// SPDX-License-Identifier: Apache-2.0
// Texts of other compilers include it. What they use of it is in metal_stdlib.
#include <metal_stdlib>
