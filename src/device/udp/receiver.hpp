// Takes datagrams off a socket: a lone one by recvmsg, more by recvmmsg, several that the kernel
// has joined (UDP_GRO) split again.
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

    /// What came with earlier messages and was not taken yet.
    bool has_some() const { return first_ != last_; }
    std::size_t take(std::span<datagram::Incoming> datagrams);
    /// Reads the socket once; take() gives what came. 0: nothing, now. Else errno. Not before
    /// take() has given everything.
    int read(int socket, bool is_host_port);
    void release();

    Buffers& buffers() { return buffers_; }

private:
    static constexpr unsigned burst_max = 8;
    static constexpr unsigned small_bytes = 4096;

    /// A message of the kernel: one datagram, or several of the same length, the last one shorter.
    struct Message {
        std::uint32_t buffer = Buffers::none;
        std::uint32_t length = 0;
        std::uint32_t taken = 0;  ///< bytes
        std::uint32_t segment = 0;
        HostAddress from;
        bool is_host_port = false;
    };
    /// What the kernel fills.
    struct Slot {
        SocketAddress from;
        iovec bytes{};
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    };

    unsigned prepare(unsigned count);
    void renew(unsigned index);
    void accept(unsigned index, std::uint32_t length, bool is_host_port);

    System& system_;
    Buffers buffers_;
    std::array<Slot, burst_max> slots_;
    std::array<mmsghdr, burst_max> headers_{};
    std::array<Message, burst_max> messages_;
    unsigned first_ = 0;
    unsigned last_ = 0;
    std::array<std::uint32_t, burst_max> prepared_{};  ///< buffers of slots
    unsigned prepared_count_ = 0;
    bool more_expected_ = false;
    std::vector<std::uint32_t> in_hand_;  ///< until release()
};

}  // namespace via::device::udp
