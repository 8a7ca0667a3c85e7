// SPDX-License-Identifier: Apache-2.0
// What the system knows of a device on PCI. Linux tells by files below /sys; on other systems
// nothing is known.
#ifndef KEEL_SRC_BASE_PCI_H_
#define KEEL_SRC_BASE_PCI_H_

#include <stdint.h>

#define PCI_FOLDER "/sys/bus/pci/devices"

typedef struct pci_device_t {
    uint32_t vendor; // its number at the PCI-SIG: 0x10de is NVIDIA; 0: there is no such device
    int numa_node;   // -1: not known, or the machine has one memory node only
    uint64_t link;   // bytes per second that its link carries at most each way; 0: not known
    char driver[32]; // version of the driver that serves it; "" if that has none
} pci_device_t;

// Looks up the device at `address` ("0000:3b:00.0"), in `folder` (PCI_FOLDER; another one in
// tests). Any thread; reads some small files.
void pci_read(const char *folder, const char *address, pci_device_t *device);

#endif
