// SPDX-License-Identifier: Apache-2.0
#include "executable/container.h"

#include <stdlib.h>
#include <unistd.h>

#include "executable/packed.h"
#include "refusing.h"

static void contents_check(const container_t *c)
{
    assert_string_equal(c->producer, "a test");
    assert_int_equal(c->image_count, 2);
    assert_string_equal(c->images[0].target, "gfx90a");
    assert_int_equal(c->images[0].kind, KEEL_IMAGE_HSACO);
    assert_int_equal(c->images[0].size, 5000);
    assert_string_equal(c->images[1].target, "nvptx:sm_70");
    assert_int_equal(c->images[1].kind, KEEL_IMAGE_PTX);
    assert_int_equal(c->images[1].entry_count, 0);
    assert_int_equal(c->images[0].entry_count, 2);
    const keel_image_entry_t *entry = c->images[0].entries;
    assert_string_equal(entry[0].info.name, "saxpy");
    assert_memory_equal(entry[0].info.group_size, ((uint32_t[]){64, 2, 1}), 12);
    assert_int_equal(entry[0].info.constants, 8);
    assert_int_equal(entry[0].info.local_memory, 1024);
    assert_int_equal(entry[0].abi, KEEL_ABI_DIRECT);
    assert_true(entry[0].info.fixed_size);
    assert_false(entry[1].info.fixed_size);
    assert_int_equal(entry[0].info.bindings, 2);
    assert_string_equal(entry[0].bindings[0].name, "x");
    assert_int_equal(entry[0].bindings[0].access, KEEL_ACCESS_READ);
    assert_string_equal(entry[0].bindings[1].name, "");
    assert_int_equal(entry[0].bindings[1].access, KEEL_ACCESS_READ | KEEL_ACCESS_WRITE);
    assert_string_equal(entry[1].info.name, "größe");
    assert_int_equal(entry[1].arguments, 40);
    assert_int_equal(entry[1].info.bindings, 0);
}

static void round_trip(bool compress)
{
    packed_t packed = packed_make(compress), again = packed_make(compress);
    assert_int_equal(packed.size, again.size);
    assert_memory_equal(packed.bytes, again.bytes, packed.size);
    assert_true(container_is(packed.bytes, packed.size));
    container_t c;
    OK(packed_read(&packed, &c));
    contents_check(&c);
    source_t source = source_of_memory(packed.bytes, packed.size);
    unsigned char bytes[5000];
    OK(container_image_read(&c, &source, 0, bytes));
    assert_memory_equal(bytes, sample_bytes(), 5000);
    OK(container_image_read(&c, &source, 1, bytes));
    assert_memory_equal(bytes, "// ptx\n", 7);
    const void *view;
    OK(container_image_view(&c, &source, 1, &view));
    assert_memory_equal(view, "// ptx\n", 7);
    OK(container_image_view(&c, &source, 0, &view));
    assert_int_equal(view == NULL, c.images[0].compression != CONTAINER_PLAIN);
    container_finish(&c);
    mem_free(packed.bytes);
    mem_free(again.bytes);
}

static void test_round_trip(void **state)
{
    (void)state;
    round_trip(false);
}

static void test_compressed(void **state)
{
    (void)state;
    round_trip(true);
    packed_t packed = packed_make(true);
    container_t c;
    OK(packed_read(&packed, &c));
    assert_int_equal(c.images[0].compression, KEEL_HAVE_ZSTD ? CONTAINER_ZSTD : CONTAINER_PLAIN);
    assert_int_equal(c.images[1].compression, CONTAINER_PLAIN); // it would not get smaller
    container_finish(&c);
    mem_free(packed.bytes);
}

// What readers would refuse as a bomb is stored as it is.
static void test_extreme_ratio(void **state)
{
    (void)state;
    enum { SIZE = 4 << 20 };
    const container_input_t image = {KEEL_IMAGE_SPIRV, "spirv", calloc(1, SIZE), SIZE, NULL, 0};
    packed_t packed;
    void *bytes;
    OK(container_write(&(container_options_t){.compress = true}, &image, 1, &bytes, &packed.size));
    packed.bytes = bytes;
    container_t c;
    OK(packed_read(&packed, &c));
    assert_int_equal(c.images[0].compression, CONTAINER_PLAIN);
    container_finish(&c);
    mem_free(bytes);
    free((void *)image.data);
}

