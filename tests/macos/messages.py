#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""messages.py selectors.def: writes Objective-C in which each row of the table is a function that
sends the message as a real one, so that a compiler which has Metal's interfaces compares names and
types. `-include` says which interfaces: interfaces.h here, Apple's on a Mac."""
import re
import sys

# Receivers that are classes; all others are protocols.
CLASSES = {"NSObject", "NSString", "NSError", "NSArray", "NSData", "MTLComputePassDescriptor",
           "MTLBlitPassDescriptor", "MTLComputePassSampleBufferAttachmentDescriptor",
           "MTLComputePassSampleBufferAttachmentDescriptorArray", "MTLCompileOptions",
           "MTLHeapDescriptor", "MTLCaptureManager",
           "MTLSharedEventListener", "MTLCounterSampleBufferDescriptor",
           "MTLComputePipelineDescriptor", "MTLIndirectCommandBufferDescriptor"}
# Messages to the class itself.
TO_CLASS = {"new", "alloc", "stringWithUTF8String:", "computePassDescriptor", "blitPassDescriptor",
            "sharedCaptureManager"}
# Messages that iOS does not have. The driver sends them to no device there.
MAC_ONLY = {"didModifyRange:"}
STRUCTS = {"metal_size_t": "MTLSize", "metal_range_t": "NSRange"}


def rows(text):
    text = re.sub(r"//[^\n]*", "", text)
    for match in re.finditer(r"^(?:X|LARGE)\((.*?)\)\s*$(?=\n(?:X|LARGE|\s*$|#)|\Z)", text,
                             re.S | re.M):
        yield split(" ".join(match.group(1).split()))


def split(row):
    """At the commas outside of parentheses and quotes."""
    parts, depth, quoted = [""], 0, False
    for c in row:
        quoted ^= c == '"'
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts]


def parameters(part):
    """('unsigned long', 'length') of each."""
    inside = part.strip("()").strip(", ")
    for p in filter(None, (p.strip() for p in inside.split(","))):
        kind, name = re.fullmatch(r"(.*?)(\w+)", p).groups()
        yield kind.strip(), name


def argument(kind, name):
    if kind in STRUCTS:
        return "*(const %s *)(const void *)&%s" % (STRUCTS[kind], name)
    if name == "block":
        return "(id)%s" % name
    if name == "resources":
        return "(const id<MTLResource> *)%s" % name
    if kind.replace(" ", "") == "id*":
        return "(NSError **)%s" % name
    return name


def message(receiver, selector, given):
    to = receiver if selector in TO_CLASS else "self"
    words = selector.split(":")
    if not given:
        return "[%s %s]" % (to, selector)
    if len(words) != len(given) + 1:
        raise SystemExit("%s takes %d arguments, not %d" % (selector, len(words) - 1, len(given)))
    return "[%s %s]" % (to, " ".join(w + ":" + argument(*g) for w, g in zip(words, given)))


def function(result, name, receiver, selector, taken):
    given = list(parameters(taken))
    kind = receiver + " *" if receiver in CLASSES else "id<%s> " % receiver
    taken = ", ".join([kind + "self"] + ["%s %s" % g for g in given])
    sent = message(receiver, selector.strip('"'), given)
    if result in STRUCTS:
        body = "%s made = %s; return *(const %s *)(const void *)&made;" % (STRUCTS[result], sent,
                                                                       result)
    else:
        body = "%s%s;" % ("" if result == "void" else "return ", sent)
    made = "%s check_%s(%s);\n%s check_%s(%s)\n{\n    (void)self;\n    %s\n}\n" % (
        result, name, taken, result, name, taken, body)
    if selector.strip('"') not in MAC_ONLY:
        return made
    return "#ifndef __ENVIRONMENT_IPHONE_OS_VERSION_MIN_REQUIRED__\n%s#endif\n" % made


def main():
    made = [function(*row[:5]) for row in rows(open(sys.argv[1]).read())]
    print("// Made by tests/macos/messages.py: %d messages." % len(made))
    print("#include <stdbool.h>\n#include <stdint.h>\n")
    for ours, theirs in STRUCTS.items():
        print("typedef struct %s { unsigned long at[sizeof(%s) / sizeof(long)]; } %s;" % (
            ours, theirs, ours))
    print('_Static_assert(sizeof(MTLSize) == 24 && sizeof(NSRange) == 16, "as the driver has it");')
    print("\n".join(made))


main()
