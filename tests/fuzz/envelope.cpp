// Datagrams of strangers at a relay, and at a host that believes a relay: whatever is passed on is
// what emit makes, is as long as it was, and goes where the table says. The first byte says from
// whom it comes, and whether the checksum is made right.
#include <array>
#include <charconv>
#include <cstring>
#include <vector>

#include "input.hpp"
#include "relay/forwarder.hpp"
#include "wire/envelope.hpp"
#include "wire/packet.hpp"

using namespace via;

namespace {

HostAddress address(std::uint8_t host, std::uint16_t port) {
    HostAddress address;
    address.length = 6;
    address.bytes = {10, 0, 0, host};
    return with_port(address, port);
}

relay::Ways ways() {
    const auto read = relay::Ways::parse(
        "way 2 1 1 9\nway 2 2 2 0\nway 3 3 3 0\nway 3 4 4 9\nway 3 5 4 18\nrelay 4\n", "table",
        [](std::string_view text) -> std::optional<HostAddress> {
            return address(static_cast<std::uint8_t>(text.front() - '0'), 0);
        });
    fuzz::require(read.has_value(), "the table is good");
    return *read;
}

void check(relay::Forwarder& forwarder, const HostAddress& from, std::vector<std::byte> datagram) {
    const std::vector<std::byte> before = datagram;
    const auto onward = forwarder.pass_on(from, datagram);
    fuzz::require(onward.has_value() || datagram == before, "what is dropped is left alone");
    if (!onward) return;
    wire::Envelope was;
    wire::Envelope is;
    fuzz::require(wire::parse_envelope(before, was) == wire::PacketError::none &&
                      wire::parse_envelope(datagram, is) == wire::PacketError::none,
                  "only envelopes are passed on");
    fuzz::require(is.hops + 1 == was.hops, "one relay less may pass it on");
    std::array<std::byte, wire::envelope_length_max> again;
    const std::uint32_t length = wire::emit_envelope(is, again.data());
    fuzz::require(std::memcmp(again.data(), datagram.data(), length) == 0,
                  "what is accepted is what emit makes");
    fuzz::require(std::equal(before.begin() + length, before.end(), datagram.begin() + length,
                             datagram.end()),
                  "the packet is as it was");
    fuzz::require(from == was.source || from == address(4, relay::relay_port),
                  "hosts speak for themselves");
    const std::uint8_t to = onward->to.bytes[3];
    fuzz::require(onward->to.length == 6 && (to == 1 || to == 2 || to == 3 || to == 4),
                  "it goes where the table says");
    fuzz::require(to == 4 || onward->to == was.destination, "the last one gets it at its port");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static relay::Forwarder forwarder(ways());
    fuzz::Input input(data, size);
    const std::uint8_t how = input.byte();
    const auto given = std::as_bytes(input.bytes(size));
    std::vector<std::byte> datagram(given.begin(), given.end());
    if (how % 2 == 1 && datagram.size() >= wire::envelope_length(6)) {
        // Its own number of relays again, and with that its checksum.
        const auto each = static_cast<std::uint8_t>(datagram[7]);
        if (each == 6 || (each == 18 && datagram.size() >= wire::envelope_length(18)))
            wire::set_hops(datagram, static_cast<std::uint8_t>(datagram[6]));
    }
    datagram.shrink_to_fit();
    const HostAddress source = datagram.size() >= 22 ? [&] {
        HostAddress said = address(0, 0);
        std::memcpy(said.bytes.data(), datagram.data() + 16, 6);
        return said;
    }()
                                                     : address(1, 700);
    check(forwarder, how % 4 < 2 ? source : address(4, relay::relay_port), datagram);
    if (const auto notice = forwarder.tell_unreachable(datagram)) {
        wire::Envelope said;
        fuzz::require(wire::parse_envelope(std::span(notice->bytes).first(notice->length), said) ==
                          wire::PacketError::none,
                      "a notice is an envelope");
        fuzz::require(notice->length <= datagram.size(), "it is no longer than what it is about");
    }
    return 0;
}
