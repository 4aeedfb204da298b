// SPDX-License-Identifier: Apache-2.0
// What an endpoint for datagrams tells the program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "counter.hpp"
#include "rdm/queue.hpp"

namespace via::fabric::rdm {

/// Owns the room for completions that was reserved in the program's queues, so that telling never
/// fails, and knows its queues and counters. Under the domain's guard, but for bind_*().
class Completions {
public:
    /// 0, or an error of libfabric's.
    int bind_queue(Queue& queue, std::uint64_t flags);
    /// `of_peers`: may it count what peers do to the program's memory?
    int bind_counter(Counter& counter, std::uint64_t flags, bool of_peers);
    bool has_queues() const { return sends_ != nullptr && receives_ != nullptr; }
    /// Places that may be empty; or hold the same one twice.
    std::array<Queue*, 2> queues() const { return {sends_, receives_}; }
    std::span<Counter* const> counters() const { return counters_; }
    /// Gives back what is reserved, and lets the queues go.
    void end();

    bool tells_sends(std::uint64_t flags) const {
        return !selective_sends_ || (flags & FI_COMPLETION) != 0;
    }
    bool tells_receives(std::uint64_t flags) const {
        return !selective_receives_ || (flags & FI_COMPLETION) != 0;
    }

    bool reserve_send() {
        if (!sends_->reserve()) return false;
        ++promised_sends_;
        return true;
    }
    void give_back_send() {
        sends_->give_back();
        --promised_sends_;
    }
    void tell_send(const Completion& completion) {
        sends_->tell(completion);
        --promised_sends_;
    }
    bool reserve_receive() {
        if (!receives_->reserve()) return false;
        ++promised_receives_;
        return true;
    }
    void give_back_receive() {
        receives_->give_back();
        --promised_receives_;
    }
    void tell_receive(const Completion& completion) {
        receives_->tell(completion);
        --promised_receives_;
    }
    /// Of any operation; uses up what was reserved, and counts.
    void tell_done(void* context, std::uint64_t flags, bool told, int error);
    /// A peer wrote `length` bytes by RDMA, with `data` beside them. False: no memory.
    bool tell_written(fi_addr_t source, std::uint64_t length, std::uint32_t data);

    void count_send(bool failed) {
        if (counters_[0] != nullptr) [[unlikely]]
            counters_[0]->count(failed);
    }
    void count_receive(bool failed) {
        if (counters_[1] != nullptr) [[unlikely]]
            counters_[1]->count(failed);
    }

    /// Does the program count what peers do to its memory?
    bool counts_moves() const { return counters_[4] != nullptr || counters_[5] != nullptr; }
    /// A peer read or wrote it, by RDMA or an atomic operation.
    void count_moved(bool read) {
        Counter* const counter = counters_[read ? 4 : 5];
        if (counter != nullptr) counter->count(false);
    }

private:
    Queue* sends_ = nullptr;
    Queue* receives_ = nullptr;
    std::size_t promised_sends_ = 0;
    std::size_t promised_receives_ = 0;
    bool selective_sends_ = false;
    bool selective_receives_ = false;
    Counter* counters_[6] = {};  ///< of sends, receives, reads, writes, peers' reads and writes
};

}  // namespace via::fabric::rdm
