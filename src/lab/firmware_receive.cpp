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

Task<> Adapter::receive_step() {
    if (entering_) {
        const bool ended = co_await end_packet();
        if (!ended) co_return;
    }
    co_await look_for_work("look for packets");
    if (arrived_.empty()) co_return;
    co_await take_packet(arrived_.front());
    if (entering_) co_await end_packet();
}

Task<> Adapter::take_packet(Packet packet) {
    if (!receive_fifo_.try_reserve(packet.length + commands_room)) {
        ++counts_.fifo_waits;
        co_return;
    }
    co_await step(costs_.words_decode, "decode the packet's headers", packet.message);
    if (packet.offset == 0) {
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
    co_await start_pieces(packet, receiving_.at(packet.vi));
    co_await step(costs_.words_start_rhs, "let the packet into the FIFO", packet.message);
    schedule_.spawn(arrive(packet, entering_transfer_));
}

/// False: no descriptor is there.
Task<bool> Adapter::begin_receive(const Packet& packet) {
    Queue& queue = receives_[packet.vi];
    look_at(queue, true, packet.vi);
    if (queue.on_nic.empty()) co_return false;
    Receiving& receiving = receiving_[packet.vi];
    receiving = {queue.on_nic.front(), packet.message, 0, -1};
    receiving.descriptor.message = packet.message;
    queue.on_nic.pop_front();
    look_at(queue, true, packet.vi);
    co_await design_.descriptors->take(*this, receiving.descriptor, true);
    co_return true;
}

/// A command for each page of the receiver's buffer that the packet touches.
Task<> Adapter::start_pieces(const Packet& packet, Receiving& receiving) {
    if (packet.length == 0) co_return;
    const std::int64_t start = receiving.descriptor.buffer.address + packet.offset;
    const MessageId message = packet.message;
    for (const Buffer& piece : cut({start, packet.length}, packet.length, costs_.page)) {
        co_await locate(piece.address, receiving.page, message);
        co_await step(costs_.words_start_lhs_receive, "start the DMA to the host", message);
        lhs_.push({true, piece.length, Share::bus, "DMA to the host", message, entering_transfer_,
                   [this, length = piece.length] { receive_fifo_.release(length); }});
    }
    receiving.length += packet.length;
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
    entering_.reset();
    counts_.bytes_received += packet.length;
    if (!packet.last) co_return true;
    const std::int64_t length = receiving_.at(packet.vi).length;
    receiving_.erase(packet.vi);
    co_await design_.completions->on_nic(*this, packet.message, [this, packet, length] {
        events_.received(packet.vi, packet.message, length);
    });
    co_return true;
}

}  // namespace via::lab
