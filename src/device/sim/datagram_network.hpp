// The network between simulated ports: one per world. Datagrams go from address to address, in any
// order, and the weather decides what becomes of each. Hosts have one address for all their
// processes, and each process a port of its own there; links, as the weather knows them, are
// between hosts, numbered as they appeared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/datagram/port.hpp"
#include "device/sim/virtual_clock.hpp"
#include "device/sim/weather.hpp"

namespace via::device::sim {

/// An open port; numbers are never used again.
using SocketId = std::uint32_t;

/// How a port ends.
enum class Ending : std::uint8_t {
    closed,  ///< its host goes on and answers that nobody is there
    silent,  ///< the host is gone, and answers nothing
};

/// What travels: bytes, or what the network itself has to say, with the beginning of the bytes that
/// it is about.
struct Datagram {
    HostAddress from;
    std::vector<std::byte> bytes;
    bool to_host_port = false;
    bool is_network_error = false;
    datagram::NetworkError network_error{};
    Time came{};  ///< once it has arrived
    // For those who watch
    SocketId sender = 0;
    SocketId origin = 0;  ///< the sender, or for whom it was passed on
    bool genuine = true;  ///< not corrupted, and not a duplicate
};

class DatagramNetwork {
public:
    /// Clock and weather outlive the network, which outlives its ports.
    DatagramNetwork(VirtualClock& clock, Weather& weather) : clock_(clock), weather_(weather) {}

    VirtualClock& clock() { return clock_; }
    const VirtualClock& clock() const { return clock_; }
    /// Its number to the weather; a host that was not known yet has the next one from now on.
    NodeId host_of(const HostAddress& address);

    // Ports ---------------------------------------------------------------------------------------
    /// `data_port` 0: one that nobody had yet. Another one may be that of a port that is closed:
    /// what still travels to it arrives.
    SocketId open(const HostAddress& nic, std::uint64_t instance, std::uint16_t data_port);
    void close(SocketId socket, Ending ending);
    const HostAddress& data_address(SocketId socket) const { return sockets_[socket].data; }
    /// Of the open ports with that NIC address the one that was opened first.
    bool holds_host_port(SocketId socket) const;

    // Datagrams -----------------------------------------------------------------------------------
    void send(SocketId from, const datagram::Outgoing& outgoing);
    /// What `came` to `from` goes on to `to`. To those who watch it stays a word of who made it.
    void pass_on(SocketId from, const Datagram& came, const HostAddress& to);
    /// Which hosts are in a common network, if not all. What is for one in no network of its
    /// sender's is lost, and the sender told.
    using Reach = std::function<bool(const HostAddress& from, const HostAddress& to)>;
    void set_reach(Reach reach) { reach_ = std::move(reach); }
    /// The next one that has arrived by now, or nothing.
    std::unique_ptr<Datagram> take(SocketId socket);
    /// When the next one arrives; never() if none is on its way.
    Time next_arrival(SocketId socket) const;

    // Strangers -----------------------------------------------------------------------------------
    /// Keeps the last `count` datagrams that were sent, for replay().
    void remember(std::size_t count) { remembered_max_ = count; }
    /// A datagram that was sent once comes again now, from the same address or from `pretended`.
    /// `pick` chooses one. Nothing happens while there is none.
    void replay(std::uint64_t pick, const HostAddress* pretended);
    struct Remembered {
        HostAddress from;
        HostAddress to;
        std::vector<std::byte> bytes;
    };
    /// One that was sent; nullptr while there is none. Stays good until the next one is sent.
    const Remembered* remembered(std::uint64_t pick) const {
        return remembered_.empty() ? nullptr : &remembered_[pick % remembered_.size()];
    }
    /// A datagram that claims to be from `pretended`.
    void inject(const HostAddress& pretended, const HostAddress& to,
                std::span<const std::byte> bytes);

    // Who listens where ---------------------------------------------------------------------------
    Status listen(SocketId socket, const Discriminator& discriminator);
    void unlisten(SocketId socket, const Discriminator& discriminator);
    bool find_listener(SocketId asker, const Discriminator& discriminator, std::uint16_t& data_port,
                       std::uint64_t& instance) const;

