#include "lab/host.hpp"

#include <utility>

namespace via::lab {

Host::Host(Schedule& schedule, Ledger& ledger, const Costs& costs, Design design, Network& network,
           const Without& without, NodeId number, std::uint64_t seed)
    : schedule_(schedule),
      costs_(costs),
      design_(std::move(design)),
      processor_(schedule, ledger, named(number, "processor")),
      bus_(schedule, ledger, named(number, "bus")),
      adapter_(schedule, ledger, costs, design_, network, bus_, without, seed,
               {[this](ViId vi, MessageId message) {
                    if (listener_) return;
                    sent_[vi].push_back(message);
                    completed_.notify();
                },
                [this](ViId vi, MessageId message, std::int64_t length, bool copies) {
                    bytes_received_ += length;
                    if (copies)
                        schedule_.spawn(copy_rdma(vi, message, length));
                    else
                        hear(vi, message);
                },
                [this](bool receive, ViId vi) { schedule_.spawn(refill(receive, vi)); },
                [this](MessageId message) {
                    if (listener_) listener_->took(message);
                },
                [this](ViId vi) { return !listener_ || listener_->expects(vi); },
                [this](MissingLine line) { miss_thread_.ask(std::move(line)); }}),
      miss_thread_(*this, seed ^ 0x6d697373),
      completed_(schedule) {}

void Host::hear(ViId vi, MessageId message) {
    if (listener_) return listener_->received(message);
    received_[vi].push_back(message);
    completed_.notify();
}

/// From the kernel's buffer to where it belongs, by the handler of an interrupt.
Task<> Host::copy_rdma(ViId vi, MessageId message, std::int64_t length) {
    co_await schedule_.sleep(Duration{costs_.interrupt});
    co_await spend(Duration{costs_.kernel_post}, {Share::interrupt, "RDMA handler", message});
    const Duration copy = adapter_.without().copies ? Duration{} : time_of(length, costs_.copy);
    co_await spend(copy, {Share::copy, "copy to the buffer", message});
    hear(vi, message);
}

/// Into the kernel if the design wants it: for addresses, or (sends only) for the doorbell.
Task<> Host::enter(MessageId message, bool rings) {
    co_await spend(Duration{costs_.user_post}, {Share::user, "make the descriptor", message});
    const bool kernel =
        design_.translation->in_kernel() || (rings && design_.doorbell->in_kernel());
    if (!kernel) co_return;
    co_await spend(Duration{costs_.system_call}, {Share::system_call, "system call", message});
    co_await spend(Duration{costs_.kernel_post}, {Share::kernel, "driver", message});
}

/// Descriptors of a VI share a page, behind all buffers.
std::int64_t Host::placed(std::int64_t place, ViId vi) const {
    return place == nowhere ? (std::int64_t{1} << 40) + vi * costs_.page : place;
}

Task<> Host::post_send(ViId vi, Buffer buffer, MessageId message, std::int64_t place) {
    co_await enter(message, true);
    const bool inside = design_.payload->inside(buffer.length);
    co_await hand_over({vi, message, buffer, inside, {}, false, placed(place, vi)}, false);
}

Task<> Host::post_receive(ViId vi, Buffer buffer, std::int64_t place) {
    co_await enter(no_message, false);
    co_await hand_over({vi, no_message, buffer, false, {}, false, placed(place, vi)}, true);
}

Task<> Host::send(PhysicalDescriptor descriptor, bool by_driver) {
    const MessageId message = descriptor.message;
    descriptor.place = placed(nowhere, descriptor.vi);
    descriptor.payload_inside = design_.payload->inside(descriptor.buffer.length);
    if (by_driver) {
        co_await spend(Duration{costs_.system_call}, {Share::system_call, "system call", message});
        co_await spend(Duration{costs_.kernel_post}, {Share::kernel, "driver", message});
    } else {
        co_await enter(message, true);
    }
    co_await hand_over(descriptor, false);
}

Task<> Host::poll() { co_await design_.completions->on_host(*this, 1, no_message); }

Task<> Host::wake(Duration) {
    co_await schedule_.sleep(Duration{costs_.interrupt});
    co_await spend(Duration{costs_.kernel_post}, {Share::interrupt, "handler wakes the process"});
    co_await spend(Duration{costs_.system_call}, {Share::system_call, "the wait returns"});
}

std::int64_t Host::receives_waiting(ViId vi) {
    const Adapter::Queue& queue = adapter_.receives(vi);
    return static_cast<std::int64_t>(queue.on_nic.size() + waiting_receives_[vi].size()) +
           queue.coming;
}

void Host::take_back(ViId vi, std::int64_t receives) {
    Adapter::Queue& queue = adapter_.receives(vi);
    for (; receives > 0 && !queue.on_nic.empty(); --receives) queue.on_nic.pop_front();
    auto& waiting = waiting_receives_[vi];
    for (; receives > 0 && !waiting.empty(); --receives) waiting.pop_front();
}

/// To the NIC, or to those that wait in the host until it has room.
Task<> Host::hand_over(PhysicalDescriptor descriptor, bool receive) {
    descriptor.process = adapter_.process_of(descriptor.vi);
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
    if (receive) co_return;
    adapter_.begin_ring();
    co_await design_.doorbell->ring(*this, descriptor.vi, descriptor.message);
    adapter_.end_ring();
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

Task<> Host::write_descriptor(const PhysicalDescriptor& descriptor) {
    std::int64_t words = costs_.control_words;
    const Buffer& buffer = descriptor.buffer;
    if (descriptor.payload_inside) {
        words += (buffer.length + 3) / 4;
    } else if (design_.translation->piece_per_page()) {
        const auto pieces = cut(buffer, costs_.page, costs_.page).size();
        words += costs_.segment_words * static_cast<std::int64_t>(pieces);
    } else {
        words += costs_.segment_words;
    }
    co_await write_words(words, "write the descriptor", descriptor.message);
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
