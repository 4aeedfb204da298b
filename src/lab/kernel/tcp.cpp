// Sockets and TCP: a system call and a copy on either side, TCP and IP for each packet, a reader
// that sleeps, an acknowledgement for every second packet that is not the last.
#include <utility>

#include "lab/kernel/computer.hpp"

namespace via::lab::kernel {

Task<> Computer::tcp_send(PhysicalDescriptor descriptor) {
    const MessageId message = descriptor.message;
    co_await kernel_.system_call(message);
    co_await kernel_.lock(program_, "lock of the socket", message);
    for (Frame& frame : packets_of(descriptor, costs_.tcp_header)) {
        frame.pieces.push_back(frame.length + frame.header);
        co_await kernel_.copy(program_, frame.length, "copy into the kernel", message);
        co_await kernel_.work(program_, costs_.tcp_packet, "TCP and IP: a packet goes", message);
        co_await put(std::move(frame), program_);
    }
    if (listener_) co_return;
    sent_[descriptor.vi].push_back(message);
    changed_.notify();
}

/// Whoever has messages of his own has a thread that reads each socket.
Task<> Computer::tcp_read(ViId vi) {
    for (;;) {
        const MessageId message = co_await tcp_receive(vi);
        listener_->received(message);
    }
}

Task<> Computer::tcp_take(Frame frame) {
    const MessageId message = frame.message;
    co_await kernel_.lock(kernel_.handler(), "lock of the socket", message);
    if (frame.acknowledges) {
        co_await kernel_.work(kernel_.handler(), costs_.tcp_acknowledge,
                              "TCP: an acknowledgement came", message);
        co_return;
    }
    co_await kernel_.work(kernel_.handler(), costs_.tcp_packet, "TCP and IP: a packet came",
                          message);
    Inbox& inbox = inboxes_[frame.vi];
    bytes_received_ += frame.length;
    if (std::exchange(inbox.sleeps, false))
        co_await kernel_.lock(kernel_.handler(), "lock of the run queue", message);
    inbox.segments.push_back(frame);
    if (listener_ && !std::exchange(inbox.is_read, true)) schedule_.spawn(tcp_read(frame.vi));
    changed_.notify();
    // The answer to a whole message carries its acknowledgement.
    inbox.unacknowledged = frame.last ? 0 : inbox.unacknowledged + 1;
    if (inbox.unacknowledged < 2) co_return;
    inbox.unacknowledged = 0;
    co_await tcp_acknowledge(frame);
}

Task<> Computer::tcp_acknowledge(const Frame& frame) {
    Frame answer;
    answer.from = nic_.node();
    answer.to = frame.from;
    answer.vi = frame.vi;
    answer.header = costs_.tcp_header;
    answer.acknowledges = true;
    answer.pieces.push_back(answer.header);
    co_await kernel_.work(kernel_.handler(), costs_.tcp_acknowledge, "TCP: acknowledges",
                          no_message);
    co_await put(std::move(answer), kernel_.handler());
}

Task<MessageId> Computer::tcp_receive(ViId vi) {
    Inbox& inbox = inboxes_[vi];
    co_await kernel_.system_call(no_message);
    for (;;) {
        bool slept = false;
        while (inbox.segments.empty()) {
            slept = inbox.sleeps = true;
            co_await changed_.wait();
        }
        const Frame segment = std::move(inbox.segments.front());
        inbox.segments.pop_front();
        if (slept) {
            inbox.sleeps = false;
            co_await kernel_.work(program_, costs_.process_switch, "the process goes on",
                                  segment.message);
        }
        co_await kernel_.copy(program_, segment.length, "copy to the program", segment.message);
        if (segment.last) co_return segment.message;
    }
}

}  // namespace via::lab::kernel
