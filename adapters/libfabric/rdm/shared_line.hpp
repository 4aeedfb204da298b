// SPDX-License-Identifier: Apache-2.0
// Eager by stores: a cache line that the two ends of a connection inside one host have mapped, so
// that a short message costs neither of them a descriptor.
#pragma once

#include <atomic>
#include <cstring>

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

/// What lies there; either end may write it at any time. `word` says that there is a message. Bits
/// 32 to 63: its number, from 1; 16 to 31: how many messages the same end had sent over the VI
/// before; 8 to 15: its length; 0 to 7: flags.
struct alignas(64) StoredMessage {
    std::uint64_t word;
    std::uint64_t tag;
    std::uint32_t data;
    std::uint32_t zero;
    std::byte bytes[40];
};
static_assert(sizeof(StoredMessage) == 64);

/// The ends take turns: who has taken a message may store the next one, in the same line, which its
/// processor then has at hand. The end that asked for the connection begins. All other messages
/// take the VI; each kind says how many of the other one came before it.
class SharedLine {
public:
    static constexpr std::size_t room = sizeof(StoredMessage::bytes);
    /// So many of one end in a row, then one over the VI: it tells of a peer that is gone, and VIA
    /// sees that there is traffic (docs/design/turn-and-wake-up.md, two on one processor).
    static constexpr std::uint32_t in_a_row = 31;

    SharedLine() = default;
    ~SharedLine() { close(); }
    SharedLine(const SharedLine&) = delete;
    SharedLine& operator=(const SharedLine&) = delete;

    /// Makes the line; the peer attaches to it by hello.line_address and hello.line_handle. Without
    /// it, for want of memory or descriptors, all goes over the VI.
    void create(Nic& nic, Hello& hello);
    /// Attaches to the line that the peer of `vi` made, if it did. Sleeps until its NIC answers.
    void attach(Nic& nic, VIP_VI_HANDLE vi, const Hello& hello);
    void close();
    bool is_open() const { return memory_ != nullptr; }

    // Sending -----------------------------------------------------------------------------------
    bool may_store(std::size_t length) const {
        return turn_ == Turn::ours && length <= room && left_ != 0;
    }
    void store(const Header& header, const void* bytes, std::size_t length) {
        memory_->tag = header.tag;
        memory_->data = header.data;
        copy_short(memory_->bytes, bytes, length);
        word().store(expected(number_++, sent_) << 16 | length << 8 | header.flags,
                     std::memory_order_release);
        turn_ = Turn::theirs;
        ++stored_;
        --left_;
    }
    /// For the header of a message over the VI: how many were stored before it.
    std::uint16_t stored() const { return stored_; }
    void sent_one() {
        ++sent_;
        left_ = in_a_row;
    }

    // Receiving ---------------------------------------------------------------------------------
    bool is_theirs() const { return turn_ == Turn::theirs; }
    /// The next one lies there, and what was sent over the VI before it has come.
    bool has_message() const {
        return is_theirs() &&
               word().load(std::memory_order_acquire) >> 16 == expected(number_, came_);
    }
    /// What lies there, if has_message(); the bytes may still change. False: the peer breaks the
    /// rules. Then answer(), as soon as the next message may be stored there.
    bool take(Header& header, std::size_t& length) {
        const std::uint64_t found = word().load(std::memory_order_acquire);
        length = found >> 8 & 0xFF;
        header = {memory_->tag, memory_->data, Kind::eager, static_cast<std::uint8_t>(found), 0};
        ++number_;
        ++taken_;
        ++in_row_;
        turn_ = Turn::nobodys;
        return length <= room && (header.flags & ~(flag::tagged | flag::data)) == 0;
    }
    const std::byte* bytes() const { return memory_->bytes; }
    void answer() { turn_ = Turn::ours; }
    /// So many were taken: a message over the VI says how many it follows.
    std::uint16_t taken() const { return taken_; }
    void came_one() {
        ++came_;
        in_row_ = 0;
    }
    /// The peer's next message comes over the VI.
    bool is_at_end_of_row() const { return in_row_ == in_a_row; }

private:
    enum class Turn : std::uint8_t { nobodys, ours, theirs };

    static std::uint64_t expected(std::uint32_t number, std::uint16_t before) {
        return std::uint64_t{number} << 16 | before;
    }
    std::atomic_ref<std::uint64_t> word() const { return std::atomic_ref(memory_->word); }

    StoredMessage* memory_ = nullptr;
    Nic* nic_ = nullptr;
    std::uint32_t number_ = 1;  ///< of the next one, whoever stores it
    Turn turn_ = Turn::nobodys;
    bool is_maker_ = false;
    std::uint16_t stored_ = 0;
    std::uint16_t taken_ = 0;
    std::uint16_t sent_ = 0;  ///< over the VI
    std::uint16_t came_ = 0;
    std::uint32_t left_ = in_a_row;
    std::uint32_t in_row_ = 0;
};

}  // namespace via::fabric::rdm
