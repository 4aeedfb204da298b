// SPDX-License-Identifier: Apache-2.0
// Eager by stores: cache lines that the two ends of a connection inside one host have mapped, so
// that a short message costs neither of them a descriptor.
#pragma once

#include <atomic>
#include <cstring>
#include <utility>

#include "nic.hpp"
#include "rdm/wire.hpp"

namespace via::fabric::rdm {

/// Some bytes, most often a number or two.
[[gnu::always_inline]] inline void copy_short(void* to, const void* from, std::size_t length) {
    if (length == sizeof(std::uint64_t)) [[likely]] {
        std::memcpy(to, from, sizeof(std::uint64_t));
    } else if (length != 0) {
        std::memcpy(to, from, length);
    }
}

/// What lies in a line; either end may write there at any time. `word` says that there is a
/// message. Bits 32 to 63: which one it is of those that the end has stored, from 1; 16 to 31: its
/// number, as of a header; 8 to 15: its length; 0 to 7: the flags of a header. Where the length is
/// `is_long` it stands in `length`, and the bytes lie in the room behind the lines that belongs to
/// this one.
struct alignas(64) StoredMessage {
    static constexpr std::uint8_t is_long = 0xFF;
    std::uint64_t word;
    std::uint64_t tag;
    std::uint32_t data;
    std::uint32_t length;
    std::byte bytes[40];
};
static_assert(sizeof(StoredMessage) == 64);

/// Of each end, behind the rooms: where its process is, for who pulls from its memory. It names
/// itself; `challenge` is the other end's.
struct alignas(64) Whereabouts {
    std::uint64_t process;
    std::uint64_t address;  ///< where it has the lines
    std::uint64_t challenge;
};

/// Of each end, in a line that it alone writes: what it took out of the other's. Bits 16 to 47: how
/// many; 0 to 15: the number of its own next message.
struct alignas(64) TakenWord {
    std::uint64_t word;
};

/// Each end has a ring of lines for what it sends; one is free again when it has heard that what
/// lay there was taken, and where all are it begins at the first again, so that two that send each
/// other one message at a time use one line each, which each processor has at hand. It hears by
/// the peer's messages; where none is free by them, it reads the peer's TakenWord, which costs the
/// time of a cache line. What finds no line free takes the VI. All messages of an end are numbered,
/// whichever way they take, and taken in that order.
class SharedLines {
public:
    static constexpr std::size_t room = sizeof(StoredMessage::bytes);
    static constexpr std::size_t long_room = inject_max;
    static constexpr std::uint32_t lines_each = 32;
    /// So many of one end in a row, then one over the VI, from whose traffic VIA sees whether two
    /// programs share a processor (docs/design/turn-and-wake-up.md).
    static constexpr std::uint32_t in_a_row = 31;

    SharedLines() = default;
    ~SharedLines() { close(); }
    SharedLines(const SharedLines&) = delete;
    SharedLines& operator=(const SharedLines&) = delete;

    /// Makes the lines; the peer attaches to them by hello.lines_address and lines_handle. Without
    /// them, for want of memory or descriptors, all goes over the VI.
    void create(Nic& nic, Hello& hello);
    /// Attaches to the lines that the peer of `vi` made, if it did; then open(). Sleeps until its
    /// NIC answers, while messages over the VI may come.
    void attach(Nic& nic, VIP_VI_HANDLE vi, const Hello& hello);
    void open() {
        if (attached_ != nullptr) begin(std::exchange(attached_, nullptr), false);
    }
    void close();
    bool are_open() const { return ours_ != nullptr; }

    /// Copies from the memory of the peer's process, which need not run for it. False: that cannot
    /// be, and what lies in `to` is nothing.
    bool pull(void* to, std::uint64_t address, std::size_t length);
    /// It has not failed so far.
    bool may_pull() const { return theirs_ != nullptr && may_pull_; }

    // Sending -----------------------------------------------------------------------------------
    bool may_store(std::size_t length) {
        return length <= room && left_ != 0 && has_free() && !forked();
    }
    void store(const Header& header, const void* bytes, std::size_t length) {
        StoredMessage& line = next_line();
        copy_short(line.bytes, bytes, length);
        publish(line, header, length);
    }
    /// One that is too long for a line; at most long_room.
    bool may_store_long(std::size_t length) {
        return length > room && left_ != 0 && has_free() && !forked();
    }
    [[gnu::noinline]] void store_long(const Header& header, const void* bytes, std::size_t length);
    /// Puts into the header what the peer must know of a message over the VI.
    void number(Header& header) {
        header.number = sent_;
        header.flags |= taken();
    }
    void sent_one() {
        ++sent_;
        left_ = in_a_row;
    }
    /// The next message shall not come before what the NIC was given.
    void next_by_nic() { left_ = 0; }

