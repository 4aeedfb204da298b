// One path: both memories of a channel, the two rings over them, and the wake-up between the two
// sides. Belongs to a ShmDevice, which holds the lists a channel is in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/time.hpp"
#include "device/device.hpp"
#include "device/grants.hpp"
#include "device/shm/copy_choice.hpp"
#include "device/shm/in_order.hpp"
#include "device/shm/mailbox.hpp"
#include "device/shm/memory.hpp"
#include "device/shm/ring_reader.hpp"
#include "device/shm/ring_writer.hpp"
#include "device/shm/store_choice.hpp"
#include "device/shm/system.hpp"

namespace via::device::shm {

/// What a finished handshake hands over.
struct Introduction {
    OwnMemory own;
    PeerMemory peer;
    MailboxMemory mailbox;
    Descriptor socket;
    Descriptor process;  ///< the peer's pidfd; invalid: our own process, or none to be had
    HostAddress address;
    std::string name;  ///< of the peer's NIC; empty: unknown, or claimed but not proven
    std::int32_t pid = 0;
    bool accepted = false;       ///< the peer came to us
    std::uint32_t features = 0;  ///< in force on both sides
};

/// Aligned, so that the channels of two devices in one process do not share a line.
class alignas(128) Channel {
public:
    enum class State : std::uint8_t {
        opening,  ///< its first event is not taken yet; no frames
        live,
        ended,  ///< no more frames; its down event is not taken yet
    };

    Channel(PathId own_path, Introduction introduction, OneCopy one_copy);

    /// Tells the peer how we sleep.
    void set_sleep_word(std::uint32_t word) { own_->asleep.store(word, memory_order_release); }
    /// Stores only what changes: who polls for room would take the line from the peer each time.
    void set_waiting(bool waiting) {
        if (waiting == waiting_for_room) return;
        own_->waiting.store(waiting ? 1 : 0, memory_order_release);
        waiting_for_room = waiting;
    }
    /// The peer's sleep word; after a fence_to() that follows what there is to see.
    std::uint32_t peer_sleep_word() const {
        peer_decision();
        return peer_load(peer_->asleep, memory_order_acquire);
    }
    bool peer_waits_for_room() const {
        peer_decision();
        return peer_load(peer_->waiting, memory_order_acquire) != 0;
    }
    /// Ends the sleep that `word` tells of, once. Adds to `calls`; false: try again later.
    bool wake(System& system, std::uint32_t word, std::uint32_t& calls);

    /// There is a frame that can be taken.
    bool pending() const { return is_pending(reader, mailbox); }
    /// Grows by each frame taken; by those sent to the mailbox, too. Modulo 2^32.
    std::uint32_t frames_taken() const { return reader.position() + mailbox.count(); }

    /// The word that changes when the peer wakes us. Counts wakes that had nothing to show.
    WakeWord wake_word();
    /// `word` ended a sleep. One that did not change counts as well.
    void woken_by(const WakeWord& word);
    /// The peer's word of a grant to us.
    const Atomic<std::uint32_t>* grant_word(std::uint32_t grant) const {
        return &peer_->grants[grant];
    }
    /// Notes one wake-up by the peer: was there anything new since the last one?
    void judge_wake();

    // What the polling path touches, receiving first, then sending.
    alignas(64) RingReader reader;
    PathId path;
    std::uint32_t live_index = 0;  ///< where the device's list of live channels has it
    State state = State::opening;
    bool departing = false;  ///< the peer is gone; what it had published is still delivered
    bool taken = false;      ///< in the device's list of channels with unreleased frames
    bool touched = false;    ///< in the device's list of channels to notify
    bool has_sent = false;   ///< frames were published since the last notify()
    bool waiting_for_room = false;
    const bool asymmetric;  ///< fences: heavy before a sleep, light after a frame; else full ones
    bool timed = false;     ///< what is published next completes a message that `copies` times
    Channel* next_taken = nullptr;
    Channel* next_touched = nullptr;
    Mailbox mailbox;

private:
    Control* own_;
    const Control* peer_;
    std::uint32_t woken_word_ = 0;  ///< the peer's sleep that we have ended already

public:
    std::uint32_t drain_from = 0;  ///< frames_taken() when the peer went
    alignas(64) RingWriter writer;
    StoreChoice stores;
    CopyChoice copies;

    // For service() only.
    std::uint32_t serial = 0;         ///< tells it from earlier users of the path
    std::string end_reason;           ///< closed for a violation: why
    std::uint32_t wakes_useless = 0;  ///< in this window
    Time wake_window_end{};
    std::uint32_t idle_mark = 0;  ///< writer position when last looked at
    Duration idle_pause{};
    Time idle_deadline = Time::never();
    Introduction peer_info;
    Grants grants;  ///< of the peer

private:
    bool wake_changed() const;

    std::uint32_t wakes_ = 0;       ///< our wakes word; shared memory is never read back
    std::uint32_t seen_wakes_ = 0;  ///< the peer's wakes word, last time
    std::uint32_t seen_taken_ = 0;
    std::uint32_t seen_room_ = 0;
    std::unique_ptr<std::uint64_t[]> shadow_;
};

}  // namespace via::device::shm
