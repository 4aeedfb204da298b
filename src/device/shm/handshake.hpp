// A connection that has not yet become a channel: each side sends a greeting with its memory
// attached, the one that came first. Whoever accepts is done when its own greeting is sent, the
// other one when it has received that.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "device/shm/channel.hpp"
#include "device/shm/failure.hpp"
#include "device/shm/hello.hpp"
#include "device/shm/rendezvous.hpp"
#include "device/shm/system.hpp"

namespace via::device::shm {

/// Why a handshake ended without a channel.
struct Breakdown {
    Status status;     ///< for who wanted to connect
    std::string text;  ///< empty: nothing worth telling (nobody is there)
};

class Handshake {
public:
    enum class Progress : std::uint8_t {
        waiting,     ///< for the peer's greeting: the socket will be readable
        again,       ///< the peer's queue is full: try again a little later
        introduced,  ///< introduction() is complete
    };
    using Step = std::expected<Progress, Breakdown>;

    /// We go to the NIC called `target` among those of `address`.
    static std::expected<Handshake, Breakdown> begin(System& system, const HostAddress& address,
                                                     std::string target);
    /// Somebody came to us. The socket becomes the handshake's.
    static std::expected<Handshake, Breakdown> accept(System& system, Descriptor socket);

    /// Goes on as far as it can without waiting.
    Step advance(const Rendezvous& rendezvous, const Layout& layout, const HostAddress& ours);
    /// Accepting side, last step: sends our greeting.
    std::expected<void, Breakdown> reply(const HostAddress& ours, const std::string& our_name);
    /// Tells the peer that we do not want it.
    void refuse(Refusal reason, const std::string& text);

    Introduction& introduction() { return introduction_; }
    bool accepted() const { return introduction_.accepted; }
    int socket() const { return introduction_.socket.get(); }
    std::int32_t pid() const { return introduction_.pid; }
    const std::string& target() const { return target_; }
    /// Where we go, or where the peer that came has proven to be.
    const HostAddress& address() const { return introduction_.address; }

    std::vector<std::uint64_t> cookies;  ///< of all resolve() calls that wait for this one
    Time deadline = Time::never();       ///< never: service() has not seen it yet
    Time retry = Time::never();
    bool watched = false;  ///< the device's epoll knows the socket

private:
    explicit Handshake(System& system);

    Step connect(const Rendezvous& rendezvous, const Layout& layout, const HostAddress& ours);
    Step receive(const Rendezvous& rendezvous, const Layout& layout);
    Step consider(std::span<const std::byte> message, std::span<const int> descriptors,
                  const Rendezvous& rendezvous, const Layout& layout);
    std::expected<void, Breakdown> check_address(const Hello& hello, const Rendezvous& rendezvous);
    Step prepare_reply(const Layout& layout);
    std::expected<void, Breakdown> check_credentials();
    std::expected<void, Breakdown> watch_process();
    std::expected<void, Breakdown> send_hello(const HostAddress& ours, const std::string& name);
    Breakdown turn_away(Refusal reason, const std::string& text);

    System* system_;
    Introduction introduction_;
    std::string target_;
    bool connected_ = false;
};

/// The reason to tell a peer when something failed on our side.
Refusal to_refusal(Status status);

}  // namespace via::device::shm
