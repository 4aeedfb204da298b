// How libraries bring a message from one program to another, above VIA and a window into the other
// host's memory: protocols, each of which runs as two programs that play ping-pong.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lab/study/cluster.hpp"

namespace via::lab::study {

/// Words that one program stores into the memory of the other, which polls them.
enum class Flag : std::uint8_t { used, ready, posted, freed };

/// What protocols stand on: two programs, the words between them, and what libraries do.
class Ground {
public:
    /// The cluster has two hosts. `registers`: memory is registered for each message anew.
    Ground(Cluster& cluster, const Trial& trial, bool registers);

    Cluster& cluster() { return cluster_; }
    const Costs& costs() const { return costs_; }
    Schedule& schedule() { return cluster_.schedule(); }
    static constexpr ViId vi = 0;

    /// Time of that program: it makes an entry of a list, as for a descriptor.
    Task<> prepare(NodeId at);
    Task<> copy(NodeId at, std::int64_t bytes);
    /// Time of it and its kernel, if memory is registered for each message; else none.
    Task<> enlist(NodeId at, std::int64_t bytes);
    Task<> release(NodeId at, std::int64_t bytes);
    /// One word, behind what was stored before.
    Task<> tell(NodeId from, Flag flag);
    /// Until it was told once more than it was waited for, and was seen.
    Task<> wait_for(NodeId at, Flag flag);
    /// Stores that themselves show when they are there: each packet has a mark.
    Task<> store_marked(NodeId from, std::int64_t bytes);
    Task<> store(NodeId from, std::int64_t bytes);
    /// One thread of a library gives a message to another, which sleeps.
    Task<> hand_over(NodeId at);
    /// By descriptors.
    Task<> post(NodeId from, std::int64_t bytes);
    Task<> post_receive(NodeId at, std::int64_t bytes);
    Task<> receive(NodeId at);
    /// With a descriptor of the receiver, which it takes when all is there; else nobody hears.
    Task<> write(NodeId from, std::int64_t bytes, bool consumes);

private:
    Task<> spend(NodeId at, std::int64_t ns, Share share, const char* what);
    std::function<void()> landing(NodeId to, Flag flag);

    struct Words {
        std::array<std::uint64_t, 4> told{};
        std::array<std::uint64_t, 4> seen{};
    };
    Cluster& cluster_;
    const Costs& costs_;
    bool kernel_;
    bool dearer_locks_;
    bool registers_;
    Signal changed_;
    std::array<Words, 2> words_;
    MessageId next_ = 1;
};

class Protocol {
public:
    explicit Protocol(Ground& ground) : ground_(ground) {}
    virtual ~Protocol() = default;
    /// Before there are messages of that size.
    virtual Task<> begin(NodeId, std::int64_t) { co_return; }
    /// Both end when their program may go on.
    virtual Task<> send(NodeId from, std::int64_t size) = 0;
    virtual Task<> receive(NodeId at, std::int64_t size) = 0;

protected:
    Ground& ground_;
};

template <class Kind>
std::unique_ptr<Protocol> make_protocol(Ground& ground) {
    return std::make_unique<Kind>(ground);
}

/// Stored into the receiver's memory behind `header` bytes, in packets that show themselves that
/// they are there, and copied out of it.
template <std::int64_t header>
class StoredWhole final : public Protocol {
public:
    using Protocol::Protocol;
    Task<> send(NodeId from, std::int64_t size) override {
        co_await ground_.prepare(from);
        co_await ground_.store_marked(from, header + size);
    }
    Task<> receive(NodeId at, std::int64_t size) override {
        co_await ground_.wait_for(at, Flag::used);
        co_await ground_.copy(at, size);
    }
};

struct Way {
    std::string_view name;
    std::string_view what;
    std::unique_ptr<Protocol> (*make)(Ground&);
};
/// CHEMPI's three (003, "An optimized MPI library for VIA/SCI cards" 5.3 to 5.5), by length.
std::span<const Way> chempi_ways();
/// Those of the product's message layer, by length.
std::span<const Way> layer_ways();
/// ScaMPI's and MPI/Pro's, as 003 ("Comparing" III) tells of them.
const Way& scampi_inline();
const Way& scampi_eager();
const Way& scampi_transport();
const Way& mpipro_eager();
const Way& mpipro_long();
const Way& mpipro_tcp();

/// Half of the time of a message and its answer of the same size; a mean of some.
std::expected<double, std::string> passing_ns(const Trial& trial, const Way& way, std::int64_t size,
                                              bool registers = false);

}  // namespace via::lab::study
