#include "lab/study/passing.hpp"

#include <algorithm>
#include <utility>

namespace via::lab::study {
namespace {

constexpr std::int64_t flag_bytes = 4;
constexpr std::int64_t mark_bytes = 4;           // of a packet that shows that it is there
constexpr std::int64_t shared_memory = 1 << 20;  // where the other one's buffers begin
constexpr std::int64_t flag_words = 1 << 16;     // and its words
constexpr std::uint64_t passing_events_max = 40'000'000;
constexpr int passing_rounds = 4;

struct PingPong {
    Cluster& cluster;
    Protocol& protocol;
    std::int64_t size;
    Time begin{};
    double mean_ns = 0;
    bool ended = false;
    int ready = 0;

    Task<> first() {
        co_await protocol.begin(0, size);
        ++ready;
        while (ready < 2) co_await cluster.schedule().sleep(microseconds(10));
        for (int n = -1; n < passing_rounds; ++n) {
            if (n == 0) begin = cluster.schedule().now();
            co_await protocol.send(0, size);
            co_await protocol.receive(0, size);
        }
        mean_ns = static_cast<double>((cluster.schedule().now() - begin).ns) / (2 * passing_rounds);
        ended = true;
    }
    Task<> second() {
        co_await protocol.begin(1, size);
        ++ready;
        for (int n = -1; n < passing_rounds; ++n) {
            co_await protocol.receive(1, size);
            co_await protocol.send(1, size);
        }
    }
};

}  // namespace

Ground::Ground(Cluster& cluster, const Trial& trial, bool registers)
    : cluster_(cluster),
      costs_(trial.machine.costs),
      kernel_(trial.machine.has(Has::kernel)),
      dearer_locks_(kernel_ && trial.design.find("processors")->second == "2" &&
                    !trial.without.locks),
      registers_(registers),
      changed_(cluster.schedule()) {}

/// A machine without an adapter has its processor within; its time is time all the same.
Task<> Ground::spend(NodeId at, std::int64_t ns, Share share, const char* what) {
    if (cluster_.has_hosts())
        co_await cluster_.host(at).spend(Duration{ns}, {share, what});
    else
        co_await schedule().sleep(Duration{ns});
}

Task<> Ground::prepare(NodeId at) {
    return spend(at, costs_.user_post, Share::user, "make an entry");
}

Task<> Ground::copy(NodeId at, std::int64_t bytes) {
    return spend(at, time_of(bytes, costs_.copy).ns, Share::copy, "copy to the program");
}

Task<> Ground::enlist(NodeId at, std::int64_t bytes) {
    const std::int64_t pages = (bytes + costs_.page - 1) / costs_.page;
    if (registers_)
        co_await spend(at, costs_.miss_serve + pages * costs_.miss_pin, Share::kernel,
                       "register memory");
}

Task<> Ground::release(NodeId at, std::int64_t bytes) {
    const std::int64_t pages = (bytes + costs_.page - 1) / costs_.page;
    if (registers_)
        co_await spend(at, costs_.system_call + pages * costs_.miss_unpin, Share::kernel,
                       "deregister memory");
}

std::function<void()> Ground::landing(NodeId to, Flag flag) {
    return [this, to, flag] {
        ++words_[to].told[static_cast<std::size_t>(flag)];
        changed_.notify();
    };
}

Task<> Ground::tell(NodeId from, Flag flag) {
    const NodeId to = 1 - from;
    const std::int64_t place = flag_words + static_cast<std::int64_t>(flag) * costs_.stream;
    co_await cluster_.window(from).barrier(no_message);
    co_await cluster_.window(from).store(to, {place, flag_bytes}, no_message, landing(to, flag));
}

Task<> Ground::wait_for(NodeId at, Flag flag) {
    const auto which = static_cast<std::size_t>(flag);
    while (words_[at].told[which] == words_[at].seen[which]) co_await changed_.wait();
    ++words_[at].seen[which];
    co_await spend(at, costs_.user_poll, Share::user, "poll a word");
}

Task<> Ground::store(NodeId from, std::int64_t bytes) {
    return cluster_.window(from).store(1 - from, {shared_memory, bytes}, no_message);
}

Task<> Ground::store_marked(NodeId from, std::int64_t bytes) {
    const std::int64_t room = costs_.stream - mark_bytes;
    const std::int64_t marks = (bytes + room - 1) / room * mark_bytes;
    co_await cluster_.window(from).store(1 - from, {shared_memory, bytes + marks}, no_message,
                                         landing(1 - from, Flag::used));
}

Task<> Ground::hand_over(NodeId at) {
    const std::int64_t lock = costs_.lock + (dearer_locks_ ? costs_.lock_smp : 0);
    co_await spend(at, costs_.system_call, Share::system_call, "wake the other thread");
    co_await spend(at, lock + costs_.process_switch, Share::kernel, "the other thread goes on");
}

Task<> Ground::post(NodeId from, std::int64_t bytes) {
    return cluster_.station(from).post_send(vi, {0, bytes}, next_++);
}

Task<> Ground::post_receive(NodeId at, std::int64_t bytes) {
    return cluster_.station(at).post_receive(vi, {0, bytes});
}

Task<> Ground::receive(NodeId at) { co_await cluster_.station(at).receive(vi, 1); }

Task<> Ground::write(NodeId from, std::int64_t bytes, bool consumes) {
    PhysicalDescriptor descriptor;
    descriptor.vi = vi;
    descriptor.message = next_++;
    descriptor.buffer = {0, bytes};
    descriptor.target = Target{cluster_.bearer(1 - from).node(), vi, {consumes, true, consumes, 0}};
    return cluster_.bearer(from).send(descriptor, false);
}

std::expected<double, std::string> passing_ns(const Trial& trial, const Way& way, std::int64_t size,
                                              bool registers) {
    auto made = Cluster::make(trial, 2, 1);
    if (!made) return std::unexpected(made.error());
    Cluster& cluster = **made;
    cluster.connect(1);
    Ground ground(cluster, trial, registers);
    const std::unique_ptr<Protocol> protocol = way.make(ground);
    PingPong game{cluster, *protocol, size};
    cluster.schedule().spawn(game.first());
    cluster.schedule().spawn(game.second());
    if (!cluster.schedule().run_until(game.ended, passing_events_max))
        return std::unexpected(std::string(way.name) + ": a message never arrived");
    return game.mean_ns;
}

}  // namespace via::lab::study