static void test_alignment(void **state)
{
    (void)state;
    for (int compress = 0; compress < 2; compress++) {
        packed_t packed = packed_make(compress);
        container_t c;
        OK(packed_read(&packed, &c));
        for (uint32_t i = 0; i < c.image_count; i++) {
            bool plain = c.images[i].compression == CONTAINER_PLAIN;
            assert_int_equal(c.images[i].offset % (plain ? CONTAINER_PAGE : CONTAINER_ALIGNMENT),
                             0);
        }
        container_finish(&c);
        mem_free(packed.bytes);
    }
}

static void test_bad_input(void **state)
{
    (void)state;
    const container_options_t options = {0};
    keel_image_entry_t entry = {.info.name = "bell \a"};
    container_input_t image = {KEEL_IMAGE_PTX, "", "x", 1, NULL, 0};
    void *bytes;
    size_t size;
    expect_failure(container_write(&options, &image, 1, &bytes, &size), KEEL_INVALID_ARGUMENT,
                   "images[0] has an empty target");
    image.target = "t\xff";
    expect_failure(container_write(&options, &image, 1, &bytes, &size), KEEL_INVALID_ARGUMENT,
                   "target that is not printable");
    image.target = "t";
    image.size = 0;
    expect_failure(container_write(&options, &image, 1, &bytes, &size), KEEL_INVALID_ARGUMENT,
                   "has 0 bytes");
    image.size = 1;
    image.entries = &entry;
    image.entry_count = 1;
    expect_failure(container_write(&options, &image, 1, &bytes, &size), KEEL_INVALID_ARGUMENT,
                   "entry point's name");
    assert_null(bytes);
}

static void test_truncated(void **state)
{
    (void)state;
    packed_t packed = packed_make(false);
    for (size_t size = 0; size < packed.size; size += size < 1000 ? 1 : 97) {
        unsigned char *part = malloc(size + 1); // the sanitizer knows where it ends
        memcpy(part, packed.bytes, size);
        part = realloc(part, size ? size : 1);
        container_t c;
        source_t source = source_of_memory(part, size);
        expect_failure(container_read(&source, &c), KEEL_CORRUPT, "truncated");
        free(part);
    }
    mem_free(packed.bytes);
}

// Damages byte `i` of an image and reads it. Some bits of a zstd frame mean nothing, so a
// compressed one may come out whole.
static void image_damage(const packed_t *packed, const container_t *c, uint32_t index, size_t i)
{
    const container_image_t *image = &c->images[index];
    source_t source = source_of_memory(packed->bytes, packed->size);
    unsigned char bytes[5000];
    packed->bytes[image->offset + i] ^= 0x10;
    keel_status_t status = container_image_read(c, &source, index, bytes);
    if (status || image->compression == CONTAINER_PLAIN)
        expect_failure(status, KEEL_CORRUPT, "the image");
    else
        assert_memory_equal(bytes, sample_bytes(), 5000);
    packed->bytes[image->offset + i] ^= 0x10;
}

// A change anywhere is noticed: in front by reading, in an image by reading that one.
static void test_changed(void **state)
{
    (void)state;
    packed_t packed = packed_make(true);
    prefix_t prefix = packed_prefix(&packed);
    container_t c;
    for (size_t i = 0; i < sizeof prefix + prefix.contents; i++) {
        packed.bytes[i] ^= 0x10;
        keel_status_t status = packed_read(&packed, &c);
        keel_code_t code = keel_status_code(status);
        keel_status_release(status);
        assert_true(code == KEEL_CORRUPT || code == KEEL_UNSUPPORTED);
        packed.bytes[i] ^= 0x10;
    }
    OK(packed_read(&packed, &c));
    for (uint32_t k = 0; k < c.image_count; k++)
        for (size_t i = 0; i < c.images[k].stored; i++) image_damage(&packed, &c, k, i);
    container_finish(&c);
    mem_free(packed.bytes);
}

// With the hash made anew, the verifier is on its own: an error or not, but all that is read lies
// within.
static void test_changed_and_hashed(void **state)
{
    (void)state;
    static const unsigned char changes[] = {0x01, 0x04, 0x80, 0xff};
    packed_t packed = packed_make(false);
    prefix_t prefix = packed_prefix(&packed);
    for (size_t i = 0; i < prefix.contents * sizeof changes; i++) {
        unsigned char *byte = &packed.bytes[sizeof prefix + i / sizeof changes];
        *byte ^= changes[i % sizeof changes];
        packed_rehash(&packed);
        container_t c;
        keel_status_t status = packed_read(&packed, &c);
        unsigned char bytes[5000];
        source_t source = source_of_memory(packed.bytes, packed.size);
        for (uint32_t k = 0; !status && k < c.image_count; k++) {
            if (c.images[k].size > sizeof bytes) continue;
            keel_status_release(container_image_read(&c, &source, k, bytes));
        }
        if (!status) container_finish(&c);
        assert_true(!status || keel_status_code(status) == KEEL_CORRUPT);
        keel_status_release(status);
        *byte ^= changes[i % sizeof changes];
    }
    mem_free(packed.bytes);
}

