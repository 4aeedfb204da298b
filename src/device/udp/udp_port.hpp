// Datagrams over the sockets of this host. A NIC has a data socket of its own, at a port that the
// system chose; one NIC of all at its address besides has the host's socket, at the port that the
// NIC address names. Binding that is the lock: who has it answers for all, the others watch it and
// try when it ends; should it not answer they join it (SO_REUSEPORT). A peer to whom nearly all
// goes is given a second data socket of the same address and port, connected to it: the kernel then
// looks up no route for what goes there, and less for what comes.
#pragma once

#include <array>
#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "device/datagram/port.hpp"
#include "device/udp/busy_peer.hpp"
#include "device/udp/ethernet.hpp"
#include "device/udp/holder_check.hpp"
#include "device/udp/interface.hpp"
#include "device/udp/listeners.hpp"
#include "device/udp/network_errors.hpp"
#include "device/udp/receiver.hpp"
#include "device/udp/sender.hpp"
#include "device/udp/socket_address.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

struct UdpConfig {
    Place place;                 ///< as find_place() answered
    std::string directory;       ///< of this address; exists, is ours, for Listeners::open()
    std::uint64_t instance = 0;  ///< of the NIC, random
    bool shared = false;         ///< the directories of other users lie beside it
    System* system = &System::real();
    /// Datagrams until a peer counts as busy and has a socket connected to it; from 2.
    std::uint32_t busy_after = 512;
    bool own_frames = false;  ///< frames of our own to a busy peer, where packet sockets may be had
    /// Hears what people should know.
    std::function<void(const std::string&)> report = {};
    /// Hears what needs nobody: that this NIC answers for its host in place of one that does not.
    std::function<void(const std::string&)> mention = {};
    struct Meeting {
        std::string directory;
        bool shared = false;
    };
    /// Makes the directory anew, when our names in it are gone, or says why it cannot be made.
    /// Empty: `directory` is looked for again.
    std::function<std::expected<Meeting, std::string>()> directory_again = {};
};

class UdpPort final : public datagram::Port {
public:
    /// error: what failed, why, what to do.
    static std::expected<std::unique_ptr<UdpPort>, std::string> open(const UdpConfig& config);
    ~UdpPort() override;

    const HostAddress& nic_address() const override { return config_.place.address; }
    const HostAddress& data_address() const override { return data_address_; }
    std::uint32_t datagram_max() const override { return datagram_max_; }
    std::uint32_t receive_room() const override { return receive_room_; }
    Time now() override { return system_.now(); }
    Time moment() override { return looked_.is_never() ? now() : looked_; }

    std::size_t send(std::span<const datagram::Outgoing> datagrams) override;
    void doubt(const HostAddress& to, Time arrived) override;
    bool has_room() override;
    std::size_t receive(std::span<datagram::Incoming> datagrams) override;
    void release() override { receiver_.release(); }
    bool keep(std::uint32_t buffer) override { return receiver_.buffers().keep(buffer); }
    void let_go(std::uint32_t buffer) override { receiver_.buffers().let_go(buffer); }
    std::uint32_t keeps_left() const override { return receiver_.buffers().keeps_left(); }
    bool has_work() override;
    bool next_trouble(datagram::Trouble& trouble) override { return troubles_.next(trouble); }

    Status listen(const Discriminator& discriminator) override;
    void unlisten(const Discriminator& discriminator) override;
    bool find_listener(const Discriminator& discriminator, std::uint16_t& data_port,
                       std::uint64_t& instance) override;

    void service(Time now) override;
    std::uint64_t take_own_frames() override { return ethernet_.take_count(); }
    void arm(Sleep sleep) override;
    int wait_handle() const override { return epoll_.get(); }
    std::size_t wake_descriptors(std::span<WakeDescriptor> descriptors) const override;
    Time next_deadline() const override;

    /// Is there a socket that is connected to a busy peer?
    bool is_connected() const { return connection_ != Connection::none; }
    /// Does what goes to it leave as frames of our own?
    bool makes_frames() const { return connection_ == Connection::up && ethernet_.is_ready(); }
    /// Does this NIC answer for the host?
    bool has_host_port() const { return host_.valid(); }

private:
    explicit UdpPort(const UdpConfig& config);

