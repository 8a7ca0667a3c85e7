// SPDX-License-Identifier: Apache-2.0
// csmith includes it with --float; csmith.h has what is needed of it.
