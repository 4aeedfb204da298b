// What an epoll set has to tell, and waiting for it.
#include <errno.h>

#include "connection.hpp"
#include "epoll_inside.hpp"

namespace via::sockets {

namespace {

int ms_until(std::uint64_t deadline) {
    if (deadline == ~0ull) return -1;
    const std::uint64_t now = now_ns();
    if (now >= deadline) return 0;
    return static_cast<int>(std::min<std::uint64_t>((deadline - now + 999999) / 1000000, 1 << 30));
}

std::uint64_t deadline_of(std::int64_t timeout_ns) {
    return timeout_ns < 0 ? ~0ull : now_ns() + static_cast<std::uint64_t>(timeout_ns);
}

}  // namespace

std::uint32_t EpollSet::due(Item& item) {
    Entry* const entry = socket_entry(item.fd);
    if (entry == nullptr || item.fired || entry->pipe.load() == nullptr) return 0;
    const PipeEnd end = entry->end();
    const std::uint32_t mask = (item.told.events | always);
    const bool out = (mask & (EPOLLOUT | EPOLLWRNORM)) != 0;
    // Nobody has woken it since it was last found empty.
    if (item.parked && !item.hint && !item.ended && !out && end.own().asleep.load() != 0) return 0;
    item.parked = false;
    // Before the look at what there is: what comes behind that look is then told next time.
    const std::uint64_t come = end.peer_sending().place.load();
    const Readiness found = readiness(item.fd, *entry);
    std::uint32_t ready = 0;
    std::uint32_t ends = 0;
    if (item.hint || item.ended) {
        pollfd look{item.fd, POLLRDHUP, 0};
        real().poll(&look, 1, 0);
        ends = static_cast<std::uint32_t>(look.revents) & end_bits;
        if (end.own().error.load() != 0) ends |= EPOLLERR | EPOLLHUP | EPOLLRDHUP;
        item.ended = ends != 0;
    }
    if (found.bytes || ends != 0) ready |= EPOLLIN | EPOLLRDNORM;
    if (found.room || (ends & always) != 0) ready |= EPOLLOUT | EPOLLWRNORM;
    ready = (ready | ends) & mask;
    const bool edge = (item.told.events & EPOLLET) != 0;
    if (edge) {
        const std::uint64_t in = come * 2 + end.reading().kernel_done.load();
        const std::uint32_t full = end.sending().full.load();
        // What came is told also when it was read already, as long as there is anything to tell.
        const bool fresh_in = in != item.seen_in ||
                              (item.hint && found.bytes && end.reading().kernel_done.load() == 0);
        const bool fresh_out = found.room && out && full != item.seen_out;
        const bool fresh_end = (ends & ~item.seen_end) != 0;
        if (!(fresh_in && (mask & EPOLLIN) != 0) && !fresh_out && !fresh_end) ready = 0;
        item.seen_in = in;
        if (ready != 0) {
            if (found.room) item.seen_out = full;
            item.seen_end = ends;
        }
    }
    item.hint = false;
    return ready;
}

bool EpollSet::would_be_due(const Item& item) {
    Item copy = item;
    return due(copy) != 0;
}

int EpollSet::collect(epoll_event* events, int most) {
    int count = 0;
    const std::size_t all = stored_.size();
    for (std::size_t seen = 0; seen < all && count < most; ++seen) {
        Item& item = *stored_[(turn_ + seen) % all];
        const std::uint32_t ready = due(item);
        if (ready == 0) continue;
        events[count].events = ready;
        events[count].data = item.told.data;
        ++count;
        if ((item.told.events & EPOLLONESHOT) != 0) item.fired = true;
    }
    if (all != 0) turn_ = (turn_ + static_cast<std::size_t>(count)) % all;
    return count;
}

int EpollSet::translate(epoll_event* events, int count) {
    int kept = 0;
    for (int at = 0; at < count; ++at) {
        const std::uint64_t data = events[at].data.u64;
        int fd = -1;
        bool was_stored = false;
        {
            const SetsHold hold;
            if (const Item* const item = marked(data)) {
                fd = item->fd;
                was_stored = item->stored;
            }
        }
        Entry* const entry = fd < 0 ? nullptr : socket_entry(fd);
        const bool stores = entry != nullptr && through_memory(fd, *entry);
        const SetsHold hold;
        Item* const item = marked(data);
        if (item != nullptr && stores) {
            if (!item->stored) {  // was on its way back already when this process saw it first
                item->set->mark_stored(*item);
                item->set->tell_kernel(*item, EPOLL_CTL_MOD);
            }
            item->hint = true;
            if ((events[at].events & end_bits) != 0) item->ended = true;
            continue;
        }
        if (item == nullptr && (data >> slot_bits) == (mark_base() >> slot_bits)) continue;
        events[kept] = events[at];
        if (was_stored && item != nullptr) {  // a byte that wakes may have been all there was
            pollfd look{fd, static_cast<short>(item->told.events & 0x3FFF), 0};
            real().poll(&look, 1, 0);
            events[kept].events = static_cast<std::uint16_t>(look.revents);
            const bool once = (item->told.events & EPOLLONESHOT) != 0;
            if (once && look.revents != 0 &&
                real().epoll_ctl(item->set->fd_, EPOLL_CTL_DEL, fd, nullptr) == 0)
                item->registered = false;
        }
        if (item != nullptr) {
            // It may have been registered for more, while its bytes went through memory.
            events[kept].events &= item->told.events | always;
            if (events[kept].events == 0) continue;
            events[kept].data = item->told.data;
            if ((item->told.events & EPOLLONESHOT) != 0) item->fired = true;
        }
        ++kept;
    }
    return kept;
}

void EpollSet::prepare_items(std::vector<Entry*>& asleep, bool& again, bool& look) {
    for (Item* const item : stored_) {
        Entry* const entry = socket_entry(item->fd);
        if (entry == nullptr || item->fired || entry->pipe.load() == nullptr) continue;
        const bool out = (item->told.events & (EPOLLOUT | EPOLLWRNORM)) != 0;
        const bool level = (item->told.events & EPOLLET) == 0;
        const PipeEnd end = entry->end();
        const bool full = out && !end.may_have_room();
        if (full && must_look_again(*entry)) look = true;
        if (item->parked && !full && end.own().asleep.load() != 0) continue;
        if (about_to_sleep(item->fd, *entry, full ? for_data | for_room : for_data, false)) {
            asleep.push_back(entry);
            item->parked = true;
        } else {
            // What was reported already is nothing new; whoever stores more shall wake. The byte
            // that woke may be read by now.
            item->parked = false;
            if (!level) end.own().asleep.fetch_or(full ? for_data | for_room : for_data);
            std::atomic_thread_fence(std::memory_order_seq_cst);
            again = again || would_be_due(*item);
        }
    }
}

bool EpollSet::has_stored(int set) {
    const SetsHold hold;
    EpollSet* const its = set_of(set, false);
    if (its == nullptr) return false;
    its->touch();
    return !its->stored_.empty();
}

bool EpollSet::is_ready(int set) {
    const SetsHold hold;
    EpollSet* const its = set_of(set, false);
    if (its == nullptr) return false;
    for (Item* const item : its->stored_) {
        if (would_be_due(*item)) return true;
    }
    return false;
}

void EpollSet::prepare(int set, std::vector<Entry*>& asleep, bool& again, bool& look) {
    const SetsHold hold;
    if (EpollSet* const its = set_of(set, false)) its->prepare_items(asleep, again, look);
}

int EpollSet::add_stored(int set, epoll_event* events, int count, int most) {
    const SetsHold hold;
    EpollSet* const its = set_of(set, false);
    return its == nullptr ? count : count + its->collect(events + count, most - count);
}

int EpollSet::wait(int set, epoll_event* events, int most, std::int64_t timeout_ns,
                   const sigset_t* mask) {
    const std::uint64_t deadline = deadline_of(timeout_ns);
    bool spun = false;
    for (;;) {
        if (!has_stored(set)) {
            const int count = real().epoll_pwait(set, events, most, ms_until(deadline), mask);
            if (count <= 0) return count;
            // What translate() found to be in memory by now is told with the rest.
            const int kept = add_stored(set, events, translate(events, count), most);
            if (kept > 0) return kept;
            continue;
        }
        if (events == nullptr || most <= 0) return real().epoll_pwait(set, events, most, 0, mask);
        const int fresh = real().epoll_pwait(set, events, most, 0, mask);
        if (fresh < 0) return fresh;
        const int count = add_stored(set, events, translate(events, fresh), most);
        if (count > 0) return count;
        if (timeout_ns == 0 || (deadline != ~0ull && now_ns() >= deadline)) return 0;
        if (!spun && may_spin()) {
            const std::uint64_t until = ticks() + options().spin_ns * 2;
            while (ticks() < until && !is_ready(set)) detail::relax_processor();
            spun = true;
            continue;
        }
        std::vector<Entry*> asleep;
        bool again = false;
        bool look = false;
        prepare(set, asleep, again, look);
        int slept = 0;
        int ms = ms_until(deadline);
        if (look && (ms < 0 || ms > 1)) ms = 1;
        if (!again) slept = real().epoll_pwait(set, events, most, ms, mask);
        const int error = errno;
        for (Entry* const entry : asleep) woken(*entry);
        errno = error;
        if (slept < 0) return slept;
        const int kept = add_stored(set, events, translate(events, slept), most);
        if (kept > 0) return kept;
        spun = spun && slept > 0;
    }
}

}  // namespace via::sockets
