// SPDX-License-Identifier: Apache-2.0
#include "tracer/export.h"

// The length of the UTF-8 sequence that begins here; 0: it is none, an overlong one, half of a pair
// of UTF-16, or beyond U+10FFFF.
static int utf8_length(const unsigned char *text)
{
    int length = *text < 0x80                     ? 1
                 : *text >= 0xc2 && *text <= 0xdf ? 2
                 : *text >= 0xe0 && *text <= 0xef ? 3
                 : *text >= 0xf0 && *text <= 0xf4 ? 4
                                                  : 0;
    for (int i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if ((*text == 0xe0 && text[1] < 0xa0) || (*text == 0xed && text[1] > 0x9f)) return 0;
    if ((*text == 0xf0 && text[1] < 0x90) || (*text == 0xf4 && text[1] > 0x8f)) return 0;
    return length;
}

// Bytes that are no UTF-8 become U+FFFD: a reader would refuse the whole file. So would a page's
// parser end a script at "</".
void json_text(const char *text, FILE *out)
{
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int length = utf8_length(at);
        if (!length)
            fputs("\\ufffd", out);
        else if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at < 0x20 || *at == '<' || *at == 0x7f)
            fprintf(out, "\\u%04x", *at);
        else
            fwrite(at, 1, (size_t)length, out);
        at += length ? length : 1;
    }
    fputc('"', out);
}
