#include "lab/network.hpp"

#include <algorithm>
#include <utility>

namespace via::lab {

Network::Network(Schedule& schedule, Ledger& ledger, const Costs& costs)
    : schedule_(schedule),
      ledger_(ledger),
      costs_(costs),
      switch_(ledger.add_resource("switch")),
      buffer_(schedule, costs.switch_buffer) {}

NodeId Network::join(std::function<void(const Packet&)> arrive) {
    const auto node = static_cast<NodeId>(ports_.size());
    auto port = std::make_unique<Port>();
    port->arrive = std::move(arrive);
    port->out = std::make_unique<Resource>(schedule_, ledger_, named(node, "link out"));
    port->in = std::make_unique<Resource>(schedule_, ledger_, named(node, "link in"));
    port->sending = std::make_unique<Fifo>(schedule_, costs_.interface_buffer);
    port->receiving = std::make_unique<Fifo>(schedule_, costs_.interface_buffer);
    port->queued = std::make_unique<Signal>(schedule_);
    ports_.push_back(std::move(port));
    schedule_.spawn(transmitter(node));
    return node;
}

bool Network::try_reserve(NodeId node, const Packet& packet) {
    return ports_[node]->sending->try_reserve(wire_bytes(packet));
}

void Network::transmit(const Packet& packet) {
    Port& port = *ports_[packet.from];
    port.queue.push_back(packet);
    port.queued->notify();
}

void Network::taken(const Packet& packet) {
    ports_[packet.to]->receiving->release(wire_bytes(packet));
}

Task<> Network::transmitter(NodeId node) {
    Port& port = *ports_[node];
    for (;;) {
        while (port.queue.empty()) co_await port.queued->wait();
        const Packet packet = port.queue.front();
        port.queue.pop_front();
        const std::int64_t bytes = wire_bytes(packet);
        co_await buffer_.reserve(bytes);
        const Time begin = schedule_.now();
        const Duration span = std::max(time_of(bytes, costs_.link), packet.tail - begin);
        schedule_.spawn(pass(packet, begin));
        co_await port.out->use(span, {Share::link, "link to the switch", packet.message});
        port.sending->release(bytes);
    }
}

Task<> Network::pass(Packet packet, Time begin) {
    Port& port = *ports_[packet.to];
    const std::int64_t bytes = wire_bytes(packet);
    const Duration route = time_of(costs_.switch_header, costs_.link);
    co_await schedule_.sleep(route + Duration{costs_.switch_delay});
    ledger_.add(switch_, {Share::link, "route", packet.message}, begin, begin + route);
    ledger_.add(switch_, {Share::switching, "cut through", packet.message}, begin + route,
                schedule_.now());
    co_await port.receiving->reserve(bytes);
    const Time start = std::max(schedule_.now(), port.in->free());
    const Duration first = time_of(headers(packet), costs_.link);
    const Duration span = time_of(bytes, costs_.link);
    packet.tail = start + span;
    co_await port.in->use(first, {Share::link, "headers arrive", packet.message});
    ++packets_;
    payload_bytes_ += packet.length;
    (packet.kind == PacketKind::message ? port.arrive : port.window)(packet);
    const Duration rest = packet.tail - schedule_.now();
    co_await port.in->use(rest, {Share::link, "payload arrives", packet.message});
    buffer_.release(bytes);
}

}  // namespace via::lab