    std::expected<void, std::string> open_all();
    bool set_up(const Descriptor& socket);
    bool set_up_data_socket();
    void try_host_port(Time now);
    bool take_host_port(SharesPort beside);
    bool host_answers();
    std::string who_has_host_port() const;
    bool watch_holder();
    void hear_of_holder(Time now);
    void look_at_host_port(Time now);
    Duration check_interval() const;
    void check_holder_from(Time due);
    void replace_holder(Time now);
    void leave_host_port(Time now);
    void look_at_mtu(Time now);
    void look_at_names(Time now);
    void look_at_address();
    bool is_looked_for() const { return host_.valid() || listeners_->is_listened_to(); }
    void look();
    bool is_data_due();
    void look_everywhere();
    bool find(const Descriptor& socket, Receiver::Habit* habit);
    bool find_at_host();
    bool may_change_sockets() const { return awake_ && !watched_; }
    void connect_to_busy_peer();
    Descriptor make_connected_socket();
    bool disconnect();
    const Descriptor& socket_for(const datagram::Outgoing& datagram, bool to_busy_peer) const;
    bool send_to_busy_peer(const datagram::Outgoing& datagram);
    bool are_carried(std::span<const datagram::Outgoing> run) const;
    std::size_t send_connected(std::span<const datagram::Outgoing> run);
    /// Those that are open: of the NIC, of the busy peer, of the host.
    template <class Call>
    void for_sockets(Call call) const {
        for (const Descriptor* socket : {&data_, &connected_, &host_})
            if (socket->valid()) call(socket->get());
    }
    /// All of them for poll(); returns how many.
    std::size_t list_sockets(std::span<pollfd, 3> entries) const;
    void set_watched(bool watched);
    bool set_watched(int socket, bool watched);

    UdpConfig config_;
    System& system_;
    HostAddress data_address_;
    std::uint32_t datagram_max_ = 0;
    std::uint32_t receive_room_ = 0;
    Descriptor epoll_;
    Descriptor data_;
    Descriptor connected_;  ///< at the same address and port as data_
    HostAddress connected_to_;
    Descriptor host_;
    Descriptor inotify_;  ///< tells when the one ends that has the host's port
    std::unique_ptr<Listeners> listeners_;
    Troubles troubles_;
    Receiver receiver_;
    Sender sender_;
    BusyPeer busy_;
    HolderCheck holder_check_;
    std::string holder_;  ///< whom it is about, if that is of this user
    Ethernet ethernet_;
    Receiver::Habit data_habit_;
    Receiver::Habit connected_habit_;

    /// Of connected_.
    enum class Connection : std::uint8_t {
        none,
        up,     ///< to busy_.address()
        going,  ///< nothing more is sent there
        gone,   ///< nothing more comes there, but what came may still wait
    };
    Connection connection_ = Connection::none;
    Time host_try_ = Time::never();  ///< next one; never: we have it
    Duration host_try_interval_{};
    Time replaced_look_{};      ///< due while we have it
    std::uint32_t chosen_ = 0;  ///< of those that share it, by choose_socket()
    bool told_of_silence_ = false;
    Time mtu_looked_{};
    Time names_look_{};  ///< due while somebody may look for us
    bool address_is_here_ = true;
    bool sent_since_ = false;  ///< the MTU was looked at
    int refused_ = -1;         ///< by this socket send() was, which had no room; or -1
    bool watched_ = false;     ///< the wait handle knows the sockets
    bool awake_ = true;        ///< nobody sleeps on the sockets
    Time hear_again_ = Time::never();
    /// At the data socket, before the connected one is looked at: what the busy peer sent before.
    unsigned data_looks_first_ = 0;
    Time data_first_until_{};      ///< they go on so long, even if they find nothing
    Time data_look_{};             ///< the next one is due, while there is a connected socket
    Time looked_ = Time::never();  ///< when the last look was, if it read the clock
    unsigned looks_in_a_row_ = 0;  ///< that found something at the connected socket
    unsigned polls_of_host_ = 0;   ///< counts down to the next look at its socket
    unsigned full_looks_ = 0;      ///< since the last one
};

}  // namespace via::device::udp
