#include "lab/study/replay.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace via::lab::study {
namespace {

std::uint64_t sum_of(const std::vector<AdapterCounts>& hosts, std::uint64_t AdapterCounts::* what) {
    std::uint64_t sum = 0;
    for (const AdapterCounts& host : hosts) sum += host.*what;
    return sum;
}

using ViPairs = std::vector<std::pair<ViId, ViId>>;

/// Each NIC numbers its own; `most` of one.
ViPairs number_vis(const Trace& trace, std::uint32_t per_host, std::int64_t& most) {
    std::map<NodeId, ViId> next;
    ViPairs vis;
    for (const auto& [from, to] : trace.connections) {
        const ViId first = next[from / per_host]++;
        vis.emplace_back(first, next[to / per_host]++);
    }
    for (const auto& [host, count] : next) most = std::max<std::int64_t>(most, count);
    return vis;
}

class Player {
public:
    Player(Cluster& cluster, const Trace& trace, const ReplayQuestion& question, ViPairs vis,
           Replayed& result)
        : cluster_(cluster),
          trace_(trace),
          vis_(std::move(vis)),
          per_host_(question.per_host),
          passes_(question.passes),
          result_(result),
          arrived_(cluster.schedule()) {
        for (NodeId node = 0; node < cluster.size(); ++node) {
            cluster.host(node).tell({[this](MessageId message) {
                                         done_ = message;
                                         arrived_.notify();
                                     },
                                     [](MessageId) {}, [](ViId) { return true; }});
        }
        for (std::uint32_t n = 0; n < trace.connections.size(); ++n) {
            const auto [from, to] = trace.connections[n];
            cluster.host(host_of(from)).connect(vi_of(n, from), host_of(to), from);
            cluster.host(host_of(to)).connect(vi_of(n, to), host_of(from), to);
        }
    }

    bool ended = false;

    Task<> run() {
        while (result_.passes.size() < passes_) {
            const Pass before = so_far();
            for (const TraceEvent& event : trace_.events) co_await follow(event);
            const Pass after = so_far();
            result_.passes.push_back({Duration{after.time.ns - before.time.ns},
                                      after.translations - before.translations,
                                      after.misses - before.misses});
        }
        ended = true;
    }

private:
    Pass so_far() const {
        Pass found{result_.time};
        for (NodeId node = 0; node < cluster_.size(); ++node) {
            found.translations += cluster_.host(node).adapter().counts().translations;
            found.misses += cluster_.host(node).adapter().counts().misses;
        }
        return found;
    }
    Task<> follow(const TraceEvent& event) {
        if (event.kind == TraceKind::register_memory) ++result_.registrations;
        if (event.kind <= TraceKind::deregister_memory) co_return;
        if (event.kind == TraceKind::receive) {
            receives_[{event.connection, event.process}].push_back(&event);
        } else {
            co_await message_of(event);
        }
    }
    NodeId host_of(std::uint32_t process) const { return process / per_host_; }
    ViId vi_of(std::uint32_t connection, std::uint32_t process) const {
        const auto [first, second] = vis_[connection];
        return trace_.connections[connection].from == process ? first : second;
    }
    static Buffer piece_at(std::uint64_t address, std::uint64_t length) {
        return {static_cast<std::int64_t>(address), static_cast<std::int64_t>(length)};
    }

