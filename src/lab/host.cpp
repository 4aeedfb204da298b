#include "lab/host.hpp"

#include <utility>

namespace via::lab {

Host::Host(Schedule& schedule, Ledger& ledger, const Costs& costs, Design design, Network& network,
           const Without& without, NodeId number, std::uint64_t seed)
    : schedule_(schedule),
      costs_(costs),
      design_(std::move(design)),
      processor_(schedule, ledger, "host " + std::to_string(number) + " processor"),
      bus_(schedule, ledger, "host " + std::to_string(number) + " bus"),
      adapter_(schedule, ledger, costs, design_, network, bus_, without, seed,
               {[this](ViId vi, MessageId message) {
                    sent_[vi].push_back(message);
                    completed_.notify();
                },
                [this](ViId vi, MessageId message, std::int64_t length) {
                    received_[vi].push_back(message);
                    bytes_received_ += length;
                    completed_.notify();
                },
                [this](bool receive, ViId vi) { schedule_.spawn(refill(receive, vi)); }}),
      completed_(schedule) {}

/// Into the kernel if the design wants it: for addresses, or (sends only) for the doorbell.
Task<> Host::enter(MessageId message, bool rings) {
    co_await spend(Duration{costs_.user_post}, {Share::user, "make the descriptor", message});
    const bool kernel =
        design_.translation->in_kernel() || (rings && design_.doorbell->in_kernel());
    if (!kernel) co_return;
    co_await spend(Duration{costs_.system_call}, {Share::system_call, "system call", message});
    co_await spend(Duration{costs_.kernel_post}, {Share::kernel, "driver", message});
}

Task<> Host::post_send(ViId vi, Buffer buffer, MessageId message) {
    co_await enter(message, true);
    co_await hand_over({vi, message, buffer, design_.payload->inside(buffer.length)}, false);
}

Task<> Host::post_receive(ViId vi, Buffer buffer) {
    co_await enter(no_message, false);
    co_await hand_over({vi, no_message, buffer, false}, true);
}

/// To the NIC, or to those that wait in the host until it has room.
Task<> Host::hand_over(PhysicalDescriptor descriptor, bool receive) {
    overflow(receive, descriptor.vi).push_back(descriptor);
    co_await write_waiting(receive, descriptor.vi);
    Adapter::Queue& to = queue(receive, descriptor.vi);
    if (overflow(receive, descriptor.vi).empty() || to.writing || to.more_in_host) co_return;
    to.more_in_host = true;
    co_await write_words(1, "flag: more in the host", descriptor.message);
}

/// As many as the NIC has room for, in the order of posting.
Task<> Host::write_waiting(bool receive, ViId vi) {
    Adapter::Queue& to = queue(receive, vi);
    auto& waiting = overflow(receive, vi);
    const std::int64_t capacity = design_.descriptors->capacity(receive);
    if (to.writing) co_return;
    to.writing = true;
    while (!waiting.empty() && static_cast<std::int64_t>(to.on_nic.size()) < capacity) {
        const PhysicalDescriptor next = waiting.front();
        waiting.pop_front();
        to.coming = 1;
        co_await write(next, receive);
    }
    to.writing = false;
}

Task<> Host::write(PhysicalDescriptor descriptor, bool receive) {
    co_await design_.descriptors->post(*this, descriptor);
    Adapter::Queue& to = queue(receive, descriptor.vi);
    to.coming = 0;
    to.on_nic.push_back(descriptor);
    if (!receive) co_await design_.doorbell->ring(*this, descriptor.vi, descriptor.message);
}

/// The handler of the refill interrupt.
Task<> Host::refill(bool receive, ViId vi) {
    co_await schedule_.sleep(Duration{costs_.interrupt});
    co_await spend(Duration{costs_.kernel_post}, {Share::interrupt, "refill handler"});
    Adapter::Queue& to = queue(receive, vi);
    co_await write_waiting(receive, vi);
    to.more_in_host = !overflow(receive, vi).empty();
    to.refilling = false;
}

Task<> Host::word(std::int64_t cost, const char* what, MessageId message) {
    const std::int64_t on_bus = cost < costs_.bus_word ? cost : costs_.bus_word;
    co_await processor_.use(Duration{cost - on_bus}, {Share::pio, what, message});
    co_await bus_.use(Duration{on_bus}, {Share::pio, what, message});
}

Task<> Host::write_words(std::int64_t words, const char* what, MessageId message) {
    for (std::int64_t n = 0; n < words; ++n) co_await word(costs_.pio_write, what, message);
}

Task<> Host::read_word(const char* what, MessageId message) {
    co_await word(costs_.pio_read, what, message);
}

Task<MessageId> Host::receive(ViId vi, std::int64_t queues) {
    while (received_[vi].empty()) co_await completed_.wait();
    const MessageId message = received_[vi].front();
    received_[vi].pop_front();
    co_await design_.completions->on_host(*this, queues, message);
    co_return message;
}

Task<MessageId> Host::sent(ViId vi, std::int64_t queues) {
    while (sent_[vi].empty()) co_await completed_.wait();
    const MessageId message = sent_[vi].front();
    sent_[vi].pop_front();
    co_await design_.completions->on_host(*this, queues, message);
    co_return message;
}

}  // namespace via::lab