static void test_prefix(void **state)
{
    (void)state;
    packed_t packed = packed_make(false);
    const prefix_t good = packed_prefix(&packed);
    const struct {
        prefix_t prefix;
        keel_code_t code;
        const char *words;
    } cases[] = {
        {{"KEEL\n\x1a\n", 1, good.contents, good.size, 0, good.hash}, KEEL_CORRUPT, "no container"},
        {{FORMAT_MAGIC, 2, good.contents, good.size, 0, good.hash}, KEEL_UNSUPPORTED, "version 2"},
        {{FORMAT_MAGIC, 1, good.contents, good.size - 1, 0, good.hash}, KEEL_CORRUPT, "too long"},
        {{FORMAT_MAGIC, 1, good.contents, good.size, 1, good.hash},
         KEEL_CORRUPT,
         "should be nothing"},
        {{FORMAT_MAGIC, 1, UINT32_MAX, good.size, 0, good.hash}, KEEL_CORRUPT, "cannot be"},
        {{FORMAT_MAGIC, 1, 16 << 20, good.size, 0, good.hash}, KEEL_CORRUPT, "cannot be"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        container_t c;
        memcpy(packed.bytes, &cases[i].prefix, sizeof good);
        expect_failure(packed_read(&packed, &c), cases[i].code, cases[i].words);
    }
    mem_free(packed.bytes);
}

// Where the offset of the first image stands, and behind it the sizes stored and expanded.
static unsigned char *place_find(const packed_t *packed, uint64_t place[3])
{
    flat_t root = flat_root(packed->bytes + sizeof(prefix_t));
    flat_t image = flat_item(root, CONTENTS_IMAGES, 0);
    for (uint32_t i = 0; i < 3; i++) place[i] = flat_number(image, ITEM_OFFSET + i, FLAT_U64);
    unsigned char *at = packed->bytes + sizeof(prefix_t);
    while (memcmp(at, place, 24) != 0) at += 8;
    return at;
}

// Sizes that no compression leads to.
static void test_ratios(void **state)
{
    (void)state;
    if (!KEEL_HAVE_ZSTD) skip();
    packed_t packed = packed_make(true);
    uint64_t place[3];
    unsigned char *at = place_find(&packed, place);
    const struct {
        uint64_t size;
        bool possible;
    } cases[] = {
        {place[1], false},
        {place[1] + 1, true},
        {place[1] * CONTAINER_MAX_RATIO + CONTAINER_MAX_RATIO - 1, true},
        {(place[1] + 1) * CONTAINER_MAX_RATIO, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        container_t c;
        memcpy(at + 16, &cases[i].size, 8);
        packed_rehash(&packed);
        if (!cases[i].possible) {
            expect_failure(packed_read(&packed, &c), KEEL_CORRUPT, "are stored");
            continue;
        }
        // Possible, and not true.
        OK(packed_read(&packed, &c));
        void *bytes = malloc(cases[i].size);
        source_t source = source_of_memory(packed.bytes, packed.size);
        expect_failure(container_image_read(&c, &source, 0, bytes), KEEL_CORRUPT, "no frame of");
        free(bytes);
        container_finish(&c);
    }
    mem_free(packed.bytes);
}

// A table of contents beyond the limit, in a file that is large enough for it.
static void test_contents_limit(void **state)
{
    (void)state;
    prefix_t prefix = {.magic = FORMAT_MAGIC,
                       .version = CONTAINER_VERSION,
                       .contents = CONTAINER_MAX_CONTENTS + 1,
                       .size = CONTAINER_MAX_CONTENTS * 2};
    char path[] = "/tmp/keel-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, &prefix, sizeof prefix) == (ssize_t)sizeof prefix);
    assert_int_equal(ftruncate(fd, (off_t)prefix.size), 0);
    close(fd);
    source_t source;
    container_t c;
    OK(source_open(path, &source));
    unlink(path);
    expect_failure(container_read(&source, &c), KEEL_CORRUPT, "cannot be");
    source_finish(&source);
}

// Sizes and places of images that cannot be, in a table of contents that is otherwise sound.
static void test_places(void **state)
{
    (void)state;
    packed_t packed = packed_make(false);
    uint64_t place[3];
    unsigned char *at = place_find(&packed, place);
    const uint64_t good = place[0];
    const struct {
        uint64_t offset, stored, size;
        const char *words;
    } cases[] = {
        {0, 5000, 5000, "do not lie behind"},
        {UINT64_MAX - 63, 5000, 5000, "do not lie behind"},
        {good, UINT64_MAX, UINT64_MAX, "do not lie behind"},
        {good, 0, 0, "do not lie behind"},
        {good + 8, 64, 64, "not aligned"},
        {good, 5000, UINT64_MAX, "limit"},
        {good, 5000, 5001, "are stored"},
        {good, 5000, 4999, "are stored"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        container_t c;
        memcpy(at, &cases[i].offset, 24);
        packed_rehash(&packed);
        expect_failure(packed_read(&packed, &c), KEEL_CORRUPT, cases[i].words);
        expect_failure(packed_read(&packed, &c), KEEL_CORRUPT, "image 0, for 'gfx90a'");
    }
    mem_free(packed.bytes);
}

// The text where it first stands in the table of contents becomes empty.
static packed_t without_text(const char *text)
{
    packed_t packed = packed_make(false);
    size_t length = strlen(text);
    unsigned char *at = packed.bytes + sizeof(prefix_t);
    while (memcmp(at, text, length + 1) != 0) at++;
    memset(at - 4, 0, 4 + length);
    packed_rehash(&packed);
    return packed;
}

static void test_empty_texts(void **state)
{
    (void)state;
    container_t c;
    packed_t packed = without_text("gfx90a");
    expect_failure(packed_read(&packed, &c), KEEL_CORRUPT, "what it is for");
    mem_free(packed.bytes);
    packed = without_text("saxpy");
    expect_failure(packed_read(&packed, &c), KEEL_CORRUPT, "without a name");
    mem_free(packed.bytes);
    packed = without_text("x"); // bindings may have no names
    OK(packed_read(&packed, &c));
    container_finish(&c);
    mem_free(packed.bytes);
}

// A file that shrinks after its table of contents was read.
static void test_shrinking_file(void **state)
{
    (void)state;
    packed_t packed = packed_make(false);
    char path[] = "/tmp/keel-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, packed.bytes, packed.size) == (ssize_t)packed.size);
    source_t source;
    OK(source_open(path, &source));
    container_t c;
    unsigned char bytes[5000];
    OK(container_read(&source, &c));
    OK(container_image_read(&c, &source, 0, bytes));
    assert_int_equal(ftruncate(fd, (off_t)c.images[0].offset + 100), 0);
    expect_failure(container_image_read(&c, &source, 0, bytes), KEEL_CORRUPT, "truncated");
    container_finish(&c);
    source_finish(&source);
    close(fd);
    unlink(path);
    mem_free(packed.bytes);
}

static keel_status_t write_and_read(void)
{
    const container_input_t image = {KEEL_IMAGE_HSACO, "gfx90a", sample_bytes(), 5000,
                                     sample_entries,   2};
    packed_t packed = {0};
    container_t c;
    unsigned char bytes[5000];
    void *written = NULL;
    keel_status_t status = container_write(&(container_options_t){.compress = true}, &image, 1,
                                           &written, &packed.size);
    packed.bytes = written;
    source_t source = source_of_memory(packed.bytes, packed.size);
    if (!status) status = container_read(&source, &c);
    if (!status) {
        status = container_image_read(&c, &source, 0, bytes);
        container_finish(&c);
    }
    mem_free(written);
    return status;
}

// With each allocation failing in turn, the call fails and nothing is left behind.
static void test_no_memory(void **state)
{
    (void)state;
    keel_allocator_set(&refusing);
    bool done = false;
    for (refused_at = 1; !done && refused_at < 100; refused_at++) {
        made = 0;
        keel_status_t status = write_and_read();
        keel_code_t code = keel_status_code(status);
        keel_status_release(status);
        done = made < refused_at;
        assert_int_equal(code, done ? KEEL_OK : KEEL_OUT_OF_MEMORY);
        assert_int_equal(live, 0);
    }
    keel_allocator_set(NULL);
    assert_in_range(refused_at, 7, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_extreme_ratio), cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_bad_input),     cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_changed),       cmocka_unit_test(test_changed_and_hashed),
        cmocka_unit_test(test_prefix),        cmocka_unit_test(test_places),
        cmocka_unit_test(test_ratios),        cmocka_unit_test(test_contents_limit),
        cmocka_unit_test(test_empty_texts),   cmocka_unit_test(test_shrinking_file),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
