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
    Channel& channel = channels_.at(path);
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
            channels_.close_for_violation(channel, "it gave back frames that were never sent");
            return false;
    }
    if (channel.waiting_for_room) channel.set_waiting(false);
    return channel.writer.reserve(header_length, payload_length, slot);
}

void ShmDevice::transmit(PathId path) {
    Channel& channel = channels_.at(path);
    if (!channel.writer.transmit()) return;
    if (channel.timed) [[unlikely]] {
        channel.timed = false;
        channel.copies.published([this] { return system_.now(); });
    }
    channel.has_sent = true;
    channels_.touch(channel);
}

/// One of several: published by notify() at the latest, which the caller calls after them.
[[gnu::noinline]] std::uint32_t ShmDevice::keep_small(Channel& channel, std::uint64_t low,
                                                      std::uint64_t high, const std::byte* payload,
                                                      std::uint32_t length) {
    if (!channel.writer.keep(low, high, payload, length)) return not_sent;
    channel.has_sent = true;
    channels_.touch(channel);
    return 0;
}

/// One frame was published: as notify().
[[gnu::always_inline]] inline std::uint32_t ShmDevice::tell_of_sent(Channel& channel) {
    if (channels_.any_touched()) [[unlikely]] {
        channel.has_sent = true;
        channels_.touch(channel);
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
    Channel& channel = channels_.at(path);
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
    Channel& channel = channels_.at(path);
    if (!channel.mailbox.ours() || !channel.writer.all_published()) return not_sent;
    channel.mailbox.put_pieces(low, high, payload, channel.writer.published());
    return tell_of_sent(channel);
}

std::uint32_t ShmDevice::notify() {
    std::uint32_t calls = 0;
    Channel* channel = channels_.release_touched();
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
    channels_.touch(channel);
}

[[gnu::hot]] std::size_t ShmDevice::receive(std::span<Frame> frames) {
    if (channels_.any_taken()) release();
    if (channels_.live().size() != 1 || frames.size() > fair_share) return receive_fairly(frames);
    Channel& channel = *channels_.live().front();
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
    while (without < channels_.live().size() && count < frames.size()) {
        if (cursor_ >= channels_.live().size()) cursor_ = 0;
        Channel& channel = *channels_.live()[cursor_];
        const std::size_t share = std::min(frames.size() - count, fair_share);
        const std::size_t got = take(channel, frames.subspan(count, share));
        count += got;
        if (channel.state != Channel::State::live) continue;  // another one has its place now
        without = got == share ? 0 : without + 1;
        ++cursor_;
    }
    return count;
}

/// May end the channel, which takes it out of channels_.live().
[[gnu::hot]] inline std::size_t ShmDevice::take(Channel& channel, std::span<Frame> frames) {
    const Arrival arrival = take_in_order(channel.reader, channel.mailbox, frames, channel.path);
    if (arrival.by_mailbox) {
        channel.writer.came();  // the frame is copied: there is nothing to release
    } else if (arrival.count != 0) {
        channel.writer.expect_answer();
        channels_.note_taken(channel);
    }
    if (arrival.why == RingReader::Take::lie) [[unlikely]] {
        channels_.close_for_violation(channel, "a frame's lengths or offset are out of bounds");
    } else if (arrival.count == 0) {
        take_nothing(channel);
    } else if (channel.departing) [[unlikely]] {
        // One that hung up but goes on writing gets no more than a full ring delivered.
        if (channel.frames_taken() - channel.drain_from > channel.reader.slots())
            channels_.end(channel);
    }
    return arrival.count;
}

/// Its ring was found empty.
inline std::size_t ShmDevice::take_nothing(Channel& channel) {
    if (channel.departing) [[unlikely]] {
        channels_.end(channel);
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
    Channel* channel = channels_.release_taken();
    bool announced = false;
    while (channel != nullptr) {
        channel->taken = false;
        channel->reader.release();
        if (channel->reader.announce_due()) [[unlikely]] {
            channel->reader.announce();
            channels_.touch(*channel);
            announced = true;
        }
        channel = channel->next_taken;
    }
    return announced;
}

void ShmDevice::close_for_violation(PathId path, const char* reason) {
    VIA_ASSERT(channels_.has(path));
    channels_.close_for_violation(channels_.at(path), reason);
}

void ShmDevice::arm(Sleep sleep) {
    if (channels_.any_taken()) release();
    may_have_deadline_ = false;  // our caller asks for it after this
    channels_.set_sleep_word(sleep_word(sleep, ++sleep_count_));
    bool announced = false;
    bool asymmetric = false;
    for (Channel* channel : channels_.live()) {
        asymmetric = asymmetric || channel->asymmetric;
        if (sleep == Sleep::awake || !channel->reader.unannounced()) continue;
        channel->reader.announce();
        channels_.touch(*channel);
        announced = true;
    }
    // Nobody calls notify() any more before the sleep.
    if (announced) notify();
    // The caller's own fence and look follow.
    if (sleep != Sleep::awake && asymmetric) heavy_fence(FenceReach::host);
}

void ShmDevice::set_waiting_for_room(PathId path) { channels_.at(path).set_waiting(true); }

bool ShmDevice::has_work() {
    if (channels_.has_event()) return true;
    for (Channel* channel : channels_.live()) {
        if (channel->pending() || channel->departing) return true;
        if (channel->waiting_for_room && channel->writer.room_came()) {
            channel->set_waiting(false);  // told once; who still lacks room says so again
            return true;
        }
    }
    return false;
}

std::size_t ShmDevice::wake_words(std::span<WakeWord> words) {
    const std::size_t count = std::min(words.size(), channels_.live().size());
    for (std::size_t i = 0; i < count; ++i) {
        words[i] = channels_.live()[i]->wake_word();
        words[i].number = static_cast<std::uint32_t>(i);
    }
    return channels_.live().size();
}

void ShmDevice::woken_by(const WakeWord& word) {
    if (word.number < channels_.live().size()) channels_.live()[word.number]->woken_by(word);
}

HostAddress ShmDevice::peer_address(PathId path) const {
    VIA_ASSERT(channels_.has(path));
    return channels_.at(path).peer_info.address;
}

}  // namespace via::device::shm