    // For those who watch -------------------------------------------------------------------------
    /// What a datagram means to those who talk; without a reader each means both, and is a packet.
    struct Meaning {
        bool tells_of_life = true;
        bool asks_for_answer = true;
        // Of one that is passed on for others
        std::uint32_t packet_at = 0;  ///< where the packet in it begins; 0: it is one itself
        HostAddress source{};
        HostAddress destination{};
    };
    using Reader = std::function<Meaning(std::span<const std::byte> bytes)>;
    void set_reader(Reader reader) { reader_ = std::move(reader); }
    void note_heard(SocketId by, const Datagram& datagram);
    /// It was taken by the program, or dropped for want of room.
    void note_gone(SocketId by, const Datagram& datagram) {
        const Socket& socket = sockets_[by];
        waiting_[{datagram.sender, datagram.to_host_port ? socket.nic_end : socket.data_end}] -=
            datagram.bytes.size();
    }
    /// When `by` took a genuine datagram of `of` last that tells of life and was new to it, a
    /// question to its host apart.
    Time last_heard(SocketId by, SocketId of) const;
    /// Since `by` heard `of` last: when it asked first for an answer; never(): it did not.
    Time first_asked(SocketId by, SocketId of) const;
    /// When a silence of at least that length, of `of` at `by`, ended last; 0: none did.
    void watch_gaps(Duration length) { gap_ = length; }
    Time last_gap_end(SocketId by, SocketId of) const;
    /// Of the ends of paths that a process has to itself: does one hear nothing for `least` or
    /// longer, but for `most` at most?
    bool is_deaf_to_itself(SocketId socket, Duration least, Duration most) const;
    /// Is there a path on which nothing that `by` asked of `of` was taken there for `least` or
    /// longer, but for `most` at most? Since then it may have heard it, but has no answer.
    bool asks_in_vain(SocketId by, SocketId of, Duration least, Duration most) const;
    /// `by` is told, truly or not, that nobody takes datagrams at that address. What the network
    /// says itself is known.
    void note_told_unreachable(SocketId by, const HostAddress& of) {
        told_unreachable_[{by, end_of(of)}].push_back(clock_.now());
    }
    /// When `by` was told so last of `of`'s address.
    Time last_told_unreachable(SocketId by, SocketId of) const;
    /// The same: was it told so at any moment from `begin` to `end`?
    bool was_told_unreachable(SocketId by, SocketId of, Time begin, Time end) const;
    /// Datagrams, without those that were passed on.
    std::uint64_t sent() const { return sent_; }
    /// The most bytes that were sent by one socket to one port and not gone there, ever. Exact
    /// while no port is closed.
    std::uint64_t most_waiting() const { return most_waiting_; }
    /// Hears of every datagram that is sent, and what becomes of it.
    using Watch = std::function<void(SocketId from, const datagram::Outgoing&, const Fate&)>;
    void set_watch(Watch watch) { watch_ = std::move(watch); }

private:
    /// Host and port.
    using Endpoint = std::pair<NodeId, std::uint16_t>;
    using Mailbox = std::map<std::pair<Time, std::uint64_t>, std::unique_ptr<Datagram>>;
    struct Listening {
        Discriminator discriminator;
        std::uint32_t count;
    };
    struct Socket {
        HostAddress nic;
        HostAddress data;
        Endpoint nic_end;
        Endpoint data_end;
        std::uint64_t instance = 0;
        bool is_open = true;
        std::vector<Listening> listening;
    };

    Meaning meaning(std::span<const std::byte> bytes) const {
        return reader_ ? reader_(bytes) : Meaning{};
    }
    Endpoint end_of(const HostAddress& address);
    const Socket* owner_of(const Endpoint& end) const;
    bool is_silent(NodeId host) const;
    /// What is on its way, before the weather decides.
    struct Passing {
        HostAddress source{};
        SocketId origin = 0;
        bool genuine = true;
    };
    void carry(SocketId from, const datagram::Outgoing& outgoing, const Passing& passing);
    void deliver(const Endpoint& end, Time arrival, std::unique_ptr<Datagram> datagram);
    void tell(SocketId socket, NodeId by, Duration after, const datagram::NetworkError& error,
              std::span<const std::byte> about);
    void forget_arrived(const Endpoint& end);
    const Listening* find(const Socket& socket, const Discriminator& discriminator) const;

    VirtualClock& clock_;
    Weather& weather_;
    std::vector<HostAddress> hosts_;  ///< with port 0
    std::vector<bool> silent_;        ///< hosts that answer nothing; ends with the next open()
    std::vector<Socket> sockets_;
    std::map<Endpoint, Mailbox> mailboxes_;
    std::map<std::pair<SocketId, SocketId>, Time> heard_;
    std::map<std::pair<SocketId, Endpoint>, Time> asked_;
    struct Question {
        Endpoint to;
        Time first{};  ///< that has no answer
        bool is_taken = false;
    };
    /// By who asks, and the identifier by which the other end knows the path.
    std::map<std::pair<SocketId, std::uint64_t>, Question> questions_;
    void end_questions(SocketId by, const Endpoint& to);
    std::set<std::pair<SocketId, std::string>> taken_;  ///< head of each that tells of life
    std::map<std::pair<SocketId, SocketId>, Time> gap_ends_;
    /// The same of processes that talk to themselves, for each identifier of a connection.
    std::map<std::pair<SocketId, std::uint64_t>, Time> heard_by_itself_;
    Duration gap_{Time::never().ns};
    std::map<std::pair<SocketId, Endpoint>, std::vector<Time>> told_unreachable_;
    std::deque<Remembered> remembered_;
    std::size_t remembered_max_ = 0;
    std::uint16_t next_port_ = 49'152;
    Reader reader_;
    Reach reach_;
    Watch watch_;
    std::uint64_t sent_ = 0;
    std::map<std::pair<SocketId, Endpoint>, std::uint64_t> waiting_;  ///< sent, not taken, bytes
    std::uint64_t most_waiting_ = 0;
    std::uint64_t order_ = 0;
};

}  // namespace via::device::sim
