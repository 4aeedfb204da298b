// What makes the device's wait handle readable.
#pragma once

#include <sys/epoll.h>

#include <cerrno>
#include <cstdint>
#include <span>

#include "device/shm/failure.hpp"
#include "device/shm/system.hpp"
#include "device/shm/watched.hpp"

namespace via::device::shm {

/// Owns the wait handle (epoll), and so which descriptors are watched.
class WaitSet {
public:
    explicit WaitSet(System& system) : system_(system) {}

    Outcome<void> open() {
        epoll_ = Descriptor(system_, system_.epoll_create());
        if (!epoll_.valid()) return failure("cannot make the wait handle (epoll_create1)", errno);
        return {};
    }
    int handle() const { return epoll_.get(); }

    /// `key` (watched.hpp) comes with each event of the descriptor. False and errno: not watched.
    bool watch(int descriptor, std::uint64_t key) { return set(EPOLL_CTL_ADD, descriptor, key); }
    /// Of one that is watched already.
    bool change(int descriptor, std::uint64_t key) { return set(EPOLL_CTL_MOD, descriptor, key); }
    /// Before closing: a forked child may hold the descriptor too, and epoll would go on reporting.
    void unwatch(int descriptor) {
        epoll_event event{};
        system_.epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, &event);
    }
    /// What happened so far; does not wait. Nothing where it fails.
    std::span<const epoll_event> look(std::span<epoll_event> events) {
        int count;
        do {
            count =
                system_.epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()));
        } while (count < 0 && errno == EINTR);
        return events.first(count < 0 ? 0 : static_cast<std::size_t>(count));
    }

private:
    bool set(int operation, int descriptor, std::uint64_t key) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = key;
        return system_.epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0;
    }

    System& system_;
    Descriptor epoll_;
};

}  // namespace via::device::shm