    /// Each piece of a message is one here: what a gathering NIC does is translations and DMAs.
    Task<> message_of(const TraceEvent& event) {
        const std::uint32_t peer = trace_.peer_of(event);
        ++result_.messages;
        result_.bytes += event.length();
        std::uint64_t target = event.remote;
        const bool rdma = event.kind >= TraceKind::rdma_write;
        const bool inside = host_of(peer) == host_of(event.process);
        result_.within_hosts += inside ? 1 : 0;
        std::vector<TracePiece> places = rdma ? std::vector<TracePiece>{} : take_receive(event);
        if (inside) co_return;
        std::uint64_t done = 0;
        for (const TracePiece& piece : event.pieces) {
            for (std::uint64_t at = 0; at < piece.length;) {
                std::uint64_t length = piece.length - at;
                std::uint64_t to = target + done;
                if (!rdma) to = place_in(places, done, length);
                if (event.kind == TraceKind::rdma_read) {
                    co_await carry(peer, event.process, event.connection,
                                   piece_at(target + done, length), piece.address + at, true);
                } else {
                    co_await carry(event.process, peer, event.connection,
                                   piece_at(piece.address + at, length), to, false);
                }
                at += length;
                done += length;
            }
        }
    }
    /// The peer's oldest receive that was posted on that connection, also later in the trace.
    std::vector<TracePiece> take_receive(const TraceEvent& event) {
        auto& waiting = receives_[{event.connection, trace_.peer_of(event)}];
        if (waiting.empty()) return {};
        const TraceEvent& receive = *waiting.front();
        waiting.pop_front();
        return receive.pieces;
    }
    /// Where that byte of a message goes, and not more than what goes there in one piece. Of a
    /// receive that is not known: nowhere in particular.
    static std::uint64_t place_in(const std::vector<TracePiece>& places, std::uint64_t offset,
                                  std::uint64_t& length) {
        for (const TracePiece& place : places) {
            if (offset < place.length) {
                length = std::min(length, place.length - offset);
                return place.address + offset;
            }
            offset -= place.length;
        }
        return offset;
    }
    Task<> carry(std::uint32_t from, std::uint32_t to, std::uint32_t connection, Buffer buffer,
                 std::uint64_t address, bool by_firmware) {
        PhysicalDescriptor descriptor;
        descriptor.vi = vi_of(connection, from);
        descriptor.process = from;
        descriptor.message = ++message_;
        descriptor.buffer = buffer;
        descriptor.own = by_firmware;
        Landing landing{false, true, true, static_cast<std::int64_t>(address), to, connection};
        descriptor.target = Target{host_of(to), vi_of(connection, to), landing};
        const Time begin = cluster_.schedule().now();
        Host& host = cluster_.host(host_of(from));
        if (by_firmware) {
            host.adapter().send_own(descriptor);
        } else {
            co_await host.send(descriptor, false);
        }
        while (done_ != message_) co_await arrived_.wait();
        result_.time.ns += (cluster_.schedule().now() - begin).ns;
    }

    Cluster& cluster_;
    const Trace& trace_;
    ViPairs vis_;
    std::uint32_t per_host_;
    std::uint32_t passes_;
    Replayed& result_;
    Signal arrived_;
    MessageId message_ = no_message;
    MessageId done_ = no_message;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<const TraceEvent*>> receives_;
};

}  // namespace

std::uint64_t Replayed::translations() const { return sum_of(hosts, &AdapterCounts::translations); }
std::uint64_t Replayed::misses() const { return sum_of(hosts, &AdapterCounts::misses); }
std::uint64_t Replayed::cold_misses() const { return sum_of(hosts, &AdapterCounts::cold_misses); }
std::uint64_t Replayed::send_misses() const { return sum_of(hosts, &AdapterCounts::send_misses); }

std::expected<Replayed, std::string> replay(const Trial& trial, const Trace& trace,
                                            const ReplayQuestion& question) {
    if (!trial.machine.has(Has::adapter) || trial.machine.has(Has::kernel))
        return std::unexpected(trial.machine.name + ": no adapter of its does all of VIA; traces " +
                               "go through machines that have one");
    const std::uint32_t hosts = (trace.processes + question.per_host - 1) / question.per_host;
    Trial wide = trial;  // with as many VIs as the trace has
    ViPairs vis = number_vis(trace, question.per_host, wide.load.vis);
    auto made = Cluster::make(wide, hosts, question.seed);
    if (!made) return std::unexpected(made.error());
    Cluster& cluster = **made;
    Replayed result;
    Player player(cluster, trace, question, std::move(vis), result);
    cluster.schedule().spawn(player.run());
    if (!cluster.schedule().run_until(player.ended, question.events_max))
        return std::unexpected("a message of the trace never arrived");
    for (NodeId node = 0; node < hosts; ++node)
        result.hosts.push_back(cluster.host(node).adapter().counts());
    result.busiest = cluster.ledger().name_of(cluster.ledger().busiest());
    return result;
}

}  // namespace via::lab::study
