#include "wire/frame.hpp"

#include <cstdio>

#include "wire/bytes.hpp"
#include "wire/fields.hpp"

namespace via::wire {

void emit(const Header& header, std::byte* bytes) {
    bytes[0] = static_cast<std::byte>(header.kind);
    bytes[1] = static_cast<std::byte>(header.flags);
    bytes[2] = static_cast<std::byte>(protocol_version);
    bytes[3] = std::byte{0};
    put(bytes + 4, header.vi);
    put(bytes + 8, header.message);
    put(bytes + 12, header.immediate_or_code);
    if (!header.has(flag::extent)) return;
    put(bytes + 16, header.message_length);
    put(bytes + 20, header.offset);
    if (!header.has(flag::remote)) return;
    put(bytes + 24, header.remote_address);
    put(bytes + 32, header.remote_handle);
    put(bytes + 36, header.read_number);
}

ParseError parse(const std::byte* bytes, std::size_t length, Header& header) {
    if (length < header_length_base) return ParseError::truncated;
    const auto kind = static_cast<std::uint8_t>(bytes[0]);
    const auto flags = static_cast<std::uint8_t>(bytes[1]);
    if (bytes[2] != std::byte{protocol_version} || bytes[3] != std::byte{0})
        return ParseError::version;
    if (kind == 0 || kind > frame_kind_max) return ParseError::kind;
    if ((flags & ~flag::all) != 0 || ((flags & flag::remote) != 0 && (flags & flag::extent) == 0) ||
        ((flags & flag::placed) != 0 && (flags & flag::remote) == 0) ||
        ((flags & flag::pull) != 0 && (flags & flag::extent) == 0) ||
        (flags != 0 && kind == static_cast<std::uint8_t>(FrameKind::skip)))
        return ParseError::flags;
    if (length < header_length(flags)) return ParseError::truncated;
    header.kind = static_cast<FrameKind>(kind);
    header.flags = flags;
    header.vi = get<std::uint32_t>(bytes + 4);
    header.message = get<std::uint32_t>(bytes + 8);
    header.immediate_or_code = get<std::uint32_t>(bytes + 12);
    if ((flags & flag::extent) == 0) return ParseError::none;
    header.message_length = get<std::uint32_t>(bytes + 16);
    header.offset = get<std::uint32_t>(bytes + 20);
    if ((flags & flag::remote) == 0) return ParseError::none;
    header.remote_address = get<std::uint64_t>(bytes + 24);
    header.remote_handle = get<std::uint32_t>(bytes + 32);
    header.read_number = get<std::uint32_t>(bytes + 36);
    return ParseError::none;
}

const char* to_string(ParseError error) {
    switch (error) {
        case ParseError::none:
            return "none";
        case ParseError::truncated:
            return "shorter than its header";
        case ParseError::version:
            return "of an unknown protocol version";
        case ParseError::kind:
            return "of an unknown kind";
        case ParseError::flags:
            return "with impossible flags";
    }
    return "unknown";
}

std::size_t print(const Header& header, std::size_t payload_length, char* text, std::size_t size) {
    if (size == 0) return 0;
    int n = std::snprintf(
        text, size, "%s%s%s vi=%u message=%u length=%zu", name_of(header.kind, frame_kind_names),
        header.has(flag::first) ? " first" : "", header.has(flag::last) ? " last" : "", header.vi,
        header.message, payload_length);
    const auto used = [&] {
        return static_cast<std::size_t>(n) < size ? static_cast<std::size_t>(n) : size;
    };
    if (header.has(flag::immediate) || header.kind == FrameKind::refuse ||
        header.kind == FrameKind::nak || header.kind == FrameKind::attach_refuse ||
        header.kind == FrameKind::pulled)
        n += std::snprintf(text + used(), size - used(), " %s=%u",
                           header.has(flag::immediate) ? "immediate" : "code",
                           header.immediate_or_code);
    if (header.has(flag::extent))
        n += std::snprintf(text + used(), size - used(), " offset=%u of=%u", header.offset,
                           header.message_length);
    if (header.has(flag::remote))
        n += std::snprintf(text + used(), size - used(), " handle=%u read=%u", header.remote_handle,
                           header.read_number);
    return used() == size ? size - 1 : used();
}

}  // namespace via::wire
