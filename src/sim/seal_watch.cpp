#include "sim/seal_watch.hpp"

#include <algorithm>
#include <vector>

#include "device/datagram/siphash.hpp"
#include "wire/bytes.hpp"
#include "wire/packet.hpp"
#include "wire/sealed.hpp"

namespace via::sim {
namespace {

using device::datagram::Incoming;
using device::datagram::Outgoing;
using Bytes = std::span<const std::byte>;

wire::PacketKind kind_of(Bytes packet) { return wire::get<wire::PacketKind>(packet.data() + 5); }

std::uint64_t connection_of(Bytes packet) { return wire::get<std::uint64_t>(packet.data() + 8); }

/// Does a key have to vouch for it?
bool wants_key(Bytes packet) {
    wire::CloseReason why{};
    switch (kind_of(packet)) {
        case wire::PacketKind::data:
        case wire::PacketKind::welcome:
        case wire::PacketKind::rails:
            return true;
        case wire::PacketKind::close:
            // Every host may say of a path that it knows none.
            return wire::parse_close(packet, why) != wire::PacketError::none ||
                   why != wire::CloseReason::unknown_path;
        default:
            return false;
    }
}

/// Its kind, its path and what it says, whatever its checksum.
std::uint64_t fingerprint_of(Bytes packet) {
    return device::datagram::siphash(
        {connection_of(packet), static_cast<std::uint64_t>(kind_of(packet))},
        packet.subspan(wire::packet_prefix_length));
}

std::vector<std::byte> whole(const Outgoing& said) {
    std::vector<std::byte> bytes = said.copy();
    if (said.body.bytes != nullptr)
        std::copy_n(said.body.bytes, said.body.length, bytes.begin() + said.body.at);
    return bytes;
}

}  // namespace

void SealRecord::note_said(const Outgoing& said) {
    const std::vector<std::byte> bytes = whole(said);
    if (wants_key(bytes)) ++said_[fingerprint_of(bytes)];
}

void SealRecord::note_heard(const Incoming& heard) {
    const Bytes bytes(heard.bytes, heard.length);
    if (bytes.size() < wire::packet_length_least || !wants_key(bytes)) return;
    // What is none is counted by the device, data of a path that it does not know is answered.
    wire::PacketPrefix prefix;
    if (!heard.authentic && (wire::parse_prefix(bytes, prefix) != wire::PacketError::none ||
                             prefix.kind == wire::PacketKind::data))
        return;
    const auto said = said_.find(fingerprint_of(bytes));
    if (said == said_.end()) return complain("what nobody said, or said once and was heard twice");
    ++heard_;
    if (--said->second == 0) said_.erase(said);
}

void SealRecord::note_sent(device::sim::SocketId from, Bytes sealed) {
    if (sealed.size() < wire::sealed::text ||
        wire::get<std::uint8_t>(sealed.data() + 4) != wire::sealed::version)
        return;
    if (const auto kind = kind_of(sealed); kind != wire::PacketKind::data &&
                                           kind != wire::PacketKind::close &&
                                           kind != wire::PacketKind::rails)
        return;
    const auto number = wire::get<std::uint64_t>(sealed.data() + wire::sealed::number);
    std::uint64_t& next = numbers_[{from, connection_of(sealed)}];
    if (number < next) complain("a packet's number that was used before");
    next = number + 1;
}

void SealRecord::note_keys(device::sim::SocketId of, const device::datagram::LoggedKeys& keys) {
    if (!keys_.insert(device::datagram::siphash({}, keys.from_us.bytes())).second)
        complain("a key that was used before");
    numbers_[{of, keys.theirs}] = 0;
}

std::size_t SealWatch::send(std::span<const Outgoing> datagrams) {
    const std::size_t taken = inner().send(datagrams);
    for (const Outgoing& said : datagrams.first(taken)) record_.note_said(said);
    return taken;
}

std::size_t SealWatch::receive(std::span<Incoming> datagrams) {
    const std::size_t came = inner().receive(datagrams);
    for (const Incoming& heard : datagrams.first(came)) record_.note_heard(heard);
    return came;
}

}  // namespace via::sim