    // Receiving ---------------------------------------------------------------------------------
    /// Does the next message of the peer lie there? Then take().
    bool has_next() {
        if (theirs_ == nullptr) return false;
        if (is_next(theirs_[theirs_at_])) return true;
        if (theirs_at_ == 0 || !is_next(theirs_[0])) return false;
        theirs_at_ = 0;
        return true;
    }
    /// What lies there; the bytes may still change. False: the peer breaks the rules. Then
    /// answer(), as soon as the next message may be stored there.
    bool take(Header& header, std::size_t& length) {
        const StoredMessage& message = theirs_[theirs_at_];
        const std::uint64_t found = word(message).load(std::memory_order_acquire);
        length = found >> 8 & 0xFF;
        header = {message.tag, message.data, Kind::eager, static_cast<std::uint8_t>(found), came_};
        bytes_ = message.bytes;
        theirs_at_ = (theirs_at_ + 1) % lines_each;
        ++theirs_stored_;
        ++in_row_;
        count(header.flags);
        return length <= room || take_long(message, length);
    }
    /// Of the message that was taken last.
    const std::byte* bytes() const { return bytes_; }
    void answer() { ++taken_; }
    /// Behind one or several answers: for a peer that has no other news of them.
    void tell_taken() {
        if (theirs_ == nullptr) [[unlikely]]
            return;  // what came last ended the connection
        std::atomic_ref(own_taken_->word).store(found_in(taken_, sent_), std::memory_order_release);
    }
    /// The number of the next message.
    std::uint16_t came() const { return came_; }
    /// That one came over the VI.
    void came_one(std::uint8_t flags) {
        count(flags);
        in_row_ = 0;
    }
    /// The peer has had its row: its next message comes over the VI.
    bool is_at_end_of_row() const { return in_row_ == in_a_row; }

private:
    static std::uint64_t found_in(std::uint32_t count, std::uint16_t number) {
        return std::uint64_t{count} << 16 | number;
    }
    static std::atomic_ref<std::uint64_t> word(const StoredMessage& line) {
        return std::atomic_ref(const_cast<std::uint64_t&>(line.word));
    }
    bool is_next(const StoredMessage& line) const {
        return word(line).load(std::memory_order_acquire) >> 16 == found_in(theirs_stored_, came_);
    }
    StoredMessage& next_line() {
        if (used_ == 0) at_ = 0;
        return ours_[at_];
    }
    void publish(StoredMessage& line, const Header& header, std::size_t length) {
        line.tag = header.tag;
        line.data = header.data;
        word(line).store(found_in(stored_++, sent_++) << 16 | length << 8 | header.flags | taken(),
                         std::memory_order_release);
        at_ = (at_ + 1) % lines_each;
        ++used_;
        --left_;
    }
    bool has_free() { return used_ < lines_each || hear_taken(); }
    [[gnu::noinline]] bool hear_taken();
    [[gnu::noinline]] bool take_long(const StoredMessage& message, std::size_t& length);
    std::uint8_t taken() const { return static_cast<std::uint8_t>(taken_ << flag::taken_shift); }
    void count(std::uint8_t flags) {
        ++came_;
        if (older_ != 0) [[unlikely]] {
            --older_;
            return;
        }
        if (ours_ != nullptr)
            used_ = (stored_ - 1 - (flags >> flag::taken_shift)) % flag::taken_modulus;
    }
    void begin(StoredMessage* memory, bool is_maker);
    bool find_peer();
    bool pull_proven(void* to, std::uint64_t address, std::size_t length);

    StoredMessage* ours_ = nullptr;
    StoredMessage* theirs_ = nullptr;
    std::byte* our_rooms_ = nullptr;  ///< one of long_room for each line
    std::byte* their_rooms_ = nullptr;
    const std::byte* bytes_ = nullptr;
    // The next ones, counted from 1
    std::uint32_t stored_ = 1;
    std::uint32_t theirs_stored_ = 1;
    std::uint32_t at_ = 0;             ///< where the next one goes, unless all are free
    std::uint32_t theirs_at_ = 0;      ///< where their next one comes, unless it is the first line
    std::uint32_t used_ = lines_each;  ///< of ours, as far as we have heard
    std::uint16_t sent_ = 0;
    std::uint16_t came_ = 0;
    /// Out of theirs; where there are none, a number by which the peer finds none free.
    std::uint32_t taken_ = lines_each;
    std::uint16_t older_ = 0;  ///< messages to come that were sent before what we heard
    bool is_maker_ = false;
    std::uint32_t left_ = in_a_row;
    std::uint32_t in_row_ = 0;
    Nic* nic_ = nullptr;
    StoredMessage* attached_ = nullptr;  ///< not open yet

    TakenWord* own_taken_ = nullptr;
    TakenWord* their_taken_ = nullptr;

    // The peer's process, as far as anything was pulled
    Whereabouts* their_whereabouts_ = nullptr;
    std::int32_t process_ = 0;
    std::uint64_t challenge_at_ = 0;
    std::uint64_t challenge_ = 0;
    bool may_pull_ = true;
};

}  // namespace via::fabric::rdm
