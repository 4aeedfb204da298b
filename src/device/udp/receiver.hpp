// Takes datagrams off a socket: several small ones by recvmmsg, those that the kernel has joined
// (UDP_GRO) split again. Where small ones come one by one for a while, joining is switched off, and
// they are taken by recvfrom, the shortest way through the kernel.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "device/datagram/port.hpp"
#include "device/udp/buffers.hpp"
#include "device/udp/socket_address.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

class Receiver {
public:
    explicit Receiver(System& system);
    Receiver(const Receiver&) = delete;

    enum class Joining : std::uint8_t {
        on,
        ending,  ///< off; what was joined before may still come
        off,
    };
    /// How datagrams came to a socket so far, and so how it is read.
    struct Habit {
        Joining joining = Joining::on;
        bool came_before = false;    ///< the look before found something
        bool more_expected = false;  ///< behind one
        unsigned lone = 0;           ///< looks in a row that found one small datagram
        unsigned several = 0;        ///< looks in a row that found more than that
        /// Whom all comes from by now, so that nobody asks the kernel each time, which takes as
        /// long as a good part of the rest; nullptr: anybody.
        const HostAddress* only_from = nullptr;
        /// Since that is so the socket was found empty: what others sent before is none of it.
        bool was_emptied = false;

        const HostAddress* sender() const { return was_emptied ? only_from : nullptr; }
    };

    /// What came with earlier messages and was not taken yet.
    bool has_some() const { return first_ != last_; }
    std::size_t take(std::span<datagram::Incoming> datagrams);
    /// Reads the socket once; take() gives what came. 0: nothing, now. Else errno. Not before
    /// take() has given everything. nullptr: it is the host's, where questions come one by one.
    int read(int socket, Habit* habit);
    void release();

    Buffers& buffers() { return buffers_; }
    const Buffers& buffers() const { return buffers_; }

private:
    static constexpr unsigned burst_max = 8;
    static constexpr unsigned small_bytes = 4096;

    /// Looks in a row that found one small datagram, until the kernel is told not to join.
    static constexpr unsigned lone_looks = 8;
    /// More of them, until nothing that was joined before can be on its way any more.
    static constexpr unsigned ending_looks = 8;
    /// Looks in a row that found more, until it is told to join again: where two come at once now
    /// and then, a change costs more than it brings.
    static constexpr unsigned several_looks = 2;
    static constexpr std::uint32_t lone_bytes = 2048;

    /// A message of the kernel: one datagram, or several of the same length, the last one shorter.
    struct Message {
        std::uint32_t buffer = Buffers::none;
        std::uint32_t length = 0;
        std::uint32_t taken = 0;  ///< bytes
        std::uint32_t segment = 0;
        bool is_host_port = false;
        const HostAddress* from = nullptr;  ///< nullptr: the slot says it
    };
    /// What the kernel fills.
    struct Slot {
        SocketAddress from;
        iovec bytes{};
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    };

    unsigned prepare(unsigned count);
    void renew(unsigned index);
    int read_lone(int socket, Habit& habit);
    int look_while_ending(int socket, Habit& habit);
    unsigned read_messages(int socket, unsigned wanted, bool asks);
    void judge_joining(int socket, Habit& habit, unsigned count, std::uint32_t length, bool empty);
    void accept(unsigned index, std::uint32_t length, bool is_host_port, const HostAddress* from);

    System& system_;
    Buffers buffers_;
    std::array<Slot, burst_max> slots_;
    std::array<mmsghdr, burst_max> headers_{};
    std::array<Message, burst_max> messages_;
    unsigned first_ = 0;
    unsigned last_ = 0;
    std::array<std::uint32_t, burst_max> prepared_{};  ///< buffers of slots
    unsigned prepared_count_ = 0;
    std::vector<std::uint32_t> in_hand_;  ///< until release()
};

}  // namespace via::device::udp
