// SPDX-License-Identifier: Apache-2.0
#define FACTOR 2u
