// SPDX-License-Identifier: Apache-2.0
// A user of the installed library in C++17, as such a program would be written: handles that
// release themselves, errors as exceptions, lists written in place.
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include <keel/keel.h>

namespace
{

void check(keel_status_t status)
{
    if (!status) return;
    std::string text(keel_status_format(status, nullptr, 0), '\0');
    keel_status_format(status, text.data(), text.size() + 1);
    keel_status_release(status);
    throw std::runtime_error(text);
}

template <auto release> struct releaser {
    template <typename T> void operator()(T *object) const { release(object); }
};
using device_ptr = std::unique_ptr<keel_device_t, releaser<keel_device_release>>;
using buffer_ptr = std::unique_ptr<keel_buffer_t, releaser<keel_buffer_release>>;
using semaphore_ptr = std::unique_ptr<keel_semaphore_t, releaser<keel_semaphore_release>>;
using recording_ptr = std::unique_ptr<keel_recording_t, releaser<keel_recording_release>>;

device_ptr open(const char *uri)
{
    keel_device_t *device = nullptr;
    check(keel_device_open(uri, nullptr, &device));
    return device_ptr(device);
}

buffer_ptr readable(keel_device_t *device, std::size_t size)
{
    keel_buffer_options_t options = KEEL_ZERO;
    options.size = size;
    options.memory = KEEL_MEMORY_HOST_VISIBLE;
    keel_buffer_t *buffer = nullptr;
    check(keel_buffer_create(device, &options, &buffer));
    return buffer_ptr(buffer);
}

semaphore_ptr semaphore(keel_device_t *device)
{
    keel_semaphore_t *made = nullptr;
    check(keel_semaphore_create(device, nullptr, &made));
    return semaphore_ptr(made);
}

// A recording that fills slot 0 and copies it to slot 1.
recording_ptr fill_and_copy(keel_device_t *device)
{
    keel_recording_options_t options = KEEL_ZERO;
    options.slots = 2;
    keel_recording_t *made = nullptr;
    check(keel_recording_create(device, &options, &made));
    recording_ptr recording(made);
    const std::array ops = {
        keel_op_fill(keel_slot(0, 0, KEEL_WHOLE), 7, 4),
        keel_op_barrier(),
        keel_op_copy(keel_slot(0, 0, KEEL_WHOLE), keel_slot(1, 0, KEEL_WHOLE)),
    };
    check(keel_recording_add(made, ops.data(), ops.size()));
    check(keel_recording_end(made));
    return recording;
}

void run()
{
    std::array<std::uint32_t, 16> numbers{};
    const device_ptr device = open("cpu://inline");
    keel_queue_t *queue = keel_device_queue(device.get(), 0);
    const buffer_ptr x = readable(device.get(), sizeof numbers);
    const buffer_ptr y = readable(device.get(), sizeof numbers);
    const semaphore_ptr gate = semaphore(device.get());
    const recording_ptr recording = fill_and_copy(device.get());

    keel_point_t begun, done;
    const auto table = keel_bind(x.get(), keel_whole(y.get()));
    check(keel_queue_signal(queue, KEEL_NO_WAITS, KEEL_SIGNAL(keel_point(gate.get(), 1)), &begun));
    check(keel_queue_execute(queue, KEEL_AFTER(begun, keel_point(gate.get(), 1)), recording.get(),
                             table, &done));
    const keel_point_t both[] = {begun, done}; // a list that lives longer than a statement
    check(keel_wait(KEEL_POINTS_OF(both), KEEL_ALL, KEEL_FOREVER));
    check(keel_buffer_read(y.get(), 0, numbers.data(), sizeof numbers));
    for (const std::uint32_t number : numbers)
        if (number != 7) throw std::runtime_error("a number is " + std::to_string(number));
}

} // namespace

int main()
{
    try {
        run();
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
