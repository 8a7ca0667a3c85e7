// SPDX-License-Identifier: Apache-2.0
// A phone before iOS 18: it has no MTLCopyAllDevices.
#include "metal/base.h"

const bool on_ios = true;
