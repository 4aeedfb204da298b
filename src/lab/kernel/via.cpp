// VIA in the kernel: a fast trap and no copy to send, one copy in the handler to receive.
#include <utility>

#include "lab/kernel/computer.hpp"

namespace via::lab::kernel {

Task<> Computer::via_post(PhysicalDescriptor descriptor) {
    co_await program_.use(Duration{costs_.user_post},
                          {Share::user, "make the descriptor", descriptor.message});
    co_await kernel_.trap(descriptor.message);
    co_await kernel_.lock_in_trap("lock of the VI", descriptor.message);
    co_await via_send(descriptor, program_);
}

Task<> Computer::via_send_by_kernel(PhysicalDescriptor descriptor, Resource& on) {
    co_await kernel_.lock(on, "lock of the VI", descriptor.message);
    co_await via_send(descriptor, on);
}

Task<> Computer::via_send(PhysicalDescriptor descriptor, Resource& on) {
    const MessageId message = descriptor.message;
    const Buffer buffer = descriptor.buffer;
    for (Frame& frame : packets_of(descriptor, costs_.via_header)) {
        frame.pieces.push_back(frame.header);
        const Buffer part{buffer.address + frame.offset, frame.length};
        for (const Buffer& piece : cut(part, part.length, costs_.page))
            if (piece.length > 0) frame.pieces.push_back(piece.length);
        if (frame.last && !listener_) {
            frame.fetched = [this, vi = descriptor.vi, message] {
                sent_[vi].push_back(message);
                changed_.notify();
            };
        }
        co_await kernel_.work(on, costs_.via_send, "VIA: a packet goes", message);
        co_await put(std::move(frame), on);
    }
}

/// One that needs a receive waits until there is one, unless nobody will post it. Those behind it
/// wait, too.
Task<> Computer::via_take(Frame frame) {
    if (!frame.landing.consumes) {
        co_await via_place(std::move(frame));
    } else {
        const ViId vi = frame.vi;
        inboxes_[vi].early.push_back(std::move(frame));
        co_await via_take_early(vi);
    }
}

Task<> Computer::via_take_early(ViId vi) {
    Inbox& inbox = inboxes_[vi];
    while (!inbox.early.empty()) {
        const Frame& next = inbox.early.front();
        if (next.offset == 0 && inbox.posted == 0) {
            if (!listener_ || listener_->expects(vi)) co_return;
            inbox.lost.insert(next.message);
        }
        Frame frame = std::move(inbox.early.front());
        inbox.early.pop_front();
        co_await via_place(std::move(frame));
    }
}

Task<> Computer::via_place(Frame frame) {
    Inbox& inbox = inboxes_[frame.vi];
    Resource& on = kernel_.handler();
    const MessageId message = frame.message;
    const bool lost = inbox.lost.contains(message);
    const bool takes = frame.landing.consumes && !lost;
    if (takes && frame.offset == 0) {
        --inbox.posted;
        if (listener_) listener_->took(message);
    }
    co_await kernel_.lock(on, "lock of the VI", message);
    co_await kernel_.work(on, costs_.via_receive, "VIA: a packet came", message);
    if (frame.length > 0 && (takes || frame.landing.named))
        co_await kernel_.copy(on, frame.length, "copy to the buffer", message);
    // Nobody copies with interrupts shut out: it was let go meanwhile.
    co_await kernel_.lock(on, "lock of the VI, behind the copy", message);
    bytes_received_ += frame.length;
    if (!frame.last) co_return;
    inbox.lost.erase(message);
    if (listener_) {
        listener_->received(message);
    } else {
        inbox.whole.push_back(message);
        changed_.notify();
    }
}

Task<MessageId> Computer::via_receive(ViId vi, std::int64_t queues) {
    Inbox& inbox = inboxes_[vi];
    const Time begin = schedule_.now();
    while (inbox.whole.empty()) co_await changed_.wait();
    const MessageId message = inbox.whole.front();
    inbox.whole.pop_front();
    if (kernel_.slept(schedule_.now() - begin)) {
        co_await kernel_.wake(message);
        co_await kernel_.system_call(message);
    }
    co_await poll(queues, message);
    co_return message;
}

}  // namespace via::lab::kernel
