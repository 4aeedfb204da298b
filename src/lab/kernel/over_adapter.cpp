#include "lab/kernel/over_adapter.hpp"

#include <algorithm>

namespace via::lab::kernel {

OverAdapter::OverAdapter(Host& host, Schedule& schedule, Ledger& ledger, const Costs& costs,
                         const Setting& setting, const Without& without)
    : host_(host),
      schedule_(schedule),
      costs_(costs),
      setting_(setting),
      second_(schedule, ledger, named(host.adapter().node(), "second processor")),
      kernel_(host.processor(), setting.smp ? second_ : host.processor(), costs, setting, without) {
}

Task<> OverAdapter::post_send(ViId vi, Buffer buffer, MessageId message) {
    if (setting_.tcp) {
        co_await tcp_send(vi, buffer, message);
    } else {
        co_await kernel_.library_lock(message);
        co_await host_.post_send(vi, buffer, message);
    }
}

Task<> OverAdapter::post_receive(ViId vi, Buffer buffer) {
    if (setting_.tcp) {
        reads_[vi].push_back(buffer.length);
        // The driver keeps buffers posted; none of this is the program's time.
        for (std::int64_t n = 0; n < packets_of(buffer.length); ++n)
            co_await host_.post_receive(vi, {buffer.address, setting_.mtu});
    } else {
        co_await kernel_.library_lock(no_message);
        co_await host_.post_receive(vi, buffer);
    }
}

Task<MessageId> OverAdapter::receive(ViId vi, std::int64_t queues) {
    if (setting_.tcp) co_return co_await tcp_receive(vi);
    const Time begin = schedule_.now();
    const MessageId message = co_await host_.receive(vi, queues);
    co_await wake(schedule_.now() - begin, message);
    co_await kernel_.library_lock(message);
    co_return message;
}

Task<> OverAdapter::wake(Duration waited, MessageId message) {
    if (!kernel_.slept(waited)) co_return;
    co_await kernel_.interrupt(message);
    co_await kernel_.work(kernel_.handler(), costs_.handler, "driver: a VI is done", message);
    co_await kernel_.lock(kernel_.handler(), "lock of the driver", message);
    co_await kernel_.wake(message);
    co_await kernel_.system_call(message);
}

Task<> OverAdapter::send(PhysicalDescriptor descriptor, bool by_driver) {
    if (!by_driver) co_await kernel_.library_lock(descriptor.message);
    co_await host_.send(descriptor, by_driver);
}

Task<> OverAdapter::poll() {
    co_await kernel_.library_lock(no_message);
    co_await host_.poll();
}

/// A write is over when the driver has it all.
Task<MessageId> OverAdapter::sent(ViId vi, std::int64_t queues) {
    std::int64_t packets = 1;
    if (setting_.tcp) {
        packets = writes_[vi].front();
        writes_[vi].pop_front();
    }
    MessageId message = no_message;
    while (packets-- > 0) message = co_await host_.sent(vi, queues);
    co_return message;
}

Task<> OverAdapter::tcp_send(ViId vi, Buffer buffer, MessageId message) {
    const std::int64_t most = setting_.mtu - costs_.tcp_header;
    Resource& on = kernel_.program();
    writes_[vi].push_back(packets_of(buffer.length));
    co_await kernel_.system_call(message);
    co_await kernel_.lock(on, "lock of the socket", message);
    for (std::int64_t offset = 0, n = packets_of(buffer.length); n > 0; --n, offset += most) {
        const std::int64_t length = std::min(most, buffer.length - offset);
        co_await kernel_.copy(on, length, "copy into the kernel", message);
        co_await kernel_.work(on, costs_.tcp_packet, "TCP and IP: a packet goes", message);
        co_await kernel_.work(on, costs_.driver_send, "driver: a packet goes", message);
        co_await kernel_.lock(on, "lock of the driver", message);
        co_await host_.post_send(vi, {0, length + costs_.tcp_header}, message);
    }
}

Task<MessageId> OverAdapter::tcp_receive(ViId vi) {
    const std::int64_t length = reads_[vi].front();
    reads_[vi].pop_front();
    Resource& on = kernel_.handler();
    MessageId message = no_message;
    for (std::int64_t left = packets_of(length); left > 0; --left) {
        const Time begin = schedule_.now();
        message = co_await host_.receive(vi, 1);
        const bool slept = begin < schedule_.now();
        co_await kernel_.interrupt(message);
        co_await kernel_.work(on, costs_.handler, "driver: a packet came", message);
        co_await kernel_.lock(on, "lock of the driver", message);
        co_await kernel_.lock(on, "lock of the socket", message);
        co_await kernel_.work(on, costs_.tcp_packet, "TCP and IP: a packet came", message);
        if (slept) co_await kernel_.wake(message);
    }
    co_await kernel_.copy(kernel_.program(), length, "copy to the program", message);
    co_return message;
}

}  // namespace via::lab::kernel
