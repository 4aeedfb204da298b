#include "lab/kernel/ethernet.hpp"

#include <algorithm>
#include <utility>

namespace via::lab::kernel {

Wire::Wire(Schedule& schedule, Ledger& ledger, const Costs& costs, const Setting& setting)
    : schedule_(schedule),
      ledger_(ledger),
      costs_(costs),
      setting_(setting),
      switch_(ledger.add_resource("switch")) {}

NodeId Wire::join(Nic& nic) {
    const auto node = static_cast<NodeId>(ports_.size());
    ports_.push_back({&nic, std::make_unique<Resource>(schedule_, ledger_, named(node, "link out")),
                      std::make_unique<Resource>(schedule_, ledger_, named(node, "link in"))});
    return node;
}

std::int64_t Wire::bytes(const Frame& frame) const {
    return std::max(costs_.frame_least, frame.length + frame.header + costs_.frame);
}

Task<> Wire::carry(NodeId from, Frame frame) {
    const std::int64_t size = bytes(frame);
    const Duration span = time_of(size, costs_.link);
    Nic& to = *ports_[frame.to].nic;
    co_await to.receive_buffer_.reserve(size);
    co_await ports_[from].out->use(span, {Share::link, "on the link", frame.message});
    ports_[from].nic->send_buffer_.release(size);
    if (setting_.switched) {
        const Time begin = schedule_.now();
        co_await schedule_.sleep(Duration{costs_.hop});
        ledger_.add(switch_, {Share::switching, "through the switch", frame.message}, begin,
                    schedule_.now());
        co_await ports_[frame.to].in->use(span, {Share::link, "from the switch", frame.message});
    }
    ++frames_;
    payload_bytes_ += frame.length;
    to.came_.push_back(std::move(frame));
    to.more_.notify();
}

Nic::Nic(Schedule& schedule, Ledger& ledger, const Costs& costs, Resource& bus, Wire& wire,
         std::function<void(const Frame&)> arrived)
    : schedule_(schedule),
      costs_(costs),
      wire_(wire),
      arrived_(std::move(arrived)),
      node_(wire.join(*this)),
      read_(schedule, ledger, costs, bus, named(node_, "NIC reads")),
      write_(schedule, ledger, costs, bus, named(node_, "NIC writes")),
      sender_(schedule, ledger, named(node_, "NIC sends")),
      receiver_(schedule, ledger, named(node_, "NIC receives")),
      send_ring_(schedule, costs.ring),
      receive_ring_(schedule, costs.ring),
      send_buffer_(schedule, costs.nic_buffer),
      receive_buffer_(schedule, costs.nic_buffer),
      put_(schedule),
      more_(schedule) {
    schedule_.spawn(send());
    schedule_.spawn(receive());
}

void Nic::put(Frame frame) {
    to_send_.push_back(std::move(frame));
    put_.notify();
}

Task<> Nic::dma(DmaEngine& engine, bool to_host, std::int64_t bytes, Share share, const char* what,
                MessageId message) {
    const auto transfer = std::make_shared<Transfer>(schedule_);
    engine.push({to_host, bytes, share, what, message, nullptr, [transfer] { transfer->end(); }});
    while (!transfer->done) co_await transfer->changed.wait();
}

Task<> Nic::send() {
    for (;;) {
        while (to_send_.empty()) co_await put_.wait();
        Frame frame = std::move(to_send_.front());
        to_send_.pop_front();
        co_await send_buffer_.reserve(wire_.bytes(frame));
        co_await dma(read_, false, costs_.ring_entry, Share::dma_start, "fetch the ring's entry",
                     frame.message);
        for (const std::int64_t piece : frame.pieces) {
            co_await dma(read_, false, piece, Share::bus, "DMA from the host", frame.message);
        }
        send_ring_.release(1);
        if (frame.fetched) frame.fetched();
        co_await sender_.use(Duration{costs_.nic_packet},
                             {Share::firmware, "the NIC's own time", frame.message});
        schedule_.spawn(wire_.carry(node_, std::move(frame)));
    }
}

Task<> Nic::receive() {
    for (;;) {
        while (came_.empty()) co_await more_.wait();
        const Frame frame = std::move(came_.front());
        came_.pop_front();
        co_await receive_ring_.reserve(1);
        co_await receiver_.use(Duration{costs_.nic_packet},
                               {Share::firmware, "the NIC's own time", frame.message});
        co_await dma(write_, true, frame.length + frame.header, Share::bus, "DMA to the host",
                     frame.message);
        co_await dma(write_, true, costs_.ring_entry, Share::completion, "write the ring's entry",
                     frame.message);
        receive_buffer_.release(wire_.bytes(frame));
        arrived_(frame);
    }
}

}  // namespace via::lab::kernel
