// The firmware's arrivals: a packet at a time, from the interface through the Recv/Cmd-FIFO to the
// host, and the status of the descriptor behind the last one.
#include <algorithm>
#include <utility>

#include "lab/adapter.hpp"

namespace via::lab {
namespace {

constexpr std::int64_t command_bytes = 8;  // of a packet: of its data, and of the status
constexpr std::int64_t commands_room = 2 * command_bytes;

}  // namespace

/// There is a packet that has arrived.
Task<> Adapter::receive_step() {
    co_await take_packet(arrived_.front());
    if (entering_) co_await end_packet();
}

Task<> Adapter::take_packet(Packet packet) {
    if (!receive_fifo_.try_reserve(packet.length + commands_room)) {
        ++counts_.fifo_waits;
        co_return;
    }
    co_await step(costs_.words_decode, "decode the packet's headers", packet.message);
    if (packet.acknowledges >= 0) {
        receive_fifo_.release(packet.length + commands_room);
        co_await take_acknowledgement(packet);
        co_return;
    }
    if (dynamic_) {
        const bool admitted = co_await admit(packet);
        if (!admitted) {
            receive_fifo_.release(packet.length + commands_room);
            co_return;
        }
    } else if (packet.offset == 0) {
        const bool there = co_await begin_receive(packet);
        if (!there) {
            ++counts_.stalls;
            receive_fifo_.release(packet.length + commands_room);
            co_return;
        }
    }
    arrived_.pop_front();
    entering_ = packet;
    entering_transfer_ = std::make_shared<Transfer>(schedule_);
    if (!staged()) co_await start_pieces(packet, receiving_.at(packet.from));
    co_await step(costs_.words_start_rhs, "let the packet into the FIFO", packet.message);
    came_in_last_ = true;
    schedule_.spawn(arrive(packet, entering_transfer_));
}

/// False: no descriptor is there yet.
Task<bool> Adapter::begin_receive(const Packet& packet) {
    Receiving begun;
    begun.message = begun.descriptor.message = packet.message;
    begun.placed = packet.landing.named;
    if (packet.landing.consumes) {
        Queue& queue = receives_[packet.vi];
        look_at(queue, true, packet.vi);
        if (queue.on_nic.empty() && events_.expects(packet.vi)) co_return false;
        if (queue.on_nic.empty()) {
            ++counts_.nowhere;
        } else {
            begun.descriptor = queue.on_nic.front();
            begun.descriptor.message = packet.message;
            begun.placed = true;
            queue.on_nic.pop_front();
            events_.took(packet.message);
            look_at(queue, true, packet.vi);
            co_await design_.descriptors->take(*this, begun.descriptor, true);
        }
    }
    if (packet.landing.named) begun.descriptor.buffer.address = packet.landing.address;
    receiving_[packet.from] = begun;
    co_return true;
}

/// A command for each page of the receiver's buffer that the packet touches.
Task<> Adapter::start_pieces(const Packet& packet, Receiving& receiving) {
    receiving.length += packet.length;
    if (packet.length == 0 || !receiving.placed) co_return;
    const std::int64_t start = receiving.descriptor.buffer.address + packet.offset;
    const MessageId message = packet.message;
    const std::vector<Buffer> pieces = cut({start, packet.length}, packet.length, costs_.page);
    // All pages first: a fetched translation would wait in the engine's queue behind bytes that are
    // not let into the FIFO yet.
    for (const Buffer& piece : pieces) {
        if (design_.translation->lookup() != nullptr) break;  // they were found before
        if (packet.landing.named)
            co_await locate_named(piece.address, receiving.page, message);
        else
            co_await locate(piece.address, receiving.page, message);
    }
    std::int64_t left = packet.length;
    for (const Buffer& piece : pieces) {
        co_await step(costs_.words_start_lhs_receive, "start the DMA to the host", message);
        left -= piece.length;
        // Nothing else tells when the last byte of an RDMA is there.
        const bool tells = left == 0 && packet.last && !packet.landing.reports;
        lhs_.push({true, piece.length, Share::bus, "DMA to the host", message, entering_transfer_,
                   [this, length = piece.length, packet, tells, all = receiving.length] {
                       receive_fifo_.release(length);
                       if (tells) tell_of(packet, all);
                   }});
    }
}

/// No descriptor says where the page lies.
Task<> Adapter::locate_named(std::int64_t address, std::int64_t& page, MessageId message) {
    if (address / costs_.page == page) co_return;
    page = address / costs_.page;
    co_await design_.rdma->locate(*this, address, message);
}

Task<> Adapter::translate_named(std::int64_t address, MessageId message) {
    if (!design_.translation->in_kernel()) {
        co_await design_.translation->on_nic(*this, address, message);
        co_return;
    }
    ++counts_.translations;
    if (without_.misses) co_return;
    ++counts_.misses;
    co_await fetch(8, Share::translation, "fetch a translation", message);
}

/// From the interface into the FIFO, as fast as it comes off the wire.
Task<> Adapter::arrive(Packet packet, SharedTransfer transfer) {
    const Time begin = std::max(schedule_.now(), rhs_.free());
    const Duration span =
        std::max(time_of(packet.length, costs_.internal_bus), packet.tail - begin);
    transfer->begin();
    co_await rhs_.use(span, {Share::fifo, "interface to the FIFO", packet.message});
    network_.taken(packet);
    receive_fifo_.release(commands_room);
    transfer->end();
}

/// What follows the packet in the FIFO can be put there. False: it is still coming in.
Task<bool> Adapter::end_packet() {
    const Packet packet = *entering_;
    co_await look_at_dma("look whether the packet is in", packet.message);
    if (!entering_transfer_->done) co_return false;
    if (staged()) co_await start_pieces(packet, receiving_.at(packet.from));
    entering_.reset();
    counts_.bytes_received += packet.length;
    const Receiving receiving = receiving_.at(packet.from);
    if (!receiving.placed) receive_fifo_.release(packet.length);
    if (!packet.last) co_return true;
    const std::int64_t length = receiving.length;
    receiving_.erase(packet.from);
    const bool lost = packet.landing.consumes && !receiving.placed;
    if (!packet.landing.reports || lost) {
        const bool told = receiving.placed && packet.length != 0;  // by its last DMA
        if (!told) tell_of(packet, length);
        co_return true;
    }
    co_await design_.completions->on_nic(*this, packet.message,
                                         [this, packet, length] { tell_of(packet, length); });
    co_return true;
}

void Adapter::tell_of(const Packet& last, std::int64_t length) {
    const bool copies = last.landing.named && length > 0 && design_.rdma->host_copies();
    events_.received(last.vi, last.message, length, copies);
}

}  // namespace via::lab
