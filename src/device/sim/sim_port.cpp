#include "device/sim/sim_port.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace via::device::sim {

SimPort::SimPort(DatagramNetwork& network, const HostAddress& nic, std::uint64_t instance,
                 const SimPortOptions& options)
    : network_(network),
      nic_(nic),
      options_(options),
      random_(options.seed),
      socket_(network.open(nic, instance, options.data_port)) {}

SimPort::~SimPort() { network_.close(socket_, ending_); }

void SimPort::crash(Ending ending) {
    crashed_ = true;
    ending_ = ending;
}

// Sending -----------------------------------------------------------------------------------------

/// False: the socket is full.
bool SimPort::send_one(const datagram::Outgoing& outgoing) {
    if (crashed_) return true;
    if (!has_room()) return false;
    if (random_.chance(options_.refuse_percent)) {
        full_until_ =
            now() + nanoseconds(1 + static_cast<std::int64_t>(random_.below(
                                        static_cast<std::uint64_t>(options_.refuse_max.ns))));
        return false;
    }
    if (outgoing.length > options_.datagram_max)
        network_errors_.push_back(
            {datagram::NetworkErrorKind::too_long, outgoing.to, options_.datagram_max, 0, true});
    else
        network_.send(socket_, outgoing);
    return true;
}

std::size_t SimPort::send(std::span<const datagram::Outgoing> datagrams) {
    std::size_t count = 0;
    while (count < datagrams.size() && send_one(datagrams[count])) ++count;
    return count;
}

// Receiving ---------------------------------------------------------------------------------------

/// What has arrived by now, in the order of arriving: the bytes that wait decide about each.
void SimPort::settle() {
    while (std::unique_ptr<Datagram> datagram = network_.take(socket_)) {
        if (datagram->is_network_error) {
            network_errors_.push_back(datagram->network_error);
        } else if (waiting_bytes_ + datagram->bytes.size() > options_.receive_room) {
            ++dropped_;
            network_.note_gone(socket_, *datagram);
        } else {
            waiting_bytes_ += datagram->bytes.size();
            waiting_.push_back(std::move(datagram));
        }
    }
}

std::uint32_t SimPort::free_buffer() {
    auto found = std::find_if(buffers_.begin(), buffers_.end(), [](const Buffer& buffer) {
        return !buffer.lent && buffer.keeps == 0;
    });
    if (found == buffers_.end()) found = buffers_.emplace(buffers_.end());
    return static_cast<std::uint32_t>(found - buffers_.begin());
}

std::size_t SimPort::receive(std::span<datagram::Incoming> datagrams) {
    settle();
    if (!waiting_.empty()) came_ = waiting_.front()->came;
    std::size_t count = 0;
    for (; count < datagrams.size() && !waiting_.empty(); ++count) {
        Datagram& datagram = *waiting_.front();
        network_.note_heard(socket_, datagram);
        network_.note_gone(socket_, datagram);
        waiting_bytes_ -= datagram.bytes.size();
        const std::uint32_t index = free_buffer();
        Buffer& buffer = buffers_[index];
        buffer.lent = true;
        buffer.bytes = std::move(datagram.bytes);
        buffer.bytes.reserve(1);  // never nullptr
        datagrams[count] = {datagram.from, buffer.bytes.data(),
                            static_cast<std::uint32_t>(buffer.bytes.size()), index,
                            datagram.to_host_port};
        waiting_.pop_front();
    }
    return count;
}

void SimPort::release() {
    for (Buffer& buffer : buffers_) {
        if (!buffer.lent) continue;
        buffer.lent = false;
        if (buffer.keeps == 0) std::vector<std::byte>().swap(buffer.bytes);
    }
}

bool SimPort::keep(std::uint32_t index) {
    Buffer& buffer = buffers_[index];
    VIA_ASSERT(buffer.lent || buffer.keeps != 0);
    if (buffer.keeps == 0) {
        if (kept_ == options_.kept_max) return false;
        ++kept_;
    }
    ++buffer.keeps;
    return true;
}

void SimPort::let_go(std::uint32_t index) {
    Buffer& buffer = buffers_[index];
    VIA_ASSERT(buffer.keeps != 0);
    if (--buffer.keeps != 0) return;
    --kept_;
    // Whoever reads on now reads what is gone.
    if (!buffer.lent) std::vector<std::byte>().swap(buffer.bytes);
}

bool SimPort::has_work() {
    settle();
    return !waiting_.empty() || !network_errors_.empty();
}

bool SimPort::next_network_error(datagram::NetworkError& error) {
    settle();
    if (network_errors_.empty()) return false;
    error = network_errors_.front();
    network_errors_.pop_front();
    return true;
}

Time SimPort::next_deadline() const {
    const Time now = network_.clock().now();
    if (!waiting_.empty() || !network_errors_.empty()) return now;
    const Time room = full_until_ > now ? full_until_ : Time::never();
    return earlier(network_.next_arrival(socket_), room);
}

// Who listens -------------------------------------------------------------------------------------

Status SimPort::listen(const Discriminator& discriminator) {
    return network_.listen(socket_, discriminator);
}

void SimPort::unlisten(const Discriminator& discriminator) {
    network_.unlisten(socket_, discriminator);
}

bool SimPort::find_listener(const Discriminator& discriminator, std::uint16_t& data_port,
                            std::uint64_t& instance) {
    return network_.find_listener(socket_, discriminator, data_port, instance);
}

}  // namespace via::device::sim
