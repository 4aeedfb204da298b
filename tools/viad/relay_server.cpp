#include "relay_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "agent/addresses.hpp"
#include "base/address.hpp"
#include "device/udp/socket_address.hpp"

namespace via::viad {

using device::datagram::Incoming;
using device::datagram::Outgoing;
using device::udp::Descriptor;
using device::udp::SharesPort;
using relay::Forwarder;

namespace {

/// Datagrams taken off a socket in one go.
constexpr std::size_t burst_max = 64;
/// Of those that a look at one socket brings, until the next socket has its turn.
constexpr int bursts_max = 4;
/// Notices that wait to be sent; what is to be said beyond is silence then.
constexpr std::size_t notices_max = 64;

}  // namespace

RelayServer::RelayServer(relay::Ways ways, Duration polls,
                         std::unique_ptr<agent::Statistics> statistics)
    : system_(System::real()),
      forwarder_(std::move(ways)),
      polls_(polls),
      statistics_(std::move(statistics)) {}

RelayServer::~RelayServer() = default;

std::expected<std::unique_ptr<RelayServer>, std::string> RelayServer::open(
    relay::Ways ways, Duration polls, std::unique_ptr<agent::Statistics> statistics) {
    std::unique_ptr<RelayServer> server(
        new RelayServer(std::move(ways), polls, std::move(statistics)));
    if (auto opened = server->open_all(); !opened)
        return std::unexpected(std::move(opened.error()));
    return server;
}

std::expected<void, std::string> RelayServer::open_all() {
    if (forwarder_.ways().own().empty())
        return std::unexpected("relay: the table names no address of this host");
    for (const HostAddress& address : forwarder_.ways().own())
        if (auto opened = open_door(address); !opened) return opened;
    wake_ = Descriptor(system_, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (wake_.valid()) return {};
    return std::unexpected(fmt::format("relay: eventfd: {}", strerror(errno)));
}

std::expected<void, std::string> RelayServer::open_door(const HostAddress& address) {
    auto door = std::make_unique<Door>(system_, with_port(address, relay::relay_port));
    door->socket = bind_socket(system_, door->address, 0, SharesPort::no);
    if (!door->socket.valid() ||
        !set_up_socket(system_, door->socket, device::udp::is_ipv6(door->address)))
        return std::unexpected(
            fmt::format("relay: {}: {}", agent::to_text(door->address), strerror(errno)));
    door->errors.set_listener([this](std::span<const std::byte> quoted) {
        if (notices_.size() == notices_max) return;
        if (auto notice = forwarder_.tell_unreachable(quoted)) notices_.push_back(*notice);
    });
    doors_.push_back(std::move(door));
    return {};
}

RelayServer::Door* RelayServer::door_at(const HostAddress& address) {
    for (const auto& door : doors_)
        if (same_host(door->address, address)) return door.get();
    return nullptr;
}

void RelayServer::send(Door& door, std::span<const Outgoing> run) {
    if (run.empty()) return;
    no_room_ += run.size() - door.sender.send(door.socket.get(), false, run);
}

/// What leaves from one address behind another goes in one call.
void RelayServer::pass_on(std::span<Incoming> came) {
    Door* door = nullptr;
    run_.clear();
    for (const Incoming& in : came) {
        // Private memory, which nobody reads but us.
        const std::span datagram(const_cast<std::byte*>(in.bytes), in.length);
        const auto onward = forwarder_.pass_on(in.from, datagram);
        if (!onward) continue;
        Door* const next = door_at(onward->from);
        if (next != door) {
            if (door != nullptr) send(*door, run_);
            run_.clear();
            door = next;
        }
        if (next == nullptr) continue;
        run_.push_back({onward->to, in.bytes, in.length});
        streams_.note(*onward, in.length);
    }
    if (door != nullptr) send(*door, run_);
}

/// True: something came.
bool RelayServer::turn(Door& door) {
    bool any = false;
    for (int bursts = 0; bursts < bursts_max; ++bursts) {
        if (!door.receiver.has_some() && door.receiver.read(door.socket.get(), &door.habit) != 0) {
            door.errors.read(door.socket.get());
            any = true;
        }
        std::array<Incoming, burst_max> came;
        const std::size_t count = door.receiver.take(came);
        if (count == 0) break;
        any = true;
        pass_on(std::span(came).first(count));
        door.receiver.release();
    }
    send_notices();
    return any;
}

void RelayServer::send_notices() {
    for (const Forwarder::Notice& notice : std::exchange(notices_, {})) {
        const Outgoing out{notice.onward.to, notice.bytes.data(), notice.length};
        if (Door* const door = door_at(notice.onward.from)) send(*door, {&out, 1});
    }
}

void RelayServer::publish() {
    const relay::Totals& totals = forwarder_.totals();
    if (statistics_ != nullptr) {
        Counters& counters = statistics_->counters();
        const auto set = [&](Counter counter, std::uint64_t value) {
            counters.add(counter, value - counters.get(counter));
        };
        set(Counter::relayed_datagrams, totals.passed_on);
        set(Counter::relayed_bytes, totals.bytes);
        set(Counter::relayed_notices, totals.notices);
        set(Counter::relay_refused,
            totals.malformed + totals.strangers + totals.unknown + totals.going_round);
        set(Counter::relay_no_room, no_room_);
    }
    const std::lock_guard lock(mutex_);
    published_ = {totals, no_room_};
}

void RelayServer::answer_readers() {
    if (statistics_ == nullptr) return;
    statistics_->answer([this] { return agent::WaysNow{streams_.ways(), streams_.ways().size()}; });
}

RelayServer::Totals RelayServer::totals() const {
    const std::lock_guard lock(mutex_);
    return published_;
}

void RelayServer::wake() const {
    const std::uint64_t one = 1;
    // It cannot fail but for a counter that is full, and wakes then, too.
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

void RelayServer::sleep() {
    std::vector<pollfd> entries{{wake_.get(), POLLIN, 0}};
    for (const auto& door : doors_) entries.push_back({door->socket.get(), POLLIN, 0});
    if (statistics_ != nullptr) entries.push_back({statistics_->descriptor(), POLLIN, 0});
    if (poll(entries.data(), entries.size(), -1) <= 0) return;
    for (std::size_t n = 0; n < doors_.size(); ++n)
        if ((entries[n + 1].revents & POLLERR) != 0)
            doors_[n]->errors.read(doors_[n]->socket.get());
    send_notices();
}

void RelayServer::run(const std::stop_token& stop) {
    const std::stop_callback waking(stop, [this] { wake(); });
    constexpr unsigned rounds_published = 256;
    Time busy = system_.now();
    for (unsigned rounds = 0; !stop.stop_requested(); ++rounds) {
        bool any = false;
        for (const auto& door : doors_) any = turn(*door) || any;
        if (rounds % rounds_published == 0) {
            publish();
            answer_readers();
        }
        const Time now = system_.now();
        if (any) busy = now;
        if (any || now - busy < polls_) continue;
        publish();
        answer_readers();
        sleep();
        busy = system_.now();
    }
    publish();
}

}  // namespace via::viad
