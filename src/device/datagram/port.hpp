// What carries datagrams: sockets, or a simulated network. Datagrams may be dropped,
// duplicated, corrupted and reordered; whatever is to be done about that is done above, by
// DatagramDevice.
//
// Threads: every call is made by the holder of the NIC's turn. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/address.hpp"
#include "base/status.hpp"
#include "base/time.hpp"
#include "device/device.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram {

/// One datagram to be sent. The bytes are the caller's and are read before send() returns.
struct Outgoing {
    HostAddress to;  ///< host and port that datagrams go to
    const std::byte* bytes = nullptr;
    std::uint32_t length = 0;
    bool from_host_port = false;  ///< an answer of the one who answers for the whole host
    /// It goes where the one before it in the burst goes, is as long, and lies right behind it.
    bool follows = false;
    /// Bytes of it that still lie where the program has them; only for ports that authenticate().
    /// It may write to them meanwhile.
    wire::Body body{};

    /// For media that keep one.
    std::vector<std::byte> copy() const { return {bytes, bytes + length}; }
};

/// One datagram that came. The bytes are private memory.
struct Incoming {
    HostAddress from;
    const std::byte* bytes = nullptr;
    std::uint32_t length = 0;
    std::uint32_t buffer = 0;   ///< for keep()
    bool to_host_port = false;  ///< it came to the port of the whole host
    bool authentic = false;     ///< the port knows that the peer sent it so: it has no checksum
};

enum class NetworkErrorKind : std::uint8_t {
    port_unreachable,  ///< the host says that nobody takes datagrams there
    host_unreachable,  ///< the network knows no way; it may come back
    no_way,            ///< nor does this host itself, which is not forged; it may come back
    too_long,          ///< datagrams longer than `length` do not go through in one piece
};

/// What the network told of datagrams that we sent. It may be forged, but for what our own host
/// says: a hint, never a proof.
struct NetworkError {
    NetworkErrorKind kind{};
    HostAddress to;
    std::uint32_t length = 0;
    /// In the datagram that it is about, as far as that was quoted; 0: it was not.
    std::uint64_t connection = 0;
    bool is_ours = false;  ///< our own host says so

    /// Only who saw a datagram can quote its identifier.
    bool is_of(std::uint64_t identifier) const {
        return is_ours || (connection != 0 && connection == identifier);
    }
};

/// The identifier in the beginning of a datagram; 0: that is too short.
inline std::uint64_t quoted_connection(std::span<const std::byte> datagram) {
    constexpr std::size_t at = 8;
    std::uint64_t connection = 0;
    if (datagram.size() >= at + sizeof connection)
        std::memcpy(&connection, datagram.data() + at, sizeof connection);
    return connection;
}
constexpr std::size_t quoted_length_least = 16;

class Port {
public:
    virtual ~Port() = default;

    /// Of the NIC (VIPL 1.4): the host, and the port at which it answers for all its processes.
    virtual const HostAddress& nic_address() const = 0;
    /// Where this NIC itself takes datagrams.
    virtual const HostAddress& data_address() const = 0;
    // Of a NIC in several networks (rails_port.hpp)
    /// How many; at least 1.
    virtual std::uint32_t rails() const { return 1; }
    /// Where it takes datagrams in that one; in the first as data_address().
    virtual const HostAddress& rail_address(std::uint32_t /*rail*/) const { return data_address(); }
    /// In which network that host is met.
    virtual std::uint32_t rail_to(const HostAddress& /*host*/) const { return 0; }
    /// The relay that datagrams to that host leave for now, or the host itself.
    virtual HostAddress next_to(const HostAddress& host) const { return host; }
    /// Is that host in the network of our interface, with no router between?
    virtual bool is_near(const HostAddress& /*host*/) const { return false; }

    /// Bytes of the longest datagram that our own interface carries in one piece, now.
    virtual std::uint32_t datagram_max() const = 0;
    /// Bytes that wait for us without loss while we do not look.
    virtual std::uint32_t receive_room() const = 0;
    /// The present moment of a monotonic clock. Cheap.
    virtual Time now() = 0;
    /// After a receive() that found nothing: when that was, which it may know already.
    virtual Time moment() { return now(); }

    /// What it sends of paths carries a tag: data packets need no checksum, and their payloads need
    /// not be copied before send().
    virtual bool authenticates() const { return false; }
    /// Sends in order. Returns how many were taken; fewer than all: the others not now, and
    /// has_room() says when. What cannot be sent for another reason counts as taken and lost.
    virtual std::size_t send(std::span<const Outgoing> datagrams) = 0;
    /// A probe timeout: what goes there may not come. After several the surest of several ways is
    /// next. `arrived`: when the newest of what is known to have come there was given to send(), or
    /// a bit before.
    virtual void doubt(const HostAddress& /*to*/, Time /*arrived*/) {}
    /// After send() took less than all: may it take more now? May make a system call.
    virtual bool has_room() = 0;

    /// The path that we know by that identifier is over: nothing more comes for it, and what is to
    /// be said of its end follows at once. For ports that know paths.
    virtual void forget(std::uint64_t /*ours*/) {}

    /// Takes up to datagrams.size() of them. Valid until release(), but for those in kept buffers.
    virtual std::size_t receive(std::span<Incoming> datagrams) = 0;
    /// When the first of those that receive() gave last came; never(): that is not known.
    virtual Time came() const { return Time::never(); }
    virtual void release() = 0;
    /// The buffer's bytes stay until let_go(). Calls nest by count. False: too many are kept.
    virtual bool keep(std::uint32_t buffer) = 0;
    virtual void let_go(std::uint32_t buffer) = 0;
    /// Buffers that may still be kept, besides those that are.
    virtual std::uint32_t keeps_left() const = 0;
    /// Is there something to receive? May make a system call.
    virtual bool has_work() = 0;
    /// False: none.
    virtual bool next_network_error(NetworkError& error) = 0;

    // Who listens where, among the processes of this host -----------------------------------------
    /// error_resource: another process listens to it.
    virtual Status listen(const Discriminator& discriminator) = 0;
    virtual void unlisten(const Discriminator& discriminator) = 0;
    /// Where the process listens; false: none does. Asked for datagrams that came to the host's
    /// port. `instance` is what that process was opened with.
    virtual bool find_listener(const Discriminator& discriminator, std::uint16_t& data_port,
                               std::uint64_t& instance) = 0;

    /// As in device.hpp. service(): takes over the host's port if nobody has it, and the like.
    virtual void service(Time now) = 0;
    virtual void arm(Sleep sleep) = 0;
    virtual int wait_handle() const = 0;
    virtual std::size_t wake_descriptors(std::span<WakeDescriptor> /*descriptors*/) const {
        return 0;
    }
    /// When service() is due even if nothing happens; never() if it is not.
    virtual Time next_deadline() const = 0;
};

}  // namespace via::device::datagram
