#include "sim/medium.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "device/datagram/datagram_device.hpp"
#include "device/datagram/rails_port.hpp"
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

/// Of a host's further interfaces with their number.
std::string to_text(const HostAddress& address) {
    const unsigned interface = address.bytes[1];
    return std::to_string(address.bytes[3]) +
           (interface == 0 ? "" : "/" + std::to_string(interface)) + ":" +
           std::to_string(port_of(address));
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
      networks_(parameters.datagram, random_.next()),
      network_(clock, networks_),
      giving_up_(datagram_, network_, relays_) {
    networks_.settle(network_);
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
    node.instance = options.instance;
    std::unique_ptr<device::datagram::Port> port = open_ports(node);
    const device::sim::SocketId socket = node.sockets.front();
    if (relays_) port = relays_->wrap(std::move(port), node.host, socket);
    if (sealing_) port = sealing_->seal(std::move(port), options, node.host, socket);
    return std::make_unique<device::datagram::DatagramDevice>(std::move(port), options);
}

/// Of each interface of its host one, at the same port.
std::unique_ptr<device::datagram::Port> DatagramMedium::open_ports(Node& node) {
    device::sim::SimPortOptions options = datagram_.port;
    options.data_port = node.data_port;
    std::vector<std::unique_ptr<device::datagram::Port>> ports;
    const std::uint32_t count = networks_.interfaces_of(node.host);
    for (std::uint32_t interface = 0; interface < count; ++interface) {
        options.seed = random_.next();
        options.datagram_max = networks_.datagram_max(node.host, interface);
        auto made = std::make_unique<device::sim::SimPort>(
            network_, address_of_host(node.host, interface), node.instance, options);
        options.data_port = port_of(made->data_address());
        node.ports.push_back(made.get());
        node.sockets.push_back(made->socket());
        if (interface != 0) first_sockets_[made->socket()] = node.sockets.front();
        if (count == 1) return made;
        ports.push_back(std::make_unique<InterfacePort>(std::move(made), networks_));
    }
    return std::make_unique<device::datagram::RailsPort>(std::move(ports));
}

Duration DatagramMedium::disturb(Node& node) {
    const auto happens = [&](std::uint32_t permille) { return random_.below(1000) < permille; };
    if (happens(datagram_.length_changes_permille)) {
        const auto interface = static_cast<std::uint32_t>(
            node.ports.size() == 1 ? 0 : random_.below(node.ports.size()));
        const std::uint32_t longest = networks_.datagram_max(node.host, interface);
        node.ports[interface]->set_datagram_max(static_cast<std::uint32_t>(
            random_.between(std::min(datagram_.datagram_min, longest), longest)));
    }
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
    network_.inject(stranger, any_address_of(node), std::span(bytes).first(length));
}

const HostAddress& DatagramMedium::any_address_of(const Node& node) {
    const std::size_t count = node.ports.size();
    return node.ports[count == 1 ? 0 : random_.below(count)]->data_address();
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
    node.data_port = same_port ? port_of(node.ports.front()->data_address()) : std::uint16_t{0};
    if (!crashes) return;
    for (device::sim::SimPort* port : node.ports)
        port->crash(silently ? device::sim::Ending::silent : device::sim::Ending::closed);
}

void DatagramMedium::heal() {
    networks_.heal(clock_.now());
    if (relays_) relays_->heal();
}

Duration DatagramMedium::one_way_max() const {
    return networks_.one_way_max() * (relays_ ? relays_->between() + 1 : 1) + milliseconds(2);
}

void DatagramMedium::watch(device::sim::SocketId from, const device::datagram::Outgoing& outgoing,
                           const device::sim::Fate& fate) {
    const std::vector<std::byte> bytes = outgoing.copy();
    const auto envelope = envelope_of(bytes);
    const std::size_t at = envelope ? wire::envelope_length(envelope->source.length) : 0;
    const std::span packet = std::span(bytes).subspan(at);
    const bool is_passed_on = envelope && envelope->source != network_.data_address(from);
    const auto first = first_sockets_.find(from);
    if (sealing_ && !is_passed_on)
        sealing_->record().note_sent(first == first_sockets_.end() ? from : first->second, packet);
    if (first != first_sockets_.end() && meaning_of_packet(packet).tells_of_life) ++by_other_rails_;
    if (show_) show(from, outgoing, fate, bytes);
}

void DatagramMedium::show(device::sim::SocketId from, const device::datagram::Outgoing& outgoing,
                          const device::sim::Fate& fate,
                          const std::vector<std::byte>& bytes) const {
    char packet[300];
    wire::print_packet(bytes, packet, sizeof packet);
    char line[500];
    std::snprintf(line, sizeof line, "datagram %s -> %s %u bytes%s%s%s: %s",
                  to_text(network_.data_address(from)).c_str(), to_text(outgoing.to).c_str(),
                  outgoing.length, fate.lost ? " LOST" : "",
                  fate.corruption != 0 ? " CORRUPTED" : "", fate.duplicated ? " DUPLICATED" : "",
                  packet);
    show_(line);
}

std::uint32_t DatagramMedium::payload_min() const { return payload_of_the_shortest; }

std::uint32_t DatagramMedium::payload_max() const { return networks_.datagram_max(); }

}  // namespace via::sim
