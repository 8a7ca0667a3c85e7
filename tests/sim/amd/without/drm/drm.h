// SPDX-License-Identifier: Apache-2.0
// What <linux/kfd_ioctl.h> wants of the header of this name, for machines that lack it.
#include <linux/types.h>
