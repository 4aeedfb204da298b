#include "device/shm/hello.hpp"

#include <cstdio>
#include <cstring>

#include "base/printable.hpp"

namespace via::device::shm {

namespace {

constexpr std::uint16_t address_bytes = 6;  // IPv4 and port

MessageHead make_head(MessageKind kind) {
    return {channel_magic, channel_version, static_cast<std::uint32_t>(kind)};
}

Farewell make_farewell(MessageKind kind, std::uint32_t reason, std::string_view text) {
    Farewell message{};
    message.head = make_head(kind);
    message.reason = reason;
    text = text.substr(0, Farewell::text_max);
    message.text_length = static_cast<std::uint32_t>(text.size());
    std::memcpy(message.text, text.data(), text.size());
    return message;
}

/// A peer's words are shown to people: nothing but printable ASCII.
std::string farewell_text(const Farewell& message) {
    return printable({message.text, message.text_length < Farewell::text_max ? message.text_length
                                                                             : Farewell::text_max});
}

Unwelcome bad(Refusal reason, std::string text) { return {reason, false, std::move(text)}; }

Unwelcome refused_by_peer(std::span<const std::byte> message) {
    Farewell farewell{};
    // Of another version's refusal only the head is known to mean what we think.
    const bool ours = message.size() == sizeof farewell;
    if (ours) std::memcpy(&farewell, message.data(), sizeof farewell);
    if (ours && farewell.head.version == channel_version && farewell.reason > 0 &&
        farewell.reason < static_cast<std::uint32_t>(Refusal::count_)) {
        return {static_cast<Refusal>(farewell.reason), true, farewell_text(farewell)};
    }
    return {Refusal::version, true, "it speaks another version"};
}

std::string number_pair(const char* what, std::uint64_t theirs, std::uint64_t ours) {
    char text[96];
    std::snprintf(text, sizeof text, "%s %llu, ours is %llu", what,
                  static_cast<unsigned long long>(theirs), static_cast<unsigned long long>(ours));
    return text;
}

}  // namespace

const char* to_string(Refusal refusal) {
    switch (refusal) {
        case Refusal::protocol:
            return "not a greeting of this protocol";
        case Refusal::version:
            return "another version";
        case Refusal::features:
            return "features that do not fit";
        case Refusal::sizes:
            return "sizes that do not fit";
        case Refusal::address:
            return "not at its NIC address";
        case Refusal::user:
            return "another user";
        case Refusal::memory:
            return "unacceptable shared memory";
        case Refusal::resources:
            return "no room for another peer";
        case Refusal::count_:
            break;
    }
    return "unknown reason";
}

Status to_status(Refusal refusal) {
    return refusal == Refusal::resources ? Status::error_resource : Status::not_reachable;
}

Hello make_hello(const Layout& layout, const HostAddress& address, std::string_view name,
                 std::uint32_t features) {
    Hello hello{};
    hello.head = make_head(MessageKind::hello);
    hello.features = features;
    hello.required = features_required;
    hello.ring_slots = layout.ring_slots;
    hello.arena_bytes = layout.arena_bytes;
    hello.payload_max = payload_max;
    hello.header_max = header_max;
    hello.memory_bytes = layout.bytes();
    hello.address_length = address.length;
    std::memcpy(hello.address, address.bytes.data(), sizeof hello.address);
    hello.name_length = static_cast<std::uint8_t>(name.size());
    std::memcpy(hello.name, name.data(), name.size());
    return hello;
}

Farewell make_refusal(Refusal reason, std::string_view text) {
    return make_farewell(MessageKind::refusal, static_cast<std::uint32_t>(reason), text);
}

Farewell make_goodbye(std::string_view text) {
    return make_farewell(MessageKind::goodbye, 0, text);
}

std::expected<Hello, Unwelcome> check_hello(std::span<const std::byte> message) {
    MessageHead head;
    if (message.size() < sizeof head) {
        return std::unexpected(bad(Refusal::protocol, "its first message is too short"));
    }
    std::memcpy(&head, message.data(), sizeof head);
    if (head.magic != channel_magic) {
        return std::unexpected(bad(Refusal::protocol, "its first message is no greeting"));
    }
    if (head.kind == static_cast<std::uint32_t>(MessageKind::refusal)) {
        return std::unexpected(refused_by_peer(message));
    }
    if (head.version != channel_version) {
        return std::unexpected(
            bad(Refusal::version, number_pair("its version is", head.version, channel_version)));
    }
    Hello hello;
    if (head.kind != static_cast<std::uint32_t>(MessageKind::hello) ||
        message.size() != sizeof hello) {
        return std::unexpected(bad(Refusal::protocol, "its first message is no greeting"));
    }
    std::memcpy(&hello, message.data(), sizeof hello);
    if ((hello.required & ~features_known) != 0 || (features_required & ~hello.features) != 0) {
        return std::unexpected(bad(
            Refusal::features, number_pair("it needs features", hello.required, features_known)));
    }
    const Layout layout{hello.ring_slots, hello.arena_bytes};
    if (!layout.valid() || hello.memory_bytes != layout.bytes()) {
        return std::unexpected(bad(Refusal::sizes, "its ring or arena size is out of bounds"));
    }
    if (hello.payload_max != payload_max || hello.header_max != header_max) {
        return std::unexpected(
            bad(Refusal::sizes, number_pair("its frames carry", hello.payload_max, payload_max)));
    }
    if (hello.address_length != address_bytes) {
        return std::unexpected(bad(
            Refusal::address,
            number_pair("the bytes of its NIC address are", hello.address_length, address_bytes)));
    }
    int pid = 0;
    if (hello.name_length > nic_name_max || !parse_nic_name({hello.name, hello.name_length}, pid)) {
        return std::unexpected(bad(Refusal::protocol, "its name is malformed"));
    }
    return hello;
}

SegmentOffer make_segment_offer(std::uint64_t length, std::uint64_t cookie, bool writable) {
    return {make_head(MessageKind::segment), length, cookie, 0, 0, writable ? 1U : 0U, 0};
}

bool read_segment_offer(std::span<const std::byte> message, SegmentOffer& offer) {
    if (message.size() != sizeof offer) return false;
    std::memcpy(&offer, message.data(), sizeof offer);
    return offer.head.magic == channel_magic && offer.head.version == channel_version &&
           offer.head.kind == static_cast<std::uint32_t>(MessageKind::segment) &&
           offer.length != 0 && offer.length <= segment_bytes_max && offer.grant < grants_max &&
           offer.granted != 0 && offer.writable <= 1 && offer.zero == 0;
}

std::expected<std::string, Refusal> check_farewell(std::span<const std::byte> message) {
    Farewell farewell;
    if (message.size() != sizeof farewell) return std::unexpected(Refusal::protocol);
    std::memcpy(&farewell, message.data(), sizeof farewell);
    if (farewell.head.magic != channel_magic || farewell.head.version != channel_version ||
        (farewell.head.kind != static_cast<std::uint32_t>(MessageKind::goodbye) &&
         farewell.head.kind != static_cast<std::uint32_t>(MessageKind::refusal))) {
        return std::unexpected(Refusal::protocol);
    }
    return farewell_text(farewell);
}

std::string make_nic_name(int pid, std::uint64_t key) {
    char name[nic_name_max];
    std::snprintf(name, sizeof name, "nic-%d-%016llx", pid, static_cast<unsigned long long>(key));
    return name;
}

bool parse_nic_name(std::string_view name, int& pid) {
    if (name.size() > nic_name_max || !name.starts_with("nic-")) return false;
    name.remove_prefix(4);
    const std::size_t dash = name.find('-');
    if (dash == std::string_view::npos || dash == 0 || dash > 9) return false;
    pid = 0;
    for (const char c : name.substr(0, dash)) {
        if (c < '0' || c > '9') return false;
        pid = pid * 10 + (c - '0');
    }
    name.remove_prefix(dash + 1);
    if (name.size() != 16) return false;
    for (const char c : name) {
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
    }
    return true;
}

}  // namespace via::device::shm
