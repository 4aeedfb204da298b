#include "lab/software.hpp"

#include <algorithm>
#include <utility>

namespace via::lab {
namespace {

constexpr std::int64_t line_bytes = 64;  ///< that a frame without bytes takes, too

}  // namespace

std::optional<std::string> refusal_of_words(
    const Machine& machine, const std::map<std::string, std::string, std::less<>>& words) {
    if (!machine.has(Has::software) || words.empty()) return std::nullopt;
    return "design of " + machine.name + ": there is no \"" + words.begin()->first +
           "\" of this machine: its NIC is a library";
}

SoftwareNic::SoftwareNic(Schedule& schedule, Ledger& ledger, const Costs& costs,
                         const Without& without, SharedMemory& memory)
    : schedule_(schedule),
      costs_(costs),
      without_(without),
      memory_(memory),
      node_(memory.join(*this)),
      processor_(schedule, ledger, named(node_, "processor")),
      lines_(schedule, ledger, named(node_, "lines")),
      cache_(costs.software_cache),
      changed_(schedule),
      came_changed_(schedule) {
    schedule_.spawn(arrivals());
}

bool SharedMemory::is_cached(const Block& block) const {
    return std::ranges::any_of(nics_,
                               [&](const SoftwareNic* nic) { return nic->cache().holds(block); });
}

SoftwareNic::Room& SoftwareNic::room_of(NodeId sender) {
    std::unique_ptr<Room>& room = rooms_[sender];
    if (!room) room = std::make_unique<Room>(schedule_, costs_.software_room);
    return *room;
}

/// A frame is whole; what does not fit before the end begins at the beginning.
Place SoftwareNic::place_in(NodeId sender, std::int64_t length, bool alone) {
    Room& room = room_of(sender);
    if (alone) return {node_, sender, room.fifo.size(), length};
    if (room.next + length > room.fifo.size()) room.next = 0;
    const Place place{node_, sender, room.next, length};
    room.next += std::max(length, line_bytes);
    return place;
}

/// Of that place, what this processor has to bring from beyond all caches; it has it then. Lines of
/// shared memory may be in another processor's cache.
std::int64_t SoftwareNic::bytes_brought(const Place& place) {
    std::int64_t brought = 0;
    for (std::int64_t done = 0; done < place.length;) {
        const std::int64_t address = place.address + done;
        const Block block{place.of, place.sender, address / Block::bytes};
        const std::int64_t length =
            std::min(Block::bytes - address % Block::bytes, place.length - done);
        if (!(place.sender ? memory_.is_cached(block) : cache_.holds(block))) brought += length;
        cache_.use(block);
        done += length;
    }
    return brought;
}

/// The processor that copies waits for each line. A line is fetched to be written again, and once
/// more to be read: both copies have the same way. What no cache holds takes longer, whether it is
/// read or written.
Task<> SoftwareNic::copy(SoftwareNic& by, Place from, Place to, Work work) {
    if (from.length == 0 || without_.copies) co_return;
    std::int64_t far = by.bytes_brought(from) + by.bytes_brought(to);
    if (without_.cache_end) far = 0;
    const std::int64_t near = 2 * from.length - far;
    co_await move_lines(by.processor_, time_of(near, 2 * costs_.link), work);
    if (far == 0) co_return;
    work.what = "lines that no cache holds";
    co_await move_lines(by.processor_, time_of(far, 2 * costs_.software_far), work);
}

Task<> SoftwareNic::move_lines(Resource& processor, Duration time, Work work) {
    const Time begin = std::max(schedule_.now(), processor.free());
    const Time end = lines_.take(time, work);
    co_await processor.use(std::max(end - begin, Duration{}), work);
}

// Sending -----------------------------------------------------------------------------------------

Task<> SoftwareNic::post_send(ViId vi, Buffer buffer, MessageId message) {
    PhysicalDescriptor descriptor;
    descriptor.vi = vi;
    descriptor.message = message;
    descriptor.buffer = buffer;
    descriptor.target = Target{peers_.at(vi), vi, {}};
    return send(descriptor, false);
}

Task<> SoftwareNic::send(PhysicalDescriptor descriptor, bool by_driver) {
    const MessageId message = descriptor.message;
    if (by_driver)
        co_await processor_.use(Duration{costs_.system_call},
                                {Share::system_call, "system call", message});
    co_await processor_.use(Duration{costs_.user_post}, {Share::user, "post", message});
    co_await transmit(descriptor);
}

void SoftwareNic::send_own(const PhysicalDescriptor& descriptor) {
    schedule_.spawn(answer(descriptor));
}

Task<> SoftwareNic::answer(PhysicalDescriptor descriptor) {
    co_await processor_.use(Duration{costs_.user_post},
                            {Share::user, "the library answers", descriptor.message});
    co_await transmit(descriptor);
}

/// In frames, each of which is the peer's as soon as it has been copied.
Task<> SoftwareNic::transmit(PhysicalDescriptor descriptor) {
    const Target target = *descriptor.target;
    SoftwareNic& to = memory_.at(target.node);
    Fifo& room = to.room_of(node_).fifo;
    std::int64_t done = 0;
    do {
        Frame frame{node_, target.vi, descriptor.message, target.landing, done, 0, false, {}};
        frame.length = std::min(costs_.software_frame, descriptor.buffer.length - done);
        done += frame.length;
        frame.last = done == descriptor.buffer.length;
        const bool alone = room.used() == 0 && frame.last && frame.offset == 0;
        co_await room.reserve(std::max(frame.length, line_bytes));
        frame.place = to.place_in(node_, frame.length, alone);
        const Place from = own(descriptor.buffer.address + frame.offset, frame.length);
        const Work work{Share::copy, "copy into shared memory", frame.message};
        co_await to.copy(*this, from, frame.place, work);
        memory_.note_frame();
        to.came_.push_back(frame);
        to.came_changed_.notify();
    } while (done < descriptor.buffer.length);
    if (listener_) co_return;
    sent_[descriptor.vi].push_back(descriptor.message);
    changed_.notify();
}

Task<MessageId> SoftwareNic::sent(ViId vi, std::int64_t queues) {
    std::deque<MessageId>& sent = sent_[vi];
    while (sent.empty()) co_await changed_.wait();
    const MessageId message = sent.front();
    sent.pop_front();
    co_await poll(queues, message);
    co_return message;
}

// Receiving ---------------------------------------------------------------------------------------

/// What the program's polls find, or the library's thread where it does not poll.
Task<> SoftwareNic::arrivals() {
    for (;;) {
        while (came_.empty()) co_await came_changed_.wait();
        const Frame frame = came_.front();
        came_.pop_front();
        co_await processor_.use(Duration{costs_.software_line},
                                {Share::link, "its line comes to this cache", frame.message});
        if (frame.landing.consumes) {
            inboxes_[frame.vi].early.push_back(frame);
            co_await take_early(frame.vi);
        } else {
            co_await place(frame);
        }
        room_of(frame.from).fifo.release(std::max(frame.length, line_bytes));
    }
}

/// A message waits for its receive, and those behind it with it, unless none will be posted.
Task<> SoftwareNic::take_early(ViId vi) {
    Inbox& inbox = inboxes_[vi];
    while (!inbox.early.empty()) {
        const Frame frame = inbox.early.front();
        if (frame.offset == 0 && inbox.posted.empty()) {
            if (!listener_ || listener_->expects(vi)) co_return;
            inbox.lost.insert(frame.message);
        }
        inbox.early.pop_front();
        co_await place(frame);
    }
}

Task<> SoftwareNic::place(Frame frame) {
    Inbox& inbox = inboxes_[frame.vi];
    const bool lost = inbox.lost.contains(frame.message);
    const bool takes = frame.landing.consumes && !lost;
    if (takes && frame.offset == 0) {
        inbox.taken = inbox.posted.front();
        inbox.posted.pop_front();
        if (listener_) listener_->took(frame.message);
    }
    if (takes || frame.landing.named) {
        const std::int64_t buffer =
            frame.landing.named ? frame.landing.address : inbox.taken.address;
        const Place to = own(buffer + frame.offset, frame.length);
        const Work work{Share::copy, "copy to the buffer", frame.message};
        co_await copy(*this, frame.place, to, work);
    }
    bytes_received_ += frame.length;
    if (!frame.last) co_return;
    co_await processor_.use(Duration{costs_.software_receive},
                            {Share::user, "the receive is done", frame.message});
    inbox.lost.erase(frame.message);
    if (listener_) {
        listener_->received(frame.message);
    } else {
        inbox.whole.push_back(frame.message);
        changed_.notify();
    }
}

Task<> SoftwareNic::post_receive(ViId vi, Buffer buffer) {
    co_await processor_.use(Duration{costs_.software_post_receive},
                            {Share::user, "post a receive", no_message});
    inboxes_[vi].posted.push_back(buffer);
    co_await take_early(vi);
}

void SoftwareNic::take_back(ViId vi, std::int64_t receives) {
    std::deque<Buffer>& posted = inboxes_[vi].posted;
    const auto most = static_cast<std::int64_t>(posted.size());
    posted.erase(posted.begin(), posted.begin() + std::min(most, receives));
}

/// The poll that finds it is part of what a receive costs.
Task<MessageId> SoftwareNic::receive(ViId vi, std::int64_t queues) {
    Inbox& inbox = inboxes_[vi];
    while (inbox.whole.empty()) co_await changed_.wait();
    const MessageId message = inbox.whole.front();
    inbox.whole.pop_front();
    co_await poll(queues - 1, message);
    co_return message;
}

bool SoftwareNic::holds(ViId vi) const {
    const auto found = inboxes_.find(vi);
    return found != inboxes_.end() && !found->second.whole.empty();
}

Task<> SoftwareNic::poll(std::int64_t queues, MessageId message) {
    for (std::int64_t n = 0; n < queues; ++n)
        co_await processor_.use(Duration{costs_.user_poll},
                                {Share::user, "look at a work queue", message});
}

/// Who waits polls first; then a sender wakes it.
Task<> SoftwareNic::wake(Duration waited) {
    if (waited.ns <= costs_.software_spin || without_.sleeping) co_return;
    co_await schedule_.sleep(Duration{costs_.interrupt});
    co_await processor_.use(Duration{costs_.system_call},
                            {Share::system_call, "the wait returns", no_message});
}

}  // namespace via::lab
