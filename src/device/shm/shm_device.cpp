#include "device/shm/shm_device.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/asymmetric_fence.hpp"
#include "device/shm/message.hpp"
#include "device/shm/wake.hpp"

namespace via::device::shm {

namespace {

/// Frames that one channel may deliver before the next one has its turn.
constexpr std::size_t fair_share = 16;

}  // namespace

bool ShmDevice::reserve(PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                        FrameSlot& slot) {
    Channel& channel = *table_[path];
    if (channel.writer.reserve_in_slot(header_length, payload_length, slot)) {
        slot.stream = false;
        return true;
    }
    return reserve_other(channel, header_length, payload_length, slot);
}

/// A frame with its payload in the arena, or any when room is to be looked for.
[[gnu::noinline]] bool ShmDevice::reserve_other(Channel& channel, std::uint32_t header_length,
                                                std::uint32_t payload_length, FrameSlot& slot) {
    if (!channel.writer.reserve(header_length, payload_length, slot) &&
        !reserve_slow(channel, header_length, payload_length, slot)) [[unlikely]]
        return false;
    if (channel.writer.lacks_pages()) [[unlikely]]
        bring_pages(channel);
    // An arena in use that service() has not seen so.
    if (channel.idle_deadline.is_never()) may_have_deadline_ = true;
    slot.stream = payload_length >= large_length_min &&
                  channel.stores.stream(payload_length, [this] { return system_.now(); });
    if (slot.stream) channel.writer.will_stream();
    channel.timed = channel.copies.filled(payload_length) || channel.timed;
    return true;
}

/// An arena that was given back has no pages, and each costs a fault when it is touched: one call
/// for some is cheaper. Where it fails (before Linux 5.14, or for want of memory) they come one by
/// one.
void ShmDevice::bring_pages(Channel& channel) {
    channel.copies.disturbed();
    while (channel.writer.lacks_pages()) {
        const std::span<std::byte> pages = channel.writer.lacking_pages();
        (void)system_.madvise(pages.data(), pages.size(), MADV_POPULATE_WRITE);
    }
}

bool ShmDevice::reserve_slow(Channel& channel, std::uint32_t header_length,
                             std::uint32_t payload_length, FrameSlot& slot) {
    switch (channel.writer.refresh()) {
        case RingWriter::Refresh::same:
            return false;
        case RingWriter::Refresh::moved:
            break;
        case RingWriter::Refresh::lie:
            condemn(channel, "it gave back frames that were never sent");
            return false;
    }
    if (channel.waiting_for_room) channel.set_waiting(false);
    return channel.writer.reserve(header_length, payload_length, slot);
}

void ShmDevice::transmit(PathId path) {
    Channel& channel = *table_[path];
    if (!channel.writer.transmit()) return;
    if (channel.timed) [[unlikely]] {
        channel.timed = false;
        channel.copies.published([this] { return system_.now(); });
    }
    channel.has_sent = true;
    touch(channel);
}

/// One of several: published by notify() at the latest, which the caller calls after them.
[[gnu::noinline]] std::uint32_t ShmDevice::keep_small(Channel& channel, std::uint64_t low,
                                                      std::uint64_t high, const std::byte* payload,
                                                      std::uint32_t length) {
    if (!channel.writer.keep(low, high, payload, length)) return not_sent;
    channel.has_sent = true;
    touch(channel);
    return 0;
}

/// One frame was published: as notify().
[[gnu::always_inline]] inline std::uint32_t ShmDevice::tell_of_sent(Channel& channel) {
    if (touched_ != nullptr) [[unlikely]] {
        channel.has_sent = true;
        touch(channel);
        return notify();
    }
    fence_to(channel.asymmetric);  // as in notify()
    const std::uint32_t word = channel.peer_sleep_word();
    if (sleep_kind(word) == Sleep::awake) [[likely]]
        return 0;
    std::uint32_t calls = 0;
    wake_sleeper(channel, word, true, calls);
    return calls;
}

[[gnu::hot]] std::uint32_t ShmDevice::send_small(PathId path, std::uint64_t low, std::uint64_t high,
                                                 const std::byte* payload, std::uint32_t length,
                                                 bool alone) {
    Channel& channel = *table_[path];
    if (!alone) return keep_small(channel, low, high, payload, length);
    if (channel.mailbox.ours() && channel.writer.all_published()) {
        channel.mailbox.put(low, high, payload, length, channel.writer.published());
    } else if (!channel.writer.put(low, high, payload, length)) [[unlikely]] {
        return not_sent;
    }
    return tell_of_sent(channel);
}

/// By the mailbox alone: what the ring has no line for is written to its arena in place.
std::uint32_t ShmDevice::send_pieces(PathId path, std::uint64_t low, std::uint64_t high,
                                     const Pieces& payload) {
    Channel& channel = *table_[path];
    if (!channel.mailbox.ours() || !channel.writer.all_published()) return not_sent;
    channel.mailbox.put_pieces(low, high, payload, channel.writer.published());
    return tell_of_sent(channel);
}

void ShmDevice::abandon(PathId path) {
    table_[path]->writer.abandon();
    table_[path]->timed = false;
}

void ShmDevice::touch(Channel& channel) {
    if (channel.touched) return;
    channel.touched = true;
    channel.next_touched = touched_;
    touched_ = &channel;
}

std::uint32_t ShmDevice::notify() {
    std::uint32_t calls = 0;
    Channel* channel = std::exchange(touched_, nullptr);
    if (channel == nullptr) return 0;
    bool asymmetric = true;
    for (Channel* at = channel; at != nullptr; at = at->next_touched) {
        at->writer.publish_kept();
        asymmetric = asymmetric && at->asymmetric;
    }
    // The peers' asleep words are read after what we published.
    fence_to(asymmetric);
    while (channel != nullptr) {
        Channel* next = channel->next_touched;
        channel->touched = false;
        wake(*channel, std::exchange(channel->has_sent, false), calls);
        channel = next;
    }
    return calls;
}

/// After a fence_to(): wakes the peer if it sleeps and frames were sent, or room came that it
/// waits for.
inline void ShmDevice::wake(Channel& channel, bool sent, std::uint32_t& calls) {
    const std::uint32_t word = channel.peer_sleep_word();
    if (sleep_kind(word) != Sleep::awake) [[unlikely]]
        wake_sleeper(channel, word, sent, calls);
}

void ShmDevice::wake_sleeper(Channel& channel, std::uint32_t word, bool sent,
                             std::uint32_t& calls) {
    if (channel.state == Channel::State::ended || channel.departing) return;
    if (!sent && !channel.peer_waits_for_room()) return;
    if (channel.wake(system_, word, calls)) return;
    wake_again_ = true;
    may_have_deadline_ = true;
    channel.has_sent = true;
    touch(channel);
}

[[gnu::hot]] std::size_t ShmDevice::receive(std::span<Frame> frames) {
    if (taken_ != nullptr) release();
    if (live_.size() != 1 || frames.size() > fair_share) return receive_fairly(frames);
    Channel& channel = *live_.front();
    if (channel.mailbox.just_sent()) [[unlikely]]
        await_answer(channel);
    return channel.mailbox.look().is_there || channel.reader.pending() ? take(channel, frames)
                                                                       : take_nothing(channel);
}

/// Nobody else is kept waiting, and nothing is there to be taken.
[[gnu::noinline, gnu::hot]] void ShmDevice::await_answer(Channel& channel) {
    if (channel.reader.pending()) return channel.mailbox.forget();
    channel.mailbox.await_answer();
    bool answered = channel.pending();
    channel.mailbox.judge(answered);
    for (std::uint32_t n = channel.mailbox.looks_more(); n != 0 && !answered; --n)
        answered = channel.pending();
}

/// From several.
[[gnu::noinline]] std::size_t ShmDevice::receive_fairly(std::span<Frame> frames) {
    std::size_t count = 0;
    std::size_t without = 0;  // channels in a row that had less than their share
    while (without < live_.size() && count < frames.size()) {
        if (cursor_ >= live_.size()) cursor_ = 0;
        Channel& channel = *live_[cursor_];
        const std::size_t share = std::min(frames.size() - count, fair_share);
        const std::size_t got = take(channel, frames.subspan(count, share));
        count += got;
        if (channel.state != Channel::State::live) continue;  // another one has its place now
        without = got == share ? 0 : without + 1;
        ++cursor_;
    }
    return count;
}

/// May end the channel, which takes it out of live_.
[[gnu::hot]] inline std::size_t ShmDevice::take(Channel& channel, std::span<Frame> frames) {
    const Arrival arrival = take_in_order(channel.reader, channel.mailbox, frames, channel.path);
    if (arrival.by_mailbox) {
        channel.writer.came();  // the frame is copied: there is nothing to release
    } else if (arrival.count != 0) {
        channel.writer.expect_answer();
        if (!channel.taken) {
            channel.taken = true;
            channel.next_taken = taken_;
            taken_ = &channel;
        }
    }
    if (arrival.why == RingReader::Take::lie) [[unlikely]] {
        condemn(channel, "a frame's lengths or offset are out of bounds");
    } else if (arrival.count == 0) {
        take_nothing(channel);
    } else if (channel.departing) [[unlikely]] {
        // One that hung up but goes on writing gets no more than a full ring delivered.
        if (channel.frames_taken() - channel.drain_from > channel.reader.slots()) end(channel);
    }
    return arrival.count;
}

/// Its ring was found empty.
inline std::size_t ShmDevice::take_nothing(Channel& channel) {
    if (channel.departing) [[unlikely]] {
        end(channel);
        return 0;
    }
    if (channel.reader.unannounced()) went_idle(channel);
    if (channel.writer.cold()) channel.writer.warm();
    return 0;
}

/// The first empty poll after frames: nothing better to do than to tell the peer of its room. It
/// may wait for just that, and nobody needs to call notify() after an empty poll.
[[gnu::noinline]] void ShmDevice::went_idle(Channel& channel) {
    channel.reader.announce();
    fence_to(channel.asymmetric);
    std::uint32_t calls = 0;
    wake(channel, false, calls);
}

bool ShmDevice::release() {
    Channel* channel = std::exchange(taken_, nullptr);
    bool announced = false;
    while (channel != nullptr) {
        channel->taken = false;
        channel->reader.release();
        if (channel->reader.announce_due()) [[unlikely]] {
            channel->reader.announce();
            touch(*channel);
            announced = true;
        }
        channel = channel->next_taken;
    }
    return announced;
}

void ShmDevice::condemn(PathId path, const char* reason) {
    VIA_ASSERT(path < table_.size() && table_[path] != nullptr);
    condemn(*table_[path], reason);
}

void ShmDevice::condemn(Channel& channel, const char* reason) {
    if (channel.state == Channel::State::ended) return;
    channel.end_reason = reason;
    end(channel);
    report("shm: the connection to " + describe(channel) +
           " is cut, it broke the protocol: " + reason);
}

void ShmDevice::go_live(Channel& channel) {
    if (channel.state != Channel::State::opening) return;
    channel.state = Channel::State::live;
    channel.live_index = static_cast<std::uint32_t>(live_.size());
    live_.push_back(&channel);
    channel.set_sleep_word(sleep_word(sleep_, sleep_count_));
}

/// No frames from now on; the down event waits to be taken. No system call.
void ShmDevice::end(Channel& channel) {
    if (channel.state == Channel::State::live) {
        live_.back()->live_index = channel.live_index;
        live_[channel.live_index] = live_.back();
        live_.pop_back();
    }
    channel.state = Channel::State::ended;
    channel.writer.close();
    ended_.push_back(&channel);
    may_have_events_ = true;
}

bool ShmDevice::next_event(PathEvent& event) {
    if (!events_.empty()) {
        event = events_.front();
        events_.pop_front();
        if (event.kind != PathEventKind::unresolved) go_live(*table_[event.path]);
        return true;
    }
    for (std::size_t i = 0; i < ended_.size(); ++i) {
        Channel& channel = *ended_[i];
        if (channel.taken) continue;  // its frames are still being read
        event = {PathEventKind::down, channel.path};
        ended_.erase(ended_.begin() + static_cast<std::ptrdiff_t>(i));
        destroy(channel);
        return true;
    }
    may_have_events_ = !ended_.empty();
    return false;
}

void ShmDevice::destroy(Channel& channel) {
    for (Channel** at = &touched_; *at != nullptr; at = &(*at)->next_touched) {
        if (*at != &channel) continue;
        *at = channel.next_touched;
        break;
    }
    Introduction& peer = channel.peer_info;
    unwatch(peer.socket.get());
    if (peer.process.valid()) unwatch(peer.process.get());
    if (!channel.end_reason.empty()) say_goodbye(system_, peer.socket.get(), channel.end_reason);
    // A forked child may hold the socket too: closing alone would not tell the peer.
    system_.shutdown(peer.socket.get());
    free_paths_.push_back(channel.path);
    table_[channel.path].reset();
}

void ShmDevice::arm(Sleep sleep) {
    if (taken_ != nullptr) release();
    sleep_ = sleep;
    ++sleep_count_;
    may_have_deadline_ = false;  // our caller asks for it after this
    const std::uint32_t word = sleep_word(sleep, sleep_count_);
    bool announced = false;
    bool asymmetric = false;
    for (Channel* channel : live_) {
        channel->set_sleep_word(word);
        asymmetric = asymmetric || channel->asymmetric;
        if (sleep == Sleep::awake || !channel->reader.unannounced()) continue;
        channel->reader.announce();
        touch(*channel);
        announced = true;
    }
    // Nobody calls notify() any more before the sleep.
    if (announced) notify();
    // The caller's own fence and look follow.
    if (sleep != Sleep::awake && asymmetric) heavy_fence(FenceReach::host);
}

void ShmDevice::set_waiting_for_room(PathId path) { table_[path]->set_waiting(true); }

bool ShmDevice::has_work() {
    if (!events_.empty()) return true;
    for (const Channel* channel : ended_) {
        if (!channel->taken) return true;
    }
    for (Channel* channel : live_) {
        if (channel->pending() || channel->departing) return true;
        if (channel->waiting_for_room && channel->writer.room_came()) {
            channel->set_waiting(false);  // told once; who still lacks room says so again
            return true;
        }
    }
    return false;
}

std::size_t ShmDevice::wake_words(std::span<WakeWord> words) {
    const std::size_t count = std::min(words.size(), live_.size());
    for (std::size_t i = 0; i < count; ++i) {
        words[i] = live_[i]->wake_word();
        words[i].number = static_cast<std::uint32_t>(i);
    }
    return live_.size();
}

void ShmDevice::woken_by(const WakeWord& word) {
    if (word.number < live_.size()) live_[word.number]->woken_by(word);
}

HostAddress ShmDevice::peer_address(PathId path) const {
    VIA_ASSERT(path < table_.size() && table_[path] != nullptr);
    return table_[path]->peer_info.address;
}

}  // namespace via::device::shm
