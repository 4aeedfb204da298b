#include "sim/medium.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "device/datagram/datagram_device.hpp"
#include "device/sim/sim_device.hpp"
#include "device/sim/sim_port.hpp"
#include "wire/packet.hpp"
#include "wire/sealed.hpp"

namespace via::sim {

// Lossless ----------------------------------------------------------------------------------------

LosslessMedium::LosslessMedium(const Parameters& parameters, device::sim::VirtualClock& clock,
                               std::uint64_t seed, const device::sim::CarrierMaker& maker)
    : parameters_(parameters),
      weather_(seed, parameters.weather),
      fabric_(clock, weather_, parameters.fabric) {
    if (!maker) return;
    carrier_ = maker(clock, fabric_, seed);
    fabric_.carry_by(*carrier_);
}

/// In weather it is a matter of time.
bool LosslessMedium::tell_of_arrivals(std::function<void(const Node&)>&& tell) {
    if (!carrier_) return false;
    fabric_.watch([this, tell = std::move(tell)](device::sim::NodeId to) { tell(*nodes_[to]); });
    return true;
}

std::unique_ptr<device::Device> LosslessMedium::open(Node& node) {
    auto device = std::make_unique<device::sim::SimDevice>(fabric_, address_of_host(node.host));
    nodes_.resize(std::max<std::size_t>(nodes_.size(), device->node() + 1));
    nodes_[device->node()] = &node;
    if (carrier_) carrier_->attend(device->node(), node.receives);
    return device;
}

Duration LosslessMedium::one_way_max() const {
    if (carrier_) return carrier_->one_way_max();
    const device::sim::FairWeatherOptions& weather = parameters_.weather;
    return weather.delay_max + weather.jitter_max +
           nanoseconds(weather.ns_per_kilobyte * (parameters_.fabric.payload_max / 1024 + 1));
}

// Datagrams ---------------------------------------------------------------------------------------

namespace {

/// A datagram of the least length carries that much beside all headers.
constexpr std::uint32_t payload_of_the_shortest = 400;
/// A hint that a port is unreachable ends a path that is silent for this long at least.
constexpr Duration hint_patience = milliseconds(3);

bool is_sealed_data(std::span<const std::byte> bytes) {
    return bytes.size() >= wire::sealed::text &&
           bytes[4] == static_cast<std::byte>(wire::sealed::version) &&
           bytes[5] == static_cast<std::byte>(wire::PacketKind::data);
}

/// In what is for a relay, or from one: the envelope. Nothing: it is no such.
std::optional<wire::Envelope> envelope_of(std::span<const std::byte> bytes) {
    wire::Envelope envelope;
    if (wire::parse_envelope(bytes, envelope) != wire::PacketError::none) return {};
    return envelope;
}

/// What is said of no path, such as "close, I know no such path" to one who was told lies in its
/// peer's name, does not tell that the peer has the path yet.
device::sim::DatagramNetwork::Meaning meaning_of_packet(std::span<const std::byte> bytes) {
    // What is in a sealed one nobody sees; so it may ask for an answer.
    if (is_sealed_data(bytes)) return {true, true};
    wire::PacketPrefix prefix;
    if (wire::parse_prefix(bytes, prefix) != wire::PacketError::none ||
        prefix.kind != wire::PacketKind::data)
        return {false, false};
    wire::ChunkReader reader(bytes);
    wire::Chunk chunk;
    bool asks = false;
    while (reader.next(chunk))
        asks = asks || chunk.kind == wire::ChunkKind::frame ||
               chunk.kind == wire::ChunkKind::ping || chunk.kind == wire::ChunkKind::part;
    return {true, asks};
}

device::sim::DatagramNetwork::Meaning meaning_of(std::span<const std::byte> bytes) {
    const auto envelope = envelope_of(bytes);
    if (!envelope) return meaning_of_packet(bytes);
    if (envelope->kind == wire::EnvelopeKind::unreachable) return {false, false};
    const std::uint32_t at = wire::envelope_length(envelope->source.length);
    device::sim::DatagramNetwork::Meaning meaning = meaning_of_packet(bytes.subspan(at));
    meaning.packet_at = at;
    meaning.source = envelope->source;
    meaning.destination = envelope->destination;
    return meaning;
}

constexpr std::size_t forged_max = wire::data_header_length + wire::ack_length_max;

/// That far more came than the peer can have sent by its packet `number`.
std::uint32_t emit_forged(std::uint64_t connection, std::uint64_t number, std::uint64_t own_number,
                          std::span<std::byte, forged_max> bytes) {
    wire::Ack ack;
    ack.largest = number + 1'000'000;
    ack.count = 1;
    ack.ranges[0] = {0, 1};
    const std::uint32_t length = wire::data_header_length +
                                 wire::emit_ack_chunk(ack, bytes.data() + wire::data_header_length);
    wire::seal_data(bytes.first(length), connection, own_number);
    return length;
}

}  // namespace

DatagramMedium::DatagramMedium(const Parameters& parameters, device::sim::VirtualClock& clock,
                               const CryptoMaker& crypto)
    : datagram_(parameters.datagram),
      clock_(clock),
      random_(parameters.seed ^ 0xDA7A'64A3ULL),
      weather_(random_.next(), parameters.datagram.weather),
      network_(clock, weather_) {
    network_.watch_gaps(datagram_.silence);
    network_.set_reader(meaning_of);
    network_.remember(datagram_.strangers_see);
    network_.set_watch([this](device::sim::SocketId from,
                              const device::datagram::Outgoing& outgoing,
                              const device::sim::Fate& fate) { watch(from, outgoing, fate); });
    if (datagram_.relays.count != 0) relays_.emplace(datagram_, network_);
    if (datagram_.keys != KeysOf::nobody)
        sealing_.emplace(datagram_, parameters.seed, crypto, network_);
}

std::unique_ptr<device::Device> DatagramMedium::open(Node& node) {
    device::datagram::DatagramOptions options;
    do options.instance = random_.next();
    while (options.instance == 0);
    options.cookie_key = {random_.next(), random_.next()};
    options.identifier_key = {random_.next(), random_.next()};
    options.silence = datagram_.silence;
    // In half of the worlds what the port cannot keep is dropped, in others soon.
    const std::size_t kept = datagram_.port.kept_max;
    options.early_copies_max = kept % 2 == 0 ? 0 : kept * wire::packet_length_min;
    device::sim::SimPortOptions port_options = datagram_.port;
    port_options.seed = random_.next();
    port_options.data_port = node.data_port;
    auto made = std::make_unique<device::sim::SimPort>(network_, address_of_host(node.host),
                                                       options.instance, port_options);
    node.instance = options.instance;
    node.port = made.get();
    node.socket = made->socket();
    std::unique_ptr<device::datagram::Port> port = std::move(made);
    if (relays_) port = relays_->wrap(std::move(port), node.host, node.socket);
    if (sealing_) port = sealing_->seal(std::move(port), options, node.host, node.socket);
    return std::make_unique<device::datagram::DatagramDevice>(std::move(port), options);
}

Duration DatagramMedium::disturb(Node& node) {
    const auto happens = [&](std::uint32_t permille) { return random_.below(1000) < permille; };
    if (happens(datagram_.length_changes_permille))
        node.port->set_datagram_max(static_cast<std::uint32_t>(
            random_.between(datagram_.datagram_min, datagram_.port.datagram_max)));
    if (happens(datagram_.strangers_permille)) disturb_by_strangers(node);
    if (!happens(datagram_.pauses_permille)) return {};
    return nanoseconds(1 + static_cast<std::int64_t>(
                               random_.below(static_cast<std::uint64_t>(datagram_.pause_max.ns))));
}

/// They know instances (an answer tells them to anybody) and, where they see packets, all of those;
/// no keys, and no identifiers but the seen ones.
void DatagramMedium::disturb_by_strangers(const Node& node) {
    const HostAddress stranger =
        address_of_host(240 + static_cast<std::uint32_t>(random_.below(8)));
    if (sealing_ && random_.chance(70)) return sealing_->meddler().act(stranger);
    const auto drawn = random_.below(100);
    const std::uint64_t pick = random_.next();
    if (datagram_.strangers_forge && random_.chance(50)) return forge(pick);
    if (datagram_.strangers_see != 0 && drawn < 70)
        return network_.replay(pick, drawn < 35 ? &stranger : nullptr);
    std::array<std::byte, wire::connecting_length_max> bytes;
    std::uint32_t length = 0;
    if (drawn < 90) {
        wire::Hello hello;
        hello.target = node.instance;
        hello.attempt = pick | 1;
        if (random_.chance(50)) hello.cookie = {random_.next(), random_.next()};
        hello.offer = {random_.next() | 1, 212'992, 1'000, 1'472, 9'741};
        length = wire::emit_hello(pick, hello, bytes);
    } else if (drawn < 95) {
        length = wire::emit_close(pick, wire::CloseReason::left, bytes);
    } else {
        length = wire::data_header_length +
                 wire::emit_ping_chunk(bytes.data() + wire::data_header_length);
        wire::seal_data(std::span(bytes).first(length), pick, random_.below(1'000));
    }
    network_.inject(stranger, node.port->data_address(), std::span(bytes).first(length));
}

/// Data that its receiver would take badly: from an address of the stranger's own with what it has
/// seen of a path, or from a peer's address without that.
void DatagramMedium::forge(std::uint64_t pick) {
    const device::sim::DatagramNetwork::Remembered* const seen = network_.remembered(pick);
    wire::PacketPrefix prefix;
    if (seen == nullptr) return;
    if (const auto envelope = envelope_of(seen->bytes)) return forge_for_others(*seen, *envelope);
    if (wire::parse_prefix(seen->bytes, prefix) != wire::PacketError::none ||
        prefix.kind != wire::PacketKind::data)
        return;
    const std::uint64_t number = wire::ChunkReader(seen->bytes).packet_number();
    std::array<std::byte, forged_max> bytes;
    const bool knows_path = random_.chance(50);
    const std::uint32_t length = emit_forged(knows_path ? prefix.connection : random_.next() | 1,
                                             number, number + 1 + pick % 4, bytes);
    network_.inject(knows_path ? address_of_host(240) : seen->from, seen->to,
                    std::span(bytes).first(length));
}

/// The same in an envelope, to a relay or from one.
void DatagramMedium::forge_for_others(const device::sim::DatagramNetwork::Remembered& seen,
                                      const wire::Envelope& envelope) {
    const std::uint32_t at = wire::envelope_length(envelope.source.length);
    const std::span packet =
        std::span(seen.bytes).subspan(std::min<std::size_t>(at, seen.bytes.size()));
    wire::PacketPrefix prefix;
    if (wire::parse_prefix(packet, prefix) != wire::PacketError::none ||
        prefix.kind != wire::PacketKind::data)
        return;
    const std::uint64_t number = wire::ChunkReader(packet).packet_number();
    const bool knows_path = random_.chance(50);
    wire::Envelope forged = envelope;
    forged.connection = knows_path ? prefix.connection : random_.next() | 1;
    std::array<std::byte, wire::envelope_length_max + forged_max> bytes;
    wire::emit_envelope(forged, bytes.data());
    const std::uint32_t length =
        at + emit_forged(forged.connection, number, number + 1 + random_.below(4),
                         std::span(bytes).subspan(at).first<forged_max>());
    network_.inject(knows_path ? address_of_host(240) : seen.from, seen.to,
                    std::span(bytes).first(length));
}

/// A path keeps below the room that its peer told it of, but for a packet or two that ask.
bool DatagramMedium::was_flooded() const {
    const std::uint64_t paths = 2;  // who talks to itself has two
    return datagram_.calm && network_.most_waiting() > paths * (datagram_.port.receive_room +
                                                                2 * datagram_.port.datagram_max);
}

void DatagramMedium::close(Node& node) {
    const bool same_port = random_.chance(30);
    const bool crashes = random_.chance(datagram_.crash_percent);
    const bool silently = random_.chance(30);
    node.data_port = same_port ? port_of(node.port->data_address()) : std::uint16_t{0};
    if (crashes)
        node.port->crash(silently ? device::sim::Ending::silent : device::sim::Ending::closed);
}

void DatagramMedium::heal() {
    weather_.heal(clock_.now());
    if (relays_) relays_->heal();
}

/// Could it have answered? Who stood still from before there was a doubt asks when that is over.
bool DatagramMedium::was_asked(const Node& here, const Node& there) const {
    if (here.socket == there.socket) return true;  // two ends, of which either may have asked
    const Time latest{(clock_.now() - (Time{} + one_way_max() + one_way_max())).ns};
    if (network_.first_asked(here.socket, there.socket) > latest) return false;
    const Time heard = network_.last_heard(here.socket, there.socket);
    const Time doubt = heard + nanoseconds(datagram_.silence.ns / 3);
    return here.stood_still_from > doubt || here.stood_still_until <= std::max(latest, heard);
}

bool DatagramMedium::may_give_up(const Node& here, const Node& there) const {
    return !datagram_.relays.steady && is_silent(here, there);
}

/// It was silent for the whole patience, though asked, or since a hint that nobody is there.
bool DatagramMedium::is_silent(const Node& here, const Node& there) const {
    const Time now = clock_.now();
    // Of one end what it asks may be lost with a relay, of the other end later what it answers: so
    // it is heard, and has no answer for its whole patience.
    if (relays_ && Relays::are_apart(here.host, there.host) &&
        relays_->was_one_dead_since(Time{(now - Time{}).ns - datagram_.silence.ns * 2}))
        return true;
    // It may be heard, and take nothing.
    if (network_.asks_in_vain(here.socket, there.socket, datagram_.silence, datagram_.silence * 3))
        return true;
    const Time heard = network_.last_heard(here.socket, there.socket);
    if (now - heard >= datagram_.silence && was_asked(here, there)) return true;
    // Who talks to itself has two ends, which hear each other at different times.
    if (here.socket == there.socket &&
        (now - network_.last_gap_end(here.socket, there.socket) <= datagram_.silence ||
         network_.is_deaf_to_itself(here.socket, datagram_.silence, datagram_.silence * 3)))
        return true;
    // The first hint counts, until something is heard; what is on its way then is not an answer.
    const Duration there_and_back = one_way_max() + one_way_max();
    return network_.was_told_unreachable(here.socket, there.socket,
                                         Time{(heard - Time{}).ns - there_and_back.ns},
                                         Time{(now - Time{}).ns - hint_patience.ns});
}

bool DatagramMedium::gave_up_since(const Node& here, const Node& there, Time since) const {
    return is_silent(here, there) ||
           clock_.now() - network_.last_heard(here.socket, there.socket) >= datagram_.silence ||
           network_.last_gap_end(here.socket, there.socket) > since ||
           network_.last_told_unreachable(here.socket, there.socket) > since;
}

bool DatagramMedium::may_have_broken(const Node& here, const Node& there, Time since) const {
    return gave_up_since(here, there, since) || gave_up_since(there, here, since);
}

Duration DatagramMedium::one_way_max() const {
    const device::sim::LinkOptions& link = datagram_.weather.link;
    const std::int64_t waiting = link.ns_per_kilobyte * (link.queue_bytes / 1024 + 2);
    const Duration hop = link.delay_max + link.jitter_max + datagram_.port.refuse_max +
                         nanoseconds(link.ns_per_kilobyte == 0 ? 0 : waiting);
    return hop * (relays_ ? relays_->between() + 1 : 1) + milliseconds(2);
}

void DatagramMedium::watch(device::sim::SocketId from, const device::datagram::Outgoing& outgoing,
                           const device::sim::Fate& fate) {
    const std::vector<std::byte> bytes = outgoing.copy();
    if (sealing_) {
        const auto envelope = envelope_of(bytes);
        const std::uint32_t at = envelope ? wire::envelope_length(envelope->source.length) : 0;
        const bool is_passed_on = envelope && envelope->source != network_.data_address(from);
        if (!is_passed_on) sealing_->record().note_sent(from, std::span(bytes).subspan(at));
    }
    if (!show_) return;
    char packet[300];
    wire::print_packet(bytes, packet, sizeof packet);
    char line[500];
    std::snprintf(line, sizeof line, "datagram %u:%u -> %u:%u %u bytes%s%s%s: %s",
                  network_.data_address(from).bytes[3], port_of(network_.data_address(from)),
                  outgoing.to.bytes[3], port_of(outgoing.to), outgoing.length,
                  fate.lost ? " LOST" : "", fate.corruption != 0 ? " CORRUPTED" : "",
                  fate.duplicated ? " DUPLICATED" : "", packet);
    show_(line);
}

std::uint32_t DatagramMedium::payload_min() const { return payload_of_the_shortest; }

std::uint32_t DatagramMedium::payload_max() const { return datagram_.port.datagram_max; }

}  // namespace via::sim
