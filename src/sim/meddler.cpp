#include "sim/meddler.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "wire/bytes.hpp"
#include "wire/packet.hpp"
#include "wire/sealed.hpp"

namespace via::sim {
namespace {

namespace sealed = wire::sealed;

bool has_number(const std::vector<std::byte>& bytes) {
    return bytes.size() >= sealed::text &&
           wire::get<std::uint8_t>(bytes.data() + 4) == sealed::version &&
           wire::get<std::uint32_t>(bytes.data()) == 0;
}

}  // namespace

void Meddler::act(const HostAddress& stranger) {
    const auto* const seen = network_.remembered(random_.next());
    if (seen == nullptr || seen->bytes.size() < wire::packet_length_least) return;
    HostAddress from = seen->from;
    HostAddress to = seen->to;
    Bytes bytes = seen->bytes;
    const bool has_checksum = wire::get<std::uint32_t>(bytes.data()) != 0;
    switch (random_.below(8)) {
        case 0:
        case 1:
            break;  // again, as it was
        case 2:
            change(bytes);
            break;
        case 3:
            change_header(bytes);
            break;
        case 4:
            bytes.resize(wire::packet_length_least +
                         random_.below(bytes.size() - wire::packet_length_least + 40));
            break;
        case 5:
            join(bytes);
            break;
        default:
            forge(bytes);
            return network_.inject(from, to, bytes);
    }
    if (random_.chance(20)) from = stranger;
    if (random_.chance(10)) std::swap(from, to);
    // Anybody can compute one.
    if (has_checksum)
        wire::put(bytes.data(), wire::crc32c(std::span<const std::byte>(bytes).subspan(4)));
    network_.inject(from, to, bytes);
}

/// A byte, wherever it is.
void Meddler::change(Bytes& bytes) {
    bytes[random_.below(bytes.size())] ^= static_cast<std::byte>(1 + random_.below(255));
}

/// What a packet says openly: its kind, its path, its number.
void Meddler::change_header(Bytes& bytes) {
    if (!has_number(bytes)) return change(bytes);
    const auto number = wire::get<std::uint64_t>(bytes.data() + sealed::number);
    switch (random_.below(4)) {
        case 0: {
            const auto kind = wire::get<wire::PacketKind>(bytes.data() + 5);
            wire::put(bytes.data() + 5, kind == wire::PacketKind::data ? wire::PacketKind::close
                                                                       : wire::PacketKind::data);
            return;
        }
        case 1:
            // Numbers of this key, of the next ones, and far ahead.
            return wire::put(bytes.data() + sealed::number,
                             number + 1 + random_.below(std::uint64_t{1} << random_.below(20)));
        case 2:
            return wire::put(bytes.data() + sealed::number, random_.next());
        default:
            return wire::put(bytes.data() + 8, random_.next() | 1);
    }
}

/// One's beginning before another one's end.
void Meddler::join(Bytes& bytes) {
    const auto* const other = network_.remembered(random_.next());
    constexpr std::size_t ends[] = {wire::packet_prefix_length, sealed::text,
                                    sealed::hello_message};
    const std::size_t end = ends[random_.below(3)];
    if (other->bytes.size() <= end || bytes.size() <= end) return;
    std::copy_n(other->bytes.begin(), end, bytes.begin());
}

/// What a host without a key would say of the path, and believe.
void Meddler::forge(Bytes& bytes) {
    const auto connection = wire::get<std::uint64_t>(bytes.data() + 8);
    bytes.assign(wire::connecting_length_max, {});
    const wire::ConnectingBytes packet(bytes.data(), wire::connecting_length_max);
    switch (random_.below(6)) {
        case 0:
            return bytes.resize(wire::emit_close(connection, wire::CloseReason::left, packet));
        case 1:
            return bytes.resize(
                wire::emit_refuse(connection, wire::PathRefusal::not_admitted, packet));
        case 2:
            return bytes.resize(wire::emit_unsupported(connection, packet));
        case 3:
            return bytes.resize(
                wire::emit_retry(connection, {random_.next(), random_.next()}, packet));
        case 4: {
            const wire::PathOffer offer{random_.next() | 1, 212'992, 1'000, 1'472, 9'741};
            return bytes.resize(
                wire::emit_welcome(connection, {random_.next() | 1, 1, offer}, packet));
        }
        default:
            break;
    }
    // That everything arrived, though it was not even sent.
    wire::Ack ack;
    ack.largest = 1'000'000;
    ack.count = 1;
    ack.ranges[0] = {0, 1};
    bytes.resize(wire::data_header_length +
                 wire::emit_ack_chunk(ack, bytes.data() + wire::data_header_length));
    wire::seal_data(bytes, connection, random_.below(1'000));
}

}  // namespace via::sim
