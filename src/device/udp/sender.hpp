// Gives datagrams to sockets, as few calls as it takes: datagrams of equal length to one address
// are one message that kernel or interface cuts (UDP_SEGMENT), several messages one sendmmsg.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "device/datagram/port.hpp"
#include "device/udp/ethernet_model.hpp"
#include "device/udp/network_errors.hpp"
#include "device/udp/socket_address.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

class Sender {
public:
    /// `scope`: as in to_socket().
    Sender(System& system, NetworkErrors& network_errors, unsigned scope)
        : system_(system), network_errors_(network_errors), scope_(scope) {}
    Sender(const Sender&) = delete;

    /// All through one socket, in order. Returns how many were taken; fewer: the socket has no room
    /// now. What cannot be sent for another reason counts as taken.
    /// `connected`: the socket is, to where all of them go; no route is looked up then.
    std::size_t send(int socket, bool connected, std::span<const datagram::Outgoing> datagrams);
    /// All as frames like `model`, through a packet socket that is bound to the interface, in
    /// order. Returns how many were taken; fewer: the next one cannot go so, errno says why.
    std::size_t send_frames(int socket, const EthernetModel& model,
                            std::span<const datagram::Outgoing> datagrams);
    /// One was too long for our own interface since the last question.
    bool met_too_long() { return std::exchange(met_too_long_, false); }

private:
    static constexpr std::size_t messages_max = 16;
    static constexpr std::size_t datagrams_max = 64;  ///< of a burst; also what the kernel cuts
    /// Bytes of a message that is cut.
    static constexpr std::size_t joined_bytes_max = 65000;

    /// Of a lone datagram that is copied behind its frame's head.
    static constexpr std::size_t copied_max = 2048;

    enum class Result : std::uint8_t { sent, no_room };

    std::size_t gather(std::span<const datagram::Outgoing> datagrams,
                       const EthernetModel* model = nullptr);
    std::size_t run_length(std::span<const datagram::Outgoing> datagrams) const;
    msghdr& begin_message(std::size_t index, std::size_t datagrams);
    std::size_t pass(std::size_t& done, int count) const;
    void fill(std::size_t message, std::span<const datagram::Outgoing> run);
    void fill_frame(std::size_t message, const EthernetModel& model,
                    std::span<const datagram::Outgoing> run);
    void add_pieces(std::span<const datagram::Outgoing> run, msghdr& header);
    std::size_t send_gathered(int socket, std::span<const datagram::Outgoing> datagrams,
                              bool& no_room);
    Result send_joined(int socket, std::span<const datagram::Outgoing> run, mmsghdr& message,
                       std::size_t& taken);
    bool give(int socket, const datagram::Outgoing& datagram);
    Result send_one(int socket, const datagram::Outgoing& datagram);
    void lose(const datagram::Outgoing& datagram, int error);

    System& system_;
    NetworkErrors& network_errors_;
    unsigned scope_;
    bool joins_ = true;  ///< the kernel cuts messages for us
    bool met_too_long_ = false;
    bool names_ = true;  ///< each message says where it goes; of the present send()

    struct Message {
        SocketAddress to;
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control{};
        std::size_t datagrams = 0;
        std::array<std::byte, EthernetModel::head_max> head{};  ///< of a frame
    };
    std::array<Message, messages_max> messages_;
    std::array<mmsghdr, messages_max> headers_{};
    std::array<iovec, datagrams_max + messages_max> pieces_{};
    std::size_t piece_count_ = 0;
    std::size_t gathered_ = 0;  ///< messages
};

}  // namespace via::device::udp
