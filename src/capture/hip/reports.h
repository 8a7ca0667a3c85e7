// SPDX-License-Identifier: Apache-2.0
// Calls that pass by our functions, because a program was bound to HIP's own in a way of which this
// library knows nothing: HIP 5.7 and 6.1 to 6.4 report each call to one who asks.
#ifndef KEEL_SRC_CAPTURE_HIP_REPORTS_H_
#define KEEL_SRC_CAPTURE_HIP_REPORTS_H_

// Asks for reports, if there is a HIP in the process whose reports are known, no other tracer has
// them, and HIP's table is not ours. Calls no function that would start HIP.
void reports_ask(void);

#endif
