// SPDX-License-Identifier: Apache-2.0
// Connections whose shortest messages come by stores: how often their lines are looked at.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rdm/connection.hpp"

namespace via::fabric::rdm {

/// Between two looks at memory that another processor writes.
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

/// Owns the order in which lines are looked at, and for how long the NIC waits for that. `arrived`
/// takes the message that lies in the next line of a connection. Under the domain's guard.
class LinedConnections {
public:
    /// Peers with lines. Each look is at those of so many, and at those of some others in turn.
    static constexpr std::size_t lines_max = 32;

    void reserve(std::size_t all) { all_.reserve(all); }
    void add(Connection& connection) { all_.push_back(&connection); }
    void remove(const Connection& connection) { std::erase(all_, &connection); }
    std::size_t size() const { return all_.size(); }
    bool empty() const { return all_.empty(); }
    /// Ranks share processors, and the next message waits for one that we have.
    void never_wait() { patience_most_ = patience_ = 0; }

    /// Looks at the lines. True: there was something.
    template <class Arrived>
    [[gnu::always_inline]] bool take(const Arrived& arrived) {
        bool found = false;
        const std::size_t each_time = std::min(all_.size(), each_look);
        for (std::size_t index = 0; index < each_time; ++index) {
            if (!take_of(*all_[index], arrived)) continue;
            std::swap(all_.front(), all_[index]);  // likely it is the next one, too
            found = true;
        }
        return all_.size() > each_time ? take_in_turn(arrived) || found : found;
    }
    /// The next message is likely one by stores, too, and a look at the lines costs less than the
    /// way back to the program and here again. Where none came it is not waited for that long
    /// again.
    template <class Arrived>
    bool take_awaited(const Arrived& arrived) {
        std::uint32_t left = std::exchange(looks_, 0);
        if (left == 0 || all_.front()->lines.is_at_end_of_row()) return false;
        for (; left != 0; --left) {
            pause();
            if (take(arrived)) {
                patience_ = patience_most_;
                return true;
            }
        }
        patience_ = std::min(std::max(patience_ / 2, patience_min), patience_most_);
        return false;
    }
    /// The lines were looked at. Each look at the NIC puts off the next message by stores, but
    /// others shall not wait for one that stores again and again.
    bool nic_may_wait(bool found) {
        if (found && may_look_again()) return true;
        looks_without_nic_ = 0;
        return false;
    }
    /// False: all else has waited for long enough.
    bool may_look_again() { return ++looks_without_nic_ < looks_without_nic_max; }

private:
    /// Looks at the lines for the message after one by stores, some 20 ns each.
    static constexpr std::uint32_t patience_max = 32;
    static constexpr std::uint32_t patience_min = 4;
    static constexpr std::uint32_t looks_without_nic_max = 64;
    static constexpr std::size_t each_look = 8;
    static constexpr std::size_t in_turn = 4;

    /// What lies in the lines of one. False: nothing.
    template <class Arrived>
    [[gnu::always_inline]] bool take_of(Connection& connection, const Arrived& arrived) {
        if (!connection.lines.has_next()) return false;
        std::uint32_t left = SharedLines::lines_each;
        do {
            arrived(connection);
            --left;
        } while (left != 0 && connection.lines.has_next());
        connection.lines.tell_taken();
        looks_ = patience_;
        return true;
    }
    /// Of those that not each look is at; one that sends takes the place of one that each look is
    /// at.
    template <class Arrived>
    [[gnu::noinline]] bool take_in_turn(const Arrived& arrived) {
        bool found = false;
        const std::size_t others = all_.size() - each_look;
        for (std::size_t count = std::min(others, in_turn); count != 0; --count) {
            Connection*& at = all_[each_look + next_++ % others];
            if (!take_of(*at, arrived)) continue;
            std::swap(all_[each_look - 1], at);
            found = true;
        }
        return found;
    }

    std::vector<Connection*> all_;
    std::uint32_t looks_without_nic_ = 0;  ///< since the last one at the NIC
    std::uint32_t looks_ = 0;              ///< before the next one at the NIC
    std::uint32_t patience_most_ = patience_max;
    std::uint32_t patience_ = patience_max;
    std::size_t next_ = 0;  ///< of those in turn
};

}  // namespace via::fabric::rdm
