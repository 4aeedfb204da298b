// SPDX-License-Identifier: Apache-2.0
// Event queue: what happens to connections, in the order in which it happened.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "common.hpp"

namespace via::fabric {

class Fabric;

struct Event {
    std::uint32_t kind = 0;
    int error = 0;  ///< FI_E..., positive: for readerr
    int provider_error = 0;
    fid_t subject = nullptr;
    void* context = nullptr;
    fi_info* info = nullptr;          ///< of FI_CONNREQ; the reader's when it has been read
    std::vector<std::uint8_t> bytes;  ///< private data, or what the program wrote itself
    bool written = false;             ///< by the program: nothing but bytes
};

class EventQueue : public fid_eq {
public:
    static int open(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** queue, void* context);

    /// Any thread. Never fails: what cannot be remembered for want of memory is logged and lost.
    void push(Event event) noexcept;
    /// Its events vanish: the program is about to free it.
    void forget(fid_t subject) noexcept;

    Users users;

private:
    EventQueue(Fabric& fabric, const fi_eq_attr& attributes, void* context);
    ~EventQueue();
    friend struct EventQueueOperations;
    friend int close_event_queue(::fid* queue);

    ssize_t read(std::uint32_t* kind, void* buffer, std::size_t length, std::uint64_t flags);
    ssize_t read_first(std::uint32_t* kind, void* buffer, std::size_t length, std::uint64_t flags);
    ssize_t read_error(fi_eq_err_entry* entry, std::uint64_t flags);
    ssize_t write(std::uint32_t kind, const void* buffer, std::size_t length);
    ssize_t wait_and_read(std::uint32_t* kind, void* buffer, std::size_t length, int timeout_ms,
                          std::uint64_t flags);
    int control(int command, void* argument);
    void discard(const Event& event);
    void pop();
    void show();

    Fabric& fabric_;
    std::mutex lock_;
    std::condition_variable came_;
    std::deque<Event> events_;
    std::atomic<std::size_t> count_{0};     ///< a look costs no lock
    std::vector<std::uint8_t> error_data_;  ///< of the last error read, until the next read
    int descriptor_ = -1;                   ///< readable while there are events; -1: FI_WAIT_NONE
};

}  // namespace via::fabric
