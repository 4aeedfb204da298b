#include "lab/kernel/computer.hpp"

#include <algorithm>
#include <utility>

namespace via::lab::kernel {

Computer::Computer(Schedule& schedule, Ledger& ledger, const Costs& costs, const Setting& setting,
                   const Without& without, Wire& wire, NodeId number)
    : schedule_(schedule),
      costs_(costs),
      setting_(setting),
      program_(schedule, ledger, named(number, "processor")),
      handler_(schedule, ledger, named(number, "second processor")),
      bus_(schedule, ledger, named(number, "bus")),
      kernel_(program_, setting.smp ? handler_ : program_, costs, setting, without),
      nic_(schedule, ledger, costs, bus_, wire,
           [this](const Frame& frame) {
               pending_.push_back(frame);
               raised_.notify();
           }),
      changed_(schedule),
      raised_(schedule) {
    schedule_.spawn(arrivals());
}

/// The handler: an interrupt for each packet.
Task<> Computer::arrivals() {
    for (;;) {
        while (pending_.empty()) co_await raised_.wait();
        Frame frame = std::move(pending_.front());
        pending_.pop_front();
        ++interrupts_;
        co_await kernel_.interrupt(frame.message);
        co_await kernel_.work(kernel_.handler(), costs_.handler, "driver: a packet came",
                              frame.message);
        nic_.taken();
        if (setting_.tcp) {
            co_await tcp_take(std::move(frame));
        } else {
            co_await via_take(std::move(frame));
        }
    }
}

Task<> Computer::put(Frame frame, Resource& on) {
    const MessageId message = frame.message;
    co_await kernel_.work(on, costs_.driver_send, "driver: a packet goes", message);
    co_await nic_.room();
    const std::int64_t on_bus = std::min(costs_.pio_write, costs_.bus_word);
    co_await on.use(Duration{costs_.pio_write - on_bus}, {Share::pio, "tell the NIC", message});
    co_await bus_.use(Duration{on_bus}, {Share::pio, "tell the NIC", message});
    nic_.put(std::move(frame));
}

Task<> Computer::poll(std::int64_t queues, MessageId message) {
    for (std::int64_t n = 0; n < queues; ++n) {
        co_await program_.use(Duration{costs_.user_poll},
                              {Share::user, "look at a work queue", message});
    }
}

PhysicalDescriptor Computer::to_peer(ViId vi, Buffer buffer, MessageId message) const {
    PhysicalDescriptor descriptor;
    descriptor.vi = vi;
    descriptor.message = message;
    descriptor.buffer = buffer;
    descriptor.target = Target{peers_.at(vi), vi, {}};
    return descriptor;
}

/// What a message goes in: packets with that header, and as long as the network takes them. One of
/// no bytes is a packet, too. What the NIC fetches of each is not said yet.
std::vector<Frame> Computer::packets_of(const PhysicalDescriptor& descriptor,
                                        std::int64_t header) const {
    std::vector<Frame> packets;
    std::int64_t offset = 0;
    do {
        Frame frame;
        frame.from = nic_.node();
        frame.to = descriptor.target->node;
        frame.vi = descriptor.target->vi;
        frame.landing = descriptor.target->landing;
        frame.message = descriptor.message;
        frame.offset = offset;
        frame.length = std::min(setting_.mtu - header, descriptor.buffer.length - offset);
        frame.header = header;
        offset += frame.length;
        frame.last = offset == descriptor.buffer.length;
        packets.push_back(std::move(frame));
    } while (offset < descriptor.buffer.length);
    return packets;
}

Task<> Computer::post_send(ViId vi, Buffer buffer, MessageId message) {
    return send(to_peer(vi, buffer, message), false);
}

Task<> Computer::send(PhysicalDescriptor descriptor, bool by_driver) {
    if (setting_.tcp) {
        co_await tcp_send(descriptor);
    } else if (by_driver) {
        co_await kernel_.system_call(descriptor.message);
        co_await via_send_by_kernel(descriptor, program_);
    } else {
        co_await via_post(descriptor);
    }
}

/// VIA in the kernel answers where the interrupt is; over a socket it is the library that does.
void Computer::send_own(const PhysicalDescriptor& descriptor) {
    schedule_.spawn(setting_.tcp ? tcp_send(descriptor)
                                 : via_send_by_kernel(descriptor, kernel_.handler()));
}

void Computer::take_back(ViId vi, std::int64_t receives) {
    std::int64_t& posted = inboxes_[vi].posted;
    posted -= std::min(posted, receives);
}

Task<> Computer::wake(Duration waited) {
    if (!kernel_.slept(waited)) co_return;
    co_await kernel_.wake(no_message);
    co_await kernel_.system_call(no_message);
}

/// A socket has no such thing: its reads wait for whatever comes.
Task<> Computer::post_receive(ViId vi, Buffer) {
    Inbox& inbox = inboxes_[vi];
    if (!setting_.tcp) {
        co_await program_.use(Duration{costs_.user_post},
                              {Share::user, "make the descriptor", no_message});
        co_await kernel_.trap(no_message);
        co_await kernel_.lock_in_trap("lock of the VI", no_message);
    }
    ++inbox.posted;
    co_await via_take_early(vi);
}

Task<MessageId> Computer::receive(ViId vi, std::int64_t queues) {
    return setting_.tcp ? tcp_receive(vi) : via_receive(vi, queues);
}

Task<MessageId> Computer::sent(ViId vi, std::int64_t queues) {
    std::deque<MessageId>& sent = sent_[vi];
    while (sent.empty()) co_await changed_.wait();
    const MessageId message = sent.front();
    sent.pop_front();
    if (!setting_.tcp) co_await poll(queues, message);
    co_return message;
}

}  // namespace via::lab::kernel
