// The firmware's sends: one message at a time, its packets in a pipeline of two engines.
#include <algorithm>
#include <utility>

#include "lab/adapter.hpp"

namespace via::lab {

/// Of a VI whose doorbell has rung, or what needs no doorbell.
Task<> Adapter::send_step(std::optional<ViId> rung) {
    if (rung) {
        co_await begin_send(*rung);
    } else if (!sending_ && !own_.empty()) {
        co_await begin_own();
    } else if (!sending_) {
        co_await begin_next_again();
    }
    if (!sending_) co_return;
    const bool all = co_await send_packets(*sending_);
    if (!all) co_return;
    co_await complete_send(*sending_);
}

/// All of them may have been acknowledged meanwhile.
Task<> Adapter::begin_next_again() {
    if (begin_again()) {
        const MessageId message = sending_->descriptor.message;
        co_await step(costs_.words_take_control, "begin a message again", message);
        co_return;
    }
    const std::optional<ViId> rung = co_await design_.doorbell->look(*this);
    if (rung) co_await begin_send(*rung);
}

Task<> Adapter::begin_send(ViId vi) {
    const auto found = std::ranges::find(sends_.on_nic, vi, &PhysicalDescriptor::vi);
    VIA_ASSERT(found != sends_.on_nic.end());
    sending_.emplace();
    Sending& sending = *sending_;
    sending.descriptor = *found;
    sends_.on_nic.erase(found);
    look_at(sends_, false, vi);
    const PhysicalDescriptor& descriptor = sending.descriptor;
    co_await design_.descriptors->take(*this, descriptor, false);
    if (!may_send(descriptor)) {
        co_await refuse();
        co_return;
    }
    cut_up(sending);
    number(sending);
    if (descriptor.payload_inside && design_.payload->copied()) {
        const std::int64_t words = (descriptor.buffer.length + 3) / 4;
        co_await step(words * costs_.words_copy, "copy the payload", descriptor.message);
    }
}

/// Its VI's tag is that of all pages, at both ends where the NIC has tables of both.
bool Adapter::may_send(const PhysicalDescriptor& descriptor) const {
    const Translation& tables = *design_.translation;
    if (!tables.opens(descriptor.process, descriptor.buffer, false)) return false;
    if (!descriptor.target || !descriptor.target->landing.named) return true;
    return tables.opens(descriptor.process,
                        {descriptor.target->landing.address, descriptor.buffer.length}, true);
}

/// Nothing of it leaves; its status says so.
Task<> Adapter::refuse() {
    const PhysicalDescriptor descriptor = sending_->descriptor;
    sending_.reset();
    ++counts_.refused;
    co_await design_.completions->on_nic(*this, descriptor.message, [this, descriptor] {
        events_.sent(descriptor.vi, descriptor.message);
    });
}

/// Of RDMA, once for a page of imported memory.
Task<> Adapter::locate_import(Sending& sending) {
    const Landing& landing = sending.descriptor.target->landing;
    const std::int64_t page =
        (landing.address + sending.offset) / design_.translation->import_page();
    if (page == sending.import_page) co_return;
    sending.import_page = page;
    co_await design_.translation->on_import(*this, landing.address + sending.offset,
                                            sending.descriptor.message);
}

/// What an answer is to say, the firmware knows.
Task<> Adapter::begin_own() {
    sending_.emplace();
    sending_->descriptor = own_.front();
    own_.pop_front();
    own_went_last_ = true;
    cut_up(*sending_);
    number(*sending_);
    co_await step(costs_.words_take_control, "make an answer", sending_->descriptor.message);
}

void Adapter::cut_up(Sending& sending) const {
    const std::int64_t page = without_.page_boundaries ? std::int64_t{1} << 40 : costs_.page;
    sending.pieces = cut(sending.descriptor.buffer, design_.packet, page);
}

/// The next one of that message.
Packet Adapter::packet_of(const Sending& sending, std::int64_t length) const {
    const PhysicalDescriptor& descriptor = sending.descriptor;
    Packet packet;
    packet.from = node_;
    packet.to = sending.to;
    packet.sequence = sending.sequence;
    packet.acknowledges = descriptor.acknowledges;
    packet.vi = descriptor.target ? descriptor.target->vi : descriptor.vi;
    packet.message = descriptor.message;
    packet.offset = sending.offset;
    packet.length = length;
    packet.last = sending.started + 1 == sending.pieces.size();
    if (descriptor.target) packet.landing = descriptor.target->landing;
    return packet;
}

/// As many as the Send-FIFO has room for.
Task<> Adapter::start_dmas(Sending& sending) {
    const MessageId message = sending.descriptor.message;
    while (sending.started < sending.pieces.size()) {
        const Buffer piece = sending.pieces[sending.started];
        const bool inside = sending.descriptor.payload_inside;
        if (dynamic_ && !inside && piece.length > 0) {
            const bool found = co_await find_for_send(sending, piece.address);
            sending.blocked = !found && sending.outgoing.empty();
            if (!found) co_return;
        }
        if (!send_fifo_.try_reserve(piece.length)) {
            ++counts_.fifo_waits;
            co_return;
        }
        const std::optional<Target>& target = sending.descriptor.target;
        if (design_.translation->import_page() > 0 && target && target->landing.named)
            co_await locate_import(sending);
        Outgoing out;
        out.packet = packet_of(sending, piece.length);
        ++sending.started;
        sending.offset += piece.length;
        if (!inside && piece.length > 0) {
            co_await locate(piece.address, sending.page, message);
            co_await step(costs_.words_start_lhs_send, "start the DMA from the host", message);
            out.dma = std::make_shared<Transfer>(schedule_);
            lhs_.push({false, piece.length, Share::bus, "DMA from the host", message, nullptr,
                       [dma = out.dma] { dma->end(); }});
        }
        sending.outgoing.push_back(std::move(out));
        counts_.ahead_most = std::max<std::uint64_t>(counts_.ahead_most, sending.outgoing.size());
    }
}

/// False: something is not done yet, and the firmware goes round its loop.
Task<bool> Adapter::send_packets(Sending& sending) {
    const MessageId message = sending.descriptor.message;
    while (sending.left < sending.pieces.size()) {
        co_await start_dmas(sending);
        if (sending.outgoing.empty()) co_return false;
        Outgoing& out = sending.outgoing.front();
        if (!out.header) {
            co_await step(costs_.words_header, "write the packet's headers", message);
            out.header = true;
        }
        if (out.dma) {
            co_await look_at_dma("look at the DMA counter", message);
            while (!out.dma->done && without_.missed_looks) co_await out.dma->changed.wait();
            if (!std::exchange(out.looked, true) && !out.dma->done) ++counts_.first_looks_missed;
            if (!out.dma->done) co_return false;
        }
        leaving_waits_ = !rhs_.idle();
        if (leaving_waits_ || !network_.try_reserve(node_, out.packet)) co_return false;
        came_in_last_ = false;
        co_await step(costs_.words_start_rhs, "start the packet", message);
        sending.last = std::make_shared<Transfer>(schedule_);
        schedule_.spawn(leave(out.packet, sending.last));
        ++sending.left;
        sending.outgoing.pop_front();
    }
    co_return true;
}

Task<> Adapter::complete_send(Sending& sending) {
    const ViId vi = sending.descriptor.vi;
    const MessageId message = sending.descriptor.message;
    co_await look_at_dma("look whether the message has left", message);
    if (!sending.last->done && !without_.leaving) co_return;
    if (sending.sequence >= 0) leave_unacknowledged(sending);
    if (sending.descriptor.own || sending.sequence >= 0) {
        sending_.reset();
        co_return;
    }
    co_await design_.completions->on_nic(*this, message,
                                         [this, vi, message] { events_.sent(vi, message); });
    sending_.reset();
}

/// From the Send-FIFO into the interface, which begins to transmit with the first word.
Task<> Adapter::leave(Packet packet, SharedTransfer transfer) {
    const Duration span = time_of(packet.length, costs_.internal_bus);
    const Time begin = std::max(schedule_.now(), rhs_.free());
    packet.tail = begin + span;
    counts_.bytes_sent += packet.length;
    network_.transmit(packet);
    co_await rhs_.use(span, {Share::fifo, "FIFO to the interface", packet.message});
    send_fifo_.release(packet.length);
    transfer->end();
}

}  // namespace via::lab
