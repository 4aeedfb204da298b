// The peers that a device has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/shm/channel.hpp"
#include "device/shm/reports.hpp"
#include "device/shm/system.hpp"
#include "device/shm/wait_set.hpp"
#include "device/types.hpp"

namespace via::device::shm {

/// What people call the peer.
std::string describe(const Channel& channel);

/// Owns the channels, by path, the lists in which they are, and the events that tell of them.
/// Aligned, so that what polls look at is one line.
class alignas(64) Channels {
public:
    /// `may_have_events`: becomes true with each event, false where none is left.
    Channels(const ShmConfig& config, System& system, WaitSet& wait_set, Reports& reports,
             bool& may_have_events);
    /// Leaves all peers; what was transmitted stays readable for them.
    ~Channels();
    Channels(const Channels&) = delete;
    Channels& operator=(const Channels&) = delete;

    /// Of a path that has an up or resolved event, and whose down event was not taken.
    Channel& at(PathId path) const { return *table_[path]; }
    bool has(PathId path) const { return path < table_.size() && table_[path] != nullptr; }
    /// By path; nullptr where there is none now.
    const std::vector<std::unique_ptr<Channel>>& all() const { return table_; }
    /// nullptr: there is none to that NIC, or it is ending.
    const Channel* find(const HostAddress& address, const std::string& name) const;

    bool is_full() const { return free_paths_.empty() && table_.size() >= paths_max_; }
    /// What the next one is to be called, unless is_full().
    PathId next_path() const {
        return free_paths_.empty() ? static_cast<PathId>(table_.size()) : free_paths_.back();
    }
    /// One of that path; polled once its first event was taken.
    void add(std::unique_ptr<Channel> channel);

    // Lists ---------------------------------------------------------------------------------------
    /// Those that are polled, in no order.
    const std::vector<Channel*>& live() const { return live_; }
    /// Has frames that are to be released.
    void note_taken(Channel& channel) {
        if (channel.taken) return;
        channel.taken = true;
        channel.next_taken = taken_;
        taken_ = &channel;
    }
    bool any_taken() const { return taken_ != nullptr; }
    /// The first of them, by next_taken; the list is empty then.
    Channel* release_taken() { return std::exchange(taken_, nullptr); }
    /// Is to be notified.
    void touch(Channel& channel) {
        if (channel.touched) return;
        channel.touched = true;
        channel.next_touched = touched_;
        touched_ = &channel;
    }
    bool any_touched() const { return touched_ != nullptr; }
    /// The first of them, by next_touched; the list is empty then.
    Channel* release_touched() { return std::exchange(touched_, nullptr); }

    // Events and ends -----------------------------------------------------------------------------
    void push(PathEvent event) {
        events_.push_back(std::move(event));
        may_have_events_ = true;
    }
    /// All that wait to be taken, but down events.
    const std::deque<PathEvent>& events() const { return events_; }
    /// As in device.hpp.
    bool next_event(PathEvent& event);
    /// next_event() has one.
    bool has_event() const;
    /// No frames from now on; the down event waits to be taken. No system call.
    void end(Channel& channel);
    /// The peer broke the protocol: ends it, and says so.
    void close_for_violation(Channel& channel, const char* reason);
    /// The peer is gone. What it published before is still delivered; receive() finds the end.
    void depart(Channel& channel);

    /// How all peers, and those to come, are told that we sleep (wake.hpp).
    void set_sleep_word(std::uint32_t word);

private:
    void go_live(Channel& channel);
    void destroy(Channel& channel);

    std::vector<Channel*> live_;
    std::vector<std::unique_ptr<Channel>> table_;
    Channel* taken_ = nullptr;
    Channel* touched_ = nullptr;

    std::vector<Channel*> ended_;  ///< their down events are not taken yet
    std::deque<PathEvent> events_;
    std::vector<PathId> free_paths_;
    std::uint32_t sleep_word_ = 0;
    std::uint32_t paths_max_;
    System& system_;
    WaitSet& wait_set_;
    Reports& reports_;
    bool& may_have_events_;
};

}  // namespace via::device::shm
