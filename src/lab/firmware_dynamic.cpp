// The firmware where look-ups may miss: what it does not find it asks the host for, and goes on
// with its loop. A packet that misses waits (`holds`), or is dropped; then messages are numbered
// between two NICs, acknowledged when they are whole, and sent again, from the oldest on, after a
// time.
#include <algorithm>
#include <utility>

#include "lab/adapter.hpp"

namespace via::lab {

void Adapter::miss(MissingLine line) {
    ++counts_.miss_interrupts;
    line.fill = [this, fill = std::move(line.fill)] {
        wake();
        fill();
    };
    events_.miss(std::move(line));
}

/// Of a send: its process, and where its next page lies. False: not yet.
Task<bool> Adapter::find_for_send(Sending& sending, std::int64_t address) {
    const PhysicalDescriptor& descriptor = sending.descriptor;
    const MessageId message = descriptor.message;
    if (!sending.process_known) {
        const Handle process{descriptor.process, 0};
        sending.process_known = co_await design_.processes->find(*this, process, message);
        if (!sending.process_known) co_return false;
    }
    Lookup* const pages = design_.translation->lookup();
    const std::int64_t page = address / costs_.page;
    if (pages == nullptr || page == sending.page) co_return true;
    const std::uint64_t before = counts_.misses;
    const bool found = co_await pages->find(*this, {descriptor.process, page}, message);
    counts_.send_misses += counts_.misses - before;
    if (found) sending.page = page;
    co_return found;
}

/// False: the packet was dropped, or waits; take_packet() has nothing more to do with it.
Task<bool> Adapter::admit(const Packet& packet) {
    Inbound& inbound = inbound_[packet.from];
    if (packet.sequence >= 0 &&
        (packet.sequence != inbound.expected || packet.offset != inbound.progress)) {
        ++counts_.discarded;
        if (packet.sequence < inbound.expected && packet.last) acknowledge(packet.from);
        discard(packet);
        co_return false;
    }
    if (!inbound.begun) {
        const bool there = co_await begin_receive(packet);
        if (!there) {
            ++counts_.stalls;
            co_return false;
        }
        inbound.begun = true;
    }
    const bool found = co_await find_for_receive(packet, inbound);
    if (!found) {
        if (design_.holds) co_return false;
        ++counts_.dropped;
        discard(packet);
        co_return false;
    }
    inbound.pages.clear();
    inbound.progress += packet.length;
    if (!packet.last) co_return true;
    inbound = Inbound{inbound.expected + 1, 0, false, false, false, {}};
    if (packet.sequence >= 0) acknowledge(packet.from);
    co_return true;
}

/// What was found stays found until the packet has gone through.
Task<bool> Adapter::find_for_receive(const Packet& packet, Inbound& inbound) {
    Receiving& receiving = receiving_.at(packet.from);
    if (!receiving.placed) co_return true;
    const Landing& landing = packet.landing;
    const std::uint32_t process = landing.named ? landing.process : receiving.descriptor.process;
    if (!inbound.process_known) {
        inbound.process_known =
            co_await design_.processes->find(*this, {process, 0}, packet.message);
        if (!inbound.process_known) co_return false;
    }
    if (!inbound.buffer_known && landing.named) {
        const Handle buffer{process, landing.buffer};
        inbound.buffer_known = co_await design_.buffers->find(*this, buffer, packet.message);
        if (!inbound.buffer_known) co_return false;
    }
    Lookup* const pages = design_.translation->lookup();
    if (pages == nullptr || packet.length == 0) co_return true;
    const std::int64_t start = receiving.descriptor.buffer.address + packet.offset;
    const std::int64_t last = (start + packet.length - 1) / costs_.page;
    for (std::int64_t page = start / costs_.page; page <= last; ++page) {
        const bool known = std::ranges::find(inbound.pages, page) != inbound.pages.end();
        if (known || page == receiving.page) continue;
        const bool found = co_await pages->find(*this, {process, page}, packet.message);
        if (!found) co_return false;
        inbound.pages.push_back(page);
    }
    receiving.page = last;
    co_return true;
}

/// It goes to nobody as it comes off the wire.
void Adapter::discard(const Packet& packet) {
    arrived_.pop_front();
    schedule_.spawn(let_go(packet));
}

Task<> Adapter::let_go(Packet packet) {
    if (packet.tail > schedule_.now()) co_await schedule_.sleep(packet.tail - schedule_.now());
    network_.taken(packet);
}

// Numbers and acknowledgements --------------------------------------------------------------------

/// All messages of that NIC that are whole here; one that waits to be sent says so for later ones.
void Adapter::acknowledge(NodeId from) {
    const std::int64_t taken = inbound_[from].expected;
    for (PhysicalDescriptor& waiting : own_) {
        if (waiting.acknowledges < 0 || waiting.target->node != from) continue;
        waiting.acknowledges = taken;
        return;
    }
    PhysicalDescriptor answer;
    answer.target = Target{from, 0, {false, false, false, 0, 0, 0}};
    answer.own = true;
    answer.acknowledges = taken;
    own_.push_back(answer);
}

/// A message gets its number when it is sent for the first time.
void Adapter::number(Sending& sending) {
    const PhysicalDescriptor& descriptor = sending.descriptor;
    sending.to = descriptor.target ? descriptor.target->node : peers_.at(descriptor.vi);
    if (!numbered() || descriptor.acknowledges >= 0 || sending.sequence >= 0) return;
    Outbound& outbound = outbound_[sending.to];
    sending.sequence = outbound.next++;
    outbound.unacknowledged.push_back({descriptor, sending.sequence});
}

Task<> Adapter::take_acknowledgement(Packet packet) {
    discard(packet);
    Outbound& outbound = outbound_[packet.from];
    auto& waiting = outbound.unacknowledged;
    while (!waiting.empty() && waiting.front().sequence < packet.acknowledges) {
        const PhysicalDescriptor done = waiting.front().descriptor;
        waiting.pop_front();
        if (done.own) continue;
        co_await design_.completions->on_nic(*this, done.message,
                                             [this, done] { events_.sent(done.vi, done.message); });
    }
}

/// Runs from when a message has left. Whatever is sent again has a timer of its own then.
Task<> Adapter::retransmit_later(NodeId to, std::int64_t sequence, std::uint32_t sent) {
    co_await schedule_.sleep(Duration{costs_.miss_retransmit});
    Outbound& outbound = outbound_[to];
    const auto found =
        std::ranges::find(outbound.unacknowledged, sequence, &Unacknowledged::sequence);
    if (found == outbound.unacknowledged.end() || found->sent != sent) co_return;
    wake();
    for (Unacknowledged& message : outbound.unacknowledged) {
        ++message.sent;
        if (std::exchange(message.again, true)) continue;
        again_.push_back({to, message.sequence});
    }
}

/// The next one that is to be sent again; false: there is none.
bool Adapter::begin_again() {
    while (!again_.empty()) {
        const auto [to, sequence] = again_.front();
        again_.pop_front();
        auto& waiting = outbound_[to].unacknowledged;
        const auto found = std::ranges::find(waiting, sequence, &Unacknowledged::sequence);
        if (found == waiting.end()) continue;  // acknowledged since
        found->again = false;
        ++counts_.retransmissions;
        sending_.emplace();
        sending_->descriptor = found->descriptor;
        sending_->sequence = sequence;
        sending_->to = to;
        cut_up(*sending_);
        return true;
    }
    return false;
}

/// Its packets have left: it is over when the other NIC says so.
void Adapter::leave_unacknowledged(const Sending& sending) {
    auto& waiting = outbound_[sending.to].unacknowledged;
    const auto found = std::ranges::find(waiting, sending.sequence, &Unacknowledged::sequence);
    if (found == waiting.end()) return;
    schedule_.spawn(retransmit_later(sending.to, sending.sequence, found->sent));
}

}  // namespace via::lab
