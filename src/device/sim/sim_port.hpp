// A port on the simulated datagram network. It behaves as a socket does: what nobody takes in time
// is dropped, what is too long does not go out, and a full socket takes no more for a while.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "device/datagram/port.hpp"
#include "device/sim/datagram_network.hpp"

namespace via::device::sim {

struct SimPortOptions {
    std::uint32_t datagram_max = 1'472;      ///< of our interface
    std::uint32_t receive_room = 212'992;    ///< bytes; what comes beyond is dropped
    std::uint32_t kept_max = 1'024;          ///< buffers kept at once
    std::uint16_t data_port = 0;             ///< 0: one that nobody had yet
    std::uint32_t refuse_percent = 0;        ///< of calls of send() that find the socket full ...
    Duration refuse_max = microseconds(20);  ///< ... for a while drawn up to this
    std::uint64_t seed = 0;                  ///< of refusals
};

class SimPort final : public datagram::Port {
public:
    /// The network outlives the port. `instance`: of the NIC that is opened with it.
    SimPort(DatagramNetwork& network, const HostAddress& nic, std::uint64_t instance,
            const SimPortOptions& options);
    ~SimPort() override;

    // What a world does to it
    /// From now on nothing leaves: the process dies without a word, as its destructor then does.
    void crash(Ending ending);
    /// The interface carries other lengths from now on.
    void set_datagram_max(std::uint32_t bytes) { options_.datagram_max = bytes; }
    SocketId socket() const { return socket_; }
    std::uint64_t dropped() const { return dropped_; }  ///< for want of room

    const HostAddress& nic_address() const override { return nic_; }
    const HostAddress& data_address() const override { return network_.data_address(socket_); }
    std::uint32_t datagram_max() const override { return options_.datagram_max; }
    std::uint32_t receive_room() const override { return options_.receive_room; }
    Time now() override { return network_.clock().now(); }

    std::size_t send(std::span<const datagram::Outgoing> datagrams) override;
    bool has_room() override { return now() >= full_until_; }

    std::size_t receive(std::span<datagram::Incoming> datagrams) override;
    Time came() const override { return came_; }
    void release() override;
    bool keep(std::uint32_t buffer) override;
    void let_go(std::uint32_t buffer) override;
    std::uint32_t keeps_left() const override { return options_.kept_max - kept_; }
    bool has_work() override;
    bool next_network_error(datagram::NetworkError& error) override;

    Status listen(const Discriminator& discriminator) override;
    void unlisten(const Discriminator& discriminator) override;
    bool find_listener(const Discriminator& discriminator, std::uint16_t& data_port,
                       std::uint64_t& instance) override;

    void service(Time /*now*/) override {}
    void arm(Sleep /*sleep*/) override {}
    int wait_handle() const override { return -1; }
    /// The next arrival, or now while something waits to be taken.
    Time next_deadline() const override;

private:
    struct Buffer {
        std::vector<std::byte> bytes;
        bool lent = false;        ///< until release()
        std::uint32_t keeps = 0;  ///< calls of keep() without let_go()
    };
    void settle();
    std::uint32_t free_buffer();
    bool send_one(const datagram::Outgoing& outgoing);

    DatagramNetwork& network_;
    HostAddress nic_;
    SimPortOptions options_;
    Random random_;
    SocketId socket_;
    bool crashed_ = false;
    Ending ending_ = Ending::closed;
    Time full_until_{};
    std::deque<std::unique_ptr<Datagram>> waiting_;  ///< arrived, not taken
    std::uint64_t waiting_bytes_ = 0;
    Time came_ = Time::never();
    std::deque<datagram::NetworkError> network_errors_;
    std::vector<Buffer> buffers_;
    std::uint32_t kept_ = 0;  ///< buffers that are
    std::uint64_t dropped_ = 0;
};

}  // namespace via::device::sim
