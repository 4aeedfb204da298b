#include "device/sim/datagram_network.hpp"

#include <algorithm>
#include <iterator>

#include "base/assert.hpp"
#include "base/random.hpp"

namespace via::device::sim {

namespace {

constexpr std::uint32_t network_error_length =
    56;  ///< of a message of the network, as the weather sees

/// Of a datagram that it is about a message of the network quotes that much, if there is as much.
constexpr std::size_t quoted_max = 128;

/// Where it says to be from, and its first bytes: of a packet checksum, connection and number.
std::string head_of(const HostAddress& from, std::span<const std::byte> packet) {
    constexpr std::size_t head = 24;
    std::string text(reinterpret_cast<const char*>(packet.data()), std::min(packet.size(), head));
    text.append(reinterpret_cast<const char*>(from.bytes.data()), from.length);
    return text;
}

/// A few bits flipped, or the end missing.
void corrupt(std::vector<std::byte>& bytes, std::uint64_t seed) {
    if (bytes.empty()) return;
    Random random(seed);
    if (random.chance(25)) return bytes.resize(random.below(bytes.size()));
    for (auto n = random.between(1, 4); n != 0; --n)
        bytes[random.below(bytes.size())] ^= static_cast<std::byte>(1U << random.below(8));
}

}  // namespace

// Ports -------------------------------------------------------------------------------------------

NodeId DatagramNetwork::host_of(const HostAddress& address) {
    const HostAddress host = with_port(address, 0);
    const auto found = std::find(hosts_.begin(), hosts_.end(), host);
    if (found != hosts_.end()) return static_cast<NodeId>(found - hosts_.begin());
    hosts_.push_back(host);
    silent_.push_back(false);
    return static_cast<NodeId>(hosts_.size() - 1);
}

DatagramNetwork::Endpoint DatagramNetwork::end_of(const HostAddress& address) {
    return {host_of(address), port_of(address)};
}

const DatagramNetwork::Socket* DatagramNetwork::owner_of(const Endpoint& end) const {
    const auto found = std::find_if(sockets_.begin(), sockets_.end(), [&](const Socket& socket) {
        return socket.is_open && (socket.data_end == end || socket.nic_end == end);
    });
    return found == sockets_.end() ? nullptr : &*found;
}

SocketId DatagramNetwork::open(const HostAddress& nic, std::uint64_t instance,
                               std::uint16_t data_port) {
    if (data_port == 0) data_port = next_port_++;
    Socket socket;
    socket.nic = nic;
    socket.data = with_port(nic, data_port);
    socket.nic_end = end_of(nic);
    socket.data_end = end_of(socket.data);
    socket.instance = instance;
    VIA_ASSERT(owner_of(socket.data_end) == nullptr);
    for (const Endpoint& end : {socket.data_end, socket.nic_end})
        if (owner_of(end) == nullptr) forget_arrived(end);
    silent_[socket.nic_end.first] = false;
    sockets_.push_back(std::move(socket));
    return static_cast<SocketId>(sockets_.size() - 1);
}

/// What arrived and was not taken goes with the port; what still travels finds whoever is there.
void DatagramNetwork::close(SocketId id, Ending ending) {
    Socket& leaving = sockets_[id];
    VIA_ASSERT(leaving.is_open);
    const bool held = holds_host_port(id);
    leaving.is_open = false;
    leaving.listening.clear();
    forget_arrived(leaving.data_end);
    if (held) forget_arrived(leaving.nic_end);
    if (ending == Ending::silent) {
        silent_[leaving.nic_end.first] = true;
        return;
    }
    for (const auto& [when, datagram] : mailboxes_[leaving.data_end])
        if (!datagram->is_network_error)
            tell(datagram->sender, leaving.data_end.first, when.first - clock_.now(),
                 {datagram::NetworkErrorKind::port_unreachable, leaving.data, 0,
                  datagram::quoted_connection(datagram->bytes)},
                 datagram->bytes);
}

bool DatagramNetwork::holds_host_port(SocketId id) const {
    return owner_of(sockets_[id].nic_end) == &sockets_[id];
}

bool DatagramNetwork::is_silent(NodeId host) const {
    const bool lives = std::any_of(sockets_.begin(), sockets_.end(), [&](const Socket& socket) {
        return socket.is_open && socket.nic_end.first == host;
    });
    return silent_[host] && !lives;
}

void DatagramNetwork::forget_arrived(const Endpoint& end) {
    Mailbox& mailbox = mailboxes_[end];
    mailbox.erase(mailbox.begin(), mailbox.upper_bound({clock_.now(), order_}));
}

// Datagrams ---------------------------------------------------------------------------------------

void DatagramNetwork::deliver(const Endpoint& end, Time arrival,
                              std::unique_ptr<Datagram> datagram) {
    if (!datagram->is_network_error) {
        std::uint64_t& waiting = waiting_[{datagram->sender, end}];
        waiting += datagram->bytes.size();
        most_waiting_ = std::max(most_waiting_, waiting);
    }
    mailboxes_[end].emplace(std::pair{arrival, order_++}, std::move(datagram));
}

/// The network or a host has something to say to the port; on its way it meets the weather, too.
void DatagramNetwork::tell(SocketId socket, NodeId by, Duration after,
                           const datagram::NetworkError& error, std::span<const std::byte> about) {
    const Endpoint& end = sockets_[socket].data_end;
    const Fate fate = weather_.fate({by, end.first, clock_.now(), network_error_length});
    if (fate.lost || fate.corruption != 0) return;
    auto message = std::make_unique<Datagram>();
    message->is_network_error = true;
    message->network_error = error;
    const auto quoted = about.first(std::min(about.size(), quoted_max));
    message->bytes.assign(quoted.begin(), quoted.end());
    deliver(end, clock_.now() + (after + std::max(fate.delay, nanoseconds(1))), std::move(message));
}

void DatagramNetwork::send(SocketId from, const datagram::Outgoing& outgoing) {
    ++sent_;
    const Socket& socket = sockets_[from];
    if (const Meaning means = meaning(outgoing.copy()); means.asks_for_answer) {
        const Endpoint to = end_of(means.packet_at == 0 ? outgoing.to : means.destination);
        asked_.try_emplace({from, to}, clock_.now());
        const std::span packet(outgoing.bytes, outgoing.length);
        questions_.try_emplace({from, datagram::quoted_connection(packet.subspan(means.packet_at))},
                               Question{to, clock_.now()});
    }
    carry(from, outgoing, {outgoing.from_host_port ? socket.nic : socket.data, from});
}

void DatagramNetwork::pass_on(SocketId from, const Datagram& came, const HostAddress& to) {
    carry(from, {to, came.bytes.data(), static_cast<std::uint32_t>(came.bytes.size())},
          {sockets_[from].data, came.origin, came.genuine});
}

void DatagramNetwork::carry(SocketId from, const datagram::Outgoing& outgoing,
                            const Passing& passing) {
    using datagram::NetworkErrorKind;
    if (remembered_max_ != 0) {
        if (remembered_.size() == remembered_max_) remembered_.pop_front();
        remembered_.push_back({passing.source, outgoing.to, outgoing.copy()});
    }
    const NodeId here = sockets_[from].data_end.first;
    const Endpoint there = end_of(outgoing.to);
    const Fate fate = weather_.fate({here, there.first, clock_.now(), outgoing.length});
    if (watch_) watch_(from, outgoing, fate);
    // Even the shortest way takes time: nothing arrives in the turn that sent it.
    const Duration delay = std::max(fate.delay, nanoseconds(1));
    const auto say = [&](Duration after, NetworkErrorKind kind, std::uint32_t length) {
        tell(from, there.first, after,
             {kind, outgoing.to, length,
              datagram::quoted_connection({outgoing.bytes, outgoing.length})},
             {outgoing.bytes, outgoing.length});
    };
    if (reach_ && !reach_(passing.source, outgoing.to))
        return say(delay, NetworkErrorKind::host_unreachable, 0);
    if (fate.told_unreachable) say({}, NetworkErrorKind::port_unreachable, 0);
    if (fate.fits != 0) say({}, NetworkErrorKind::too_long, fate.fits);
    if (fate.lost) return;
    if (owner_of(there) == nullptr) {
        const bool known = std::any_of(sockets_.begin(), sockets_.end(), [&](const Socket& each) {
            return each.nic_end.first == there.first;
        });
        if (!known) return say(delay, NetworkErrorKind::host_unreachable, 0);
        if (!is_silent(there.first)) say(delay, NetworkErrorKind::port_unreachable, 0);
        forget_arrived(there);  // nobody takes them
    }
    const auto make = [&] {
        auto datagram = std::make_unique<Datagram>();
        datagram->from = passing.source;
        datagram->bytes = outgoing.copy();
        datagram->sender = from;
        datagram->origin = passing.origin;
        datagram->genuine = passing.genuine;
        return datagram;
    };
    auto datagram = make();
    if (fate.corruption != 0) {
        corrupt(datagram->bytes, fate.corruption);
        datagram->genuine = false;
    }
    deliver(there, clock_.now() + delay, std::move(datagram));
    if (!fate.duplicated) return;
    datagram = make();
    datagram->genuine = false;
    deliver(there, clock_.now() + std::max(fate.second_delay, nanoseconds(1)), std::move(datagram));
}

// Strangers ---------------------------------------------------------------------------------------

void DatagramNetwork::inject(const HostAddress& pretended, const HostAddress& to,
                             std::span<const std::byte> bytes) {
    const Endpoint there = end_of(to);
    if (owner_of(there) == nullptr) return;
    auto datagram = std::make_unique<Datagram>();
    datagram->from = pretended;
    datagram->bytes.assign(bytes.begin(), bytes.end());
    datagram->genuine = false;
    deliver(there, clock_.now() + nanoseconds(1), std::move(datagram));
}

void DatagramNetwork::replay(std::uint64_t pick, const HostAddress* pretended) {
    if (remembered_.empty()) return;
    const Remembered& again = *remembered(pick);
    inject(pretended != nullptr ? *pretended : again.from, again.to, again.bytes);
}

std::unique_ptr<Datagram> DatagramNetwork::take(SocketId id) {
    const auto next_of = [this](const Endpoint& end) -> Mailbox* {
        const auto found = mailboxes_.find(end);
        if (found == mailboxes_.end() || found->second.empty()) return nullptr;
        return found->second.begin()->first.first > clock_.now() ? nullptr : &found->second;
    };
    Mailbox* data = next_of(sockets_[id].data_end);
    Mailbox* host = holds_host_port(id) ? next_of(sockets_[id].nic_end) : nullptr;
    Mailbox* first =
        data == nullptr || (host != nullptr && host->begin()->first < data->begin()->first) ? host
                                                                                            : data;
    if (first == nullptr) return nullptr;
    auto arrived = first->extract(first->begin());
    std::unique_ptr<Datagram> datagram = std::move(arrived.mapped());
    datagram->came = arrived.key().first;
    datagram->to_host_port = first == host;
    if (datagram->is_network_error &&
        datagram->network_error.kind == datagram::NetworkErrorKind::port_unreachable)
        note_told_unreachable(id, datagram->network_error.to);
    return datagram;
}

Time DatagramNetwork::next_arrival(SocketId id) const {
    const auto next_of = [this](const Endpoint& end) {
        const auto found = mailboxes_.find(end);
        return found == mailboxes_.end() || found->second.empty()
                   ? Time::never()
                   : found->second.begin()->first.first;
    };
    const Time data = next_of(sockets_[id].data_end);
    return holds_host_port(id) ? earlier(data, next_of(sockets_[id].nic_end)) : data;
}

// Who listens where -------------------------------------------------------------------------------

const DatagramNetwork::Listening* DatagramNetwork::find(const Socket& socket,
                                                        const Discriminator& discriminator) const {
    const auto found =
        std::find_if(socket.listening.begin(), socket.listening.end(),
                     [&](const Listening& each) { return each.discriminator == discriminator; });
    return found == socket.listening.end() ? nullptr : &*found;
}

Status DatagramNetwork::listen(SocketId id, const Discriminator& discriminator) {
    Socket& socket = sockets_[id];
    if (const Listening* known = find(socket, discriminator)) {
        ++socket.listening[static_cast<std::size_t>(known - socket.listening.data())].count;
        return Status::success;
    }
    std::uint16_t port = 0;
    std::uint64_t instance = 0;
    if (find_listener(id, discriminator, port, instance)) return Status::error_resource;
    socket.listening.push_back({discriminator, 1});
    return Status::success;
}

void DatagramNetwork::unlisten(SocketId id, const Discriminator& discriminator) {
    std::vector<Listening>& all = sockets_[id].listening;
    const Listening* known = find(sockets_[id], discriminator);
    VIA_ASSERT(known != nullptr);
    const auto at = all.begin() + (known - all.data());
    if (--at->count == 0) all.erase(at);
}

bool DatagramNetwork::find_listener(SocketId asker, const Discriminator& discriminator,
                                    std::uint16_t& data_port, std::uint64_t& instance) const {
    for (const Socket& socket : sockets_) {
        if (!socket.is_open || socket.nic_end != sockets_[asker].nic_end ||
            find(socket, discriminator) == nullptr)
            continue;
        data_port = socket.data_end.second;
        instance = socket.instance;
        return true;
    }
    return false;
}

// For those who watch -----------------------------------------------------------------------------

void DatagramNetwork::note_heard(SocketId by, const Datagram& datagram) {
    const Meaning means = meaning(datagram.bytes);
    if (datagram.to_host_port || !means.tells_of_life) return;
    const auto packet = std::span<const std::byte>(datagram.bytes).subspan(means.packet_at);
    const HostAddress& source = means.packet_at == 0 ? datagram.from : means.source;
    // Where a duplicate, or what a stranger repeated, was faster, this one is old.
    if (!taken_.insert({by, head_of(source, packet)}).second || !datagram.genuine) return;
    // What a process answers for its host is no word of its own.
    const SocketId of = datagram.origin;
    if (source != sockets_[of].data) return;
    asked_.erase({by, sockets_[of].data_end});
    end_questions(by, sockets_[of].data_end);
    if (means.asks_for_answer)
        if (const auto asked = questions_.find({of, datagram::quoted_connection(packet)});
            asked != questions_.end())
            asked->second.is_taken = true;
    Time& heard = heard_[{by, of}];
    if (clock_.now() - heard >= gap_) gap_ends_[{by, of}] = clock_.now();
    heard = clock_.now();
    if (by != of) return;
    // The identifier of the receiving end stands there in packets of every version.
    const auto [end, is_new] =
        heard_by_itself_.try_emplace({by, datagram::quoted_connection(packet)}, clock_.now());
    if (!is_new && clock_.now() - end->second >= gap_) gap_ends_[{by, by}] = clock_.now();
    end->second = clock_.now();
}

/// `by` hears who is there: what was taken is answered by now.
void DatagramNetwork::end_questions(SocketId by, const Endpoint& to) {
    for (auto each = questions_.lower_bound({by, 0});
         each != questions_.end() && each->first.first == by;)
        each = each->second.is_taken && each->second.to == to ? questions_.erase(each)
                                                              : std::next(each);
}

bool DatagramNetwork::asks_in_vain(SocketId by, SocketId of, Duration least, Duration most) const {
    for (auto each = questions_.lower_bound({by, 0});
         each != questions_.end() && each->first.first == by; ++each) {
        const Question& question = each->second;
        const Duration since = clock_.now() - question.first;
        if (question.to == sockets_[of].data_end && !question.is_taken && since >= least &&
            since <= most)
            return true;
    }
    return false;
}

bool DatagramNetwork::is_deaf_to_itself(SocketId socket, Duration least, Duration most) const {
    for (auto end = heard_by_itself_.lower_bound({socket, 0});
         end != heard_by_itself_.end() && end->first.first == socket; ++end)
        if (const Duration silent = clock_.now() - end->second; silent >= least && silent <= most)
            return true;
    return false;
}

Time DatagramNetwork::last_gap_end(SocketId by, SocketId of) const {
    const auto found = gap_ends_.find({by, of});
    return found == gap_ends_.end() ? Time{} : found->second;
}

Time DatagramNetwork::last_heard(SocketId by, SocketId of) const {
    const auto found = heard_.find({by, of});
    return found == heard_.end() ? Time{} : found->second;
}

Time DatagramNetwork::first_asked(SocketId by, SocketId of) const {
    const auto found = asked_.find({by, sockets_[of].data_end});
    return found == asked_.end() ? Time::never() : found->second;
}

Time DatagramNetwork::last_told_unreachable(SocketId by, SocketId of) const {
    const auto found = told_unreachable_.find({by, sockets_[of].data_end});
    return found == told_unreachable_.end() ? Time{} : found->second.back();
}

bool DatagramNetwork::was_told_unreachable(SocketId by, SocketId of, Time begin, Time end) const {
    const auto found = told_unreachable_.find({by, sockets_[of].data_end});
    if (found == told_unreachable_.end()) return false;
    const auto first = std::lower_bound(found->second.begin(), found->second.end(), begin);
    return first != found->second.end() && *first <= end;
}

}  // namespace via::device::sim
