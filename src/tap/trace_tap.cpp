#include "tap/trace_tap.hpp"

#include <cstdio>

#include "wire/frame.hpp"

namespace via::tap {

namespace {

constexpr std::size_t line_max = 256;

std::string_view fitting(const char* line, int length) {
    const auto wanted = static_cast<std::size_t>(length < 0 ? 0 : length);
    return {line, wanted < line_max ? wanted : line_max - 1};
}

const char* kind_of(device::PathEventKind kind) {
    switch (kind) {
        case device::PathEventKind::resolved:
            return "resolved";
        case device::PathEventKind::unresolved:
            return "unresolved";
        case device::PathEventKind::up:
            return "up";
        case device::PathEventKind::down:
            return "down";
        case device::PathEventKind::attached:
            return "attached";
        case device::PathEventKind::changed:
            return "changed";
    }
    return "?";
}

}  // namespace

TraceTap::TraceTap(std::unique_ptr<device::Device> below, TraceSink sink)
    : Tap(std::move(below)), sink_(std::move(sink)), small_below_(Tap::below().small_sends()) {}

void TraceTap::print_frame(const char* direction, device::PathId path, const std::byte* header,
                           std::uint32_t length, std::uint32_t payload_length) {
    char line[line_max];
    wire::Header parsed;
    const wire::ParseError error = wire::parse(header, length, parsed);
    int used = std::snprintf(line, sizeof line, "%s path %u ", direction, path);
    if (error != wire::ParseError::none) {
        used +=
            std::snprintf(line + used, sizeof line - static_cast<std::size_t>(used),
                          "a frame %s, %u bytes", wire::to_string(error), length + payload_length);
    } else {
        const std::uint32_t inside = length - wire::header_length(parsed.flags);
        used += static_cast<int>(wire::print(parsed, inside + payload_length, line + used,
                                             sizeof line - static_cast<std::size_t>(used)));
    }
    sink_(fitting(line, used));
}

bool TraceTap::reserve(device::PathId path, std::uint32_t header_length,
                       std::uint32_t payload_length, device::FrameSlot& slot) {
    slot.wanted = 1;  // each is printed
    if (!below().reserve(path, header_length, payload_length, slot)) return false;
    staged_.push_back({path, slot.header, header_length, payload_length});
    return true;
}

void TraceTap::print_small(device::PathId path, std::uint64_t low, std::uint64_t high,
                           std::uint32_t payload_length) {
    std::byte header[wire::header_length_base];
    wire::put(header, low);
    wire::put(header + sizeof low, high);
    print_frame(">", path, header, sizeof header, payload_length);
}

std::uint32_t TraceTap::send_small(device::PathId path, std::uint64_t low, std::uint64_t high,
                                   const std::byte* payload, std::uint32_t length, bool alone) {
    const std::uint32_t calls = small_below_->send_small(path, low, high, payload, length, alone);
    if (calls != not_sent) print_small(path, low, high, length);
    return calls;
}

std::uint32_t TraceTap::send_pieces(device::PathId path, std::uint64_t low, std::uint64_t high,
                                    const Pieces& payload) {
    const std::uint32_t calls = small_below_->send_pieces(path, low, high, payload);
    if (calls != not_sent)
        print_small(path, low, high, payload.first_length + payload.second_length);
    return calls;
}

void TraceTap::transmit(device::PathId path) {
    for (const Staged& frame : staged_)
        if (frame.path == path)
            print_frame(">", path, frame.header, frame.header_length, frame.payload_length);
    std::erase_if(staged_, [path](const Staged& frame) { return frame.path == path; });
    below().transmit(path);
}

std::size_t TraceTap::receive(std::span<device::Frame> frames) {
    const std::size_t count = below().receive(frames);
    for (const device::Frame& frame : frames.first(count)) {
        print_frame("<", frame.path, frame.bytes, frame.length, frame.payload_length);
        device::Frame next = frame;
        for (std::uint32_t n = 1; n < frame.count; ++n) {
            wire::put_offset(next.bytes, wire::offset_of(next.bytes) + frame.payload_length);
            print_frame("<", next.path, next.bytes, next.length, next.payload_length);
        }
    }
    return count;
}

void TraceTap::close_for_violation(device::PathId path, const char* reason) {
    char line[line_max];
    sink_(fitting(line, std::snprintf(line, sizeof line, "closed path %u: %s", path, reason)));
    below().close_for_violation(path, reason);
}

bool TraceTap::next_event(device::PathEvent& event) {
    if (!below().next_event(event)) return false;
    char line[line_max];
    const int length =
        event.kind == device::PathEventKind::unresolved
            ? std::snprintf(line, sizeof line, "event unresolved: %s", to_string(event.status))
            : std::snprintf(line, sizeof line, "event path %u %s", event.path, kind_of(event.kind));
    sink_(fitting(line, length));
    return true;
}

}  // namespace via::tap
