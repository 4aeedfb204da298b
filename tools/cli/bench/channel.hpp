// A channel: one way for two processes to exchange messages, ours or one we compare with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/link.hpp"
#include "bench/places.hpp"
#include "bench/types.hpp"

namespace via::bench {

// One side of a channel, living in its own process.
class Endpoint {
public:
    virtual ~Endpoint() = default;

    // Once, after both processes exist; both sides call it at the same time.
    virtual Status open() { return {}; }

    // One sample; both sides call it with the same arguments at the same time. Unbounded in time
    // when the other side is gone: the parent's watchdog ends it.
    virtual Result<Reading> measure(const Question& question, const Effort& effort) = 0;
};

// The parent's side: makes what the two processes will inherit.
class Channel {
public:
    explicit Channel(std::string name) : name_(std::move(name)) {}
    virtual ~Channel() = default;
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    const std::string& name() const { return name_; }

    // Of what is measured, where that is a program of others: "UCX 1.13.1"; after prepare().
    virtual std::string version() const { return {}; }

    // The question as this channel can answer it: a limit that always polls says so.
    virtual Question adapt(const Question& question) const = 0;

    // Why this channel has no answer to the adapted question; empty when it has.
    virtual std::string refuses(const Question& question) const = 0;

    // Whether it has streams in both directions at once, or from many senders.
    virtual bool goes_many_ways() const { return false; }

    // Makes sockets and shared memory for messages of up to max_size bytes, before the fork.
    virtual Status prepare(std::uint64_t max_size) = 0;

    // Closes in the parent what the children inherited.
    virtual void drop_files() {}

    // In the child of that side, once. `link` outlives the endpoint.
    virtual std::unique_ptr<Endpoint> endpoint(Link& link) = 0;

private:
    std::string name_;
};

// How our own device is to be used; the same for all questions of a run, of which `like` is any.
struct DeviceOptions {
    std::string device = "shm";
    Places places;
    Question like;
    bool exported = false;  // the arenas are segments that the other side attaches to
    std::string name{};     // asked in its plain form beside another one; else the device's
};

enum class Sort : std::uint8_t {
    kernel,  // what the kernel offers
    limit,   // of the machine, not a peer
    peer,    // a program of others, which must be installed
    ours,    // of this library, beside its devices
};

struct ChannelInfo {
    std::string_view name;
    std::string_view what;  // one line for --help
    Sort sort;
    bool between_machines;
};

// Everything that --against accepts.
const std::vector<ChannelInfo>& known_channels();
bool is_known_channel(std::string_view name);
bool goes_between_machines(std::string_view name);

// NULL for a name that is not known.
std::unique_ptr<Channel> make_comparison(std::string_view name, const Places& places = {});

// Our own device, through vipl.h.
std::unique_ptr<Channel> make_via_device(const DeviceOptions& options);

// The channels by file.
std::unique_ptr<Channel> make_pipe();
std::unique_ptr<Channel> make_unix_socket();
std::unique_ptr<Channel> make_tcp_socket(const Places& places);
std::unique_ptr<Channel> make_tcp_cubic(const Places& places);
std::unique_ptr<Channel> make_tls(const Places& places);
std::unique_ptr<Channel> make_sockets(const Places& places);
std::unique_ptr<Channel> make_udp_socket(const Places& places);
std::unique_ptr<Channel> make_udp_burst(const Places& places);
std::unique_ptr<Channel> make_line();
std::unique_ptr<Channel> make_two_copy();
std::unique_ptr<Channel> make_ring();
std::unique_ptr<Channel> make_cma();
std::unique_ptr<Channel> make_spsc();
std::unique_ptr<Channel> make_futex();
std::unique_ptr<Channel> make_memcpy();
std::unique_ptr<Channel> make_put();

}  // namespace via::bench
