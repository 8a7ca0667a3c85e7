// SPDX-License-Identifier: Apache-2.0
// What hidden.h runs, for any GPU; compiled for a family of them (gfx9-generic).

kernel void hidden(global uint *out, uint k)
{
    uint group = __builtin_amdgcn_workgroup_id_x(), size = __builtin_amdgcn_workgroup_size_x();
    uint i = group * size + __builtin_amdgcn_workitem_id_x();
    out[i] = k + i;
}
