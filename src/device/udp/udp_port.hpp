// Datagrams over the sockets of this host. A NIC has a data socket of its own, at a port that the
// system chose; one NIC of all at its address besides has the host's socket, at the port that the
// NIC address names. Binding that is the lock: who has it answers for all, the others watch it and
// try when it ends; should it not answer they join it (SO_REUSEPORT). A peer to whom nearly all
// goes is given a second data socket of the same address and port, connected to it: the kernel then
// looks up no route for what goes there, and less for what comes.
#pragma once

#include <array>
#include <expected>
#include <memory>
#include <string>

#include "device/datagram/port.hpp"
#include "device/udp/busy_socket.hpp"
#include "device/udp/host_port.hpp"
#include "device/udp/network_errors.hpp"
#include "device/udp/presence.hpp"
#include "device/udp/receiver.hpp"
#include "device/udp/sender.hpp"
#include "device/udp/socket_address.hpp"
#include "device/udp/system.hpp"
#include "device/udp/udp_config.hpp"
#include "device/udp/wait_set.hpp"

namespace via::device::udp {

/// Owns the data socket, and when which of the sockets is looked at.
class UdpPort final : public datagram::Port {
public:
    /// error: what failed, why, what to do.
    static std::expected<std::unique_ptr<UdpPort>, std::string> open(const UdpConfig& config);

    const HostAddress& nic_address() const override { return config_.place.address; }
    const HostAddress& data_address() const override { return data_address_; }
    bool is_near(const HostAddress& host) const override {
        return is_in_network_of(config_.place, host);
    }
    std::uint32_t datagram_max() const override { return datagram_max_; }
    std::uint32_t receive_room() const override { return receive_room_; }
    Time now() override { return system_.now(); }
    Time moment() override { return looked_.is_never() ? now() : looked_; }

    std::size_t send(std::span<const datagram::Outgoing> datagrams) override;
    void doubt(const HostAddress& to, Time arrived) override { busy_.doubt(to, arrived); }
    bool has_room() override;
    std::size_t receive(std::span<datagram::Incoming> datagrams) override;
    void release() override { receiver_.release(); }
    bool keep(std::uint32_t buffer) override { return receiver_.buffers().keep(buffer); }
    void let_go(std::uint32_t buffer) override { receiver_.buffers().let_go(buffer); }
    std::uint32_t keeps_left() const override { return receiver_.buffers().keeps_left(); }
    bool has_work() override;
    bool next_network_error(datagram::NetworkError& error) override {
        return network_errors_.next(error);
    }

    Status listen(const Discriminator& discriminator) override;
    void unlisten(const Discriminator& discriminator) override {
        presence_.listeners().unlisten(discriminator);
    }
    bool find_listener(const Discriminator& discriminator, std::uint16_t& data_port,
                       std::uint64_t& instance) override;

    void service(Time now) override;
    void arm(Sleep sleep) override;
    int wait_handle() const override { return wait_set_.handle(); }
    std::size_t wake_descriptors(std::span<WakeDescriptor> descriptors) const override;
    Time next_deadline() const override;

    /// Is there a socket that is connected to a busy peer?
    bool is_connected() const { return busy_.is_there(); }
    /// Does what goes to it leave by raw Ethernet transmit?
    bool makes_frames() const { return busy_.makes_frames(); }
    /// Does this NIC answer for the host?
    bool has_host_port() const { return host_.is_ours(); }

private:
    explicit UdpPort(const UdpConfig& config);

    std::expected<void, std::string> open_all();
    bool set_up_data_socket();
    void look_at_mtu(Time now);
    const Descriptor& socket_for(const datagram::Outgoing& datagram) const;
    std::size_t send_run(const Descriptor& socket, std::span<const datagram::Outgoing> run);
    void look();
    bool look_at_data_first();
    bool look_at_busy_socket();
    bool is_data_due();
    void look_everywhere();
    bool find(const Descriptor& socket, Receiver::Habit* habit);
    bool find_at_data() { return find(data_, &data_habit_); }
    bool find_at_busy() { return find(busy_.socket(), &busy_.habit()); }
    bool find_at_host();
    bool may_change_sockets() const { return awake_ && !wait_set_.is_watching(); }
    void connect_to_busy_peer();
    bool disconnect();
    /// Those that are open: of the NIC, of the busy peer, of the host.
    template <class Call>
    void for_sockets(Call call) const {
        for (const Descriptor* socket : {&data_, &busy_.socket(), &host_.socket()})
            if (socket->valid()) call(socket->get());
    }
    /// All of them for poll(); returns how many.
    std::size_t list_sockets(std::span<pollfd, 3> entries) const;

    UdpConfig config_;
    System& system_;
    HostAddress data_address_;
    std::uint32_t datagram_max_ = 0;
    std::uint32_t receive_room_ = 0;
    Descriptor data_;
    NetworkErrors network_errors_;
    Receiver receiver_;
    Sender sender_;
    BusySocket busy_;
    WaitSet wait_set_;
    Presence presence_;
    HostPort host_;  ///< closed before our names go, by which others hear of it
    Receiver::Habit data_habit_;
    Time mtu_looked_{};
    bool sent_since_ = false;  ///< the MTU was looked at
    int refused_ = -1;         ///< by this socket send() was, which had no room; or -1
    bool awake_ = true;        ///< nobody sleeps on the sockets
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
