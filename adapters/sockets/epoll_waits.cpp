// Waiting for what an epoll set has to tell.
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

/// Of a set in which nobody's bytes go through memory.
int wait_in_kernel(int set, epoll_event* events, int most, int ms, const sigset_t* mask) {
    int count = 0;
    Entry* const entry = epoll_entry(set);
    const auto ask = [&] { return (count = real().epoll_pwait(set, events, most, 0, mask)) != 0; };
    if (ms != 0 && entry != nullptr && entry->busy_poll.finds(busy_poll_ticks(), ask)) return count;
    return real().epoll_pwait(set, events, most, ms, mask);
}

}  // namespace

int EpollSet::translate(epoll_event* events, int count) {
    int kept = 0;
    for (int at = 0; at < count; ++at) {
        const std::uint64_t data = events[at].data.u64;
        int fd = -1;
        int set = -1;
        bool was_stored = false;
        {
            const SetsHold hold;
            if (const Item* const item = item_of(data)) {
                fd = item->fd;
                set = item->set->fd_;
                was_stored = item->stored;
            }
        }
        Entry* const entry = fd < 0 ? nullptr : socket_entry(fd);
        if (entry != nullptr && entry->busy_poll.is_on()) {
            if (Entry* const of_set = epoll_entry(set)) of_set->busy_poll.turn_on();
        }
        const bool stores = entry != nullptr && through_memory(fd, *entry);
        const SetsHold hold;
        Item* const item = item_of(data);
        if (item != nullptr && stores) {
            // It may have been on its way back already when this process saw it first.
            if (!item->stored && !item->left) {
                item->set->mark_stored(*item);
                item->set->tell_kernel(*item, EPOLL_CTL_MOD);
            }
            item->hint = true;
            item->set->list(*item);
            if ((events[at].events & end_bits) != 0) item->ended = true;
            continue;
        }
        if (item == nullptr && (data >> slot_bits) == (mark_base() >> slot_bits)) continue;
        if (item != nullptr && item->left) continue;
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

/// false: it is marked from now on.
bool EpollSet::prepare_item(Item& item, Sleep& sleep) {
    Entry* const entry = socket_entry(item.fd);
    if (entry == nullptr || item.fired || entry->pipe.load() == nullptr) return true;
    if (watch(item)) return false;
    const bool level = (item.told.events & EPOLLET) == 0;
    const PipeEnd end = entry->end();
    const bool full = wants_room(item.told) && !end.may_have_room();
    if (full && must_look_again(*entry)) sleep.look = true;
    const std::uint32_t why = (wants_bytes(item.told) ? for_data : 0u) | (full ? for_room : 0u);
    if (why == 0) return true;
    if (item.parked && !full && (end.own().asleep.load() & for_data) != 0) return true;
    if (about_to_sleep(item.fd, *entry, why, Sleeper::by_edge) == Rest::sleeps) {
        sleep.counted.emplace_back(*entry);
        item.parked = true;
    } else {
        // What was reported already is nothing new; whoever stores more shall wake. The byte
        // that woke may be read by now.
        item.parked = false;
        if (!level) end.own().asleep.fetch_or(why);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        sleep.again = sleep.again || would_be_due(item);
    }
    return true;
}

void EpollSet::prepare_items(Sleep& sleep) {
    std::erase_if(scanned_, [&](Item* item) { return !prepare_item(*item, sleep); });
    prepare_board(sleep);
}

EpollSet::Waiting::Waiting(int set) : fd_(set) {
    const SetsHold hold;
    set_ = set_of(set, true);
    if (set_ != nullptr) ++set_->waiting_;
    shared_ = set_ != nullptr && set_->is_shared();
}

EpollSet::Waiting::~Waiting() {
    const int error = errno;
    const SetsHold hold;
    // It may have been closed meanwhile, and be another.
    if (set_ != nullptr && set_of(fd_, false) == set_ && set_->waiting_ > 0) --set_->waiting_;
    errno = error;
}

EpollSet::Turn EpollSet::turn_of(int set) {
    const SetsHold hold;
    EpollSet* const its = set_of(set, false);
    if (its == nullptr || (its->marked_ == 0 && its->scanned_.empty())) return Turn::kernel_alone;
    return its->memorys_turn_ ? Turn::memorys : Turn::kernels;
}

bool EpollSet::is_ready(int set) {
    const SetsHold hold;
    EpollSet* const its = set_of(set, false);
    if (its == nullptr) return false;
    if (its->marked_ != 0 && its->board_.any()) return true;
    for (const auto* const list : {&its->listed_, &its->scanned_}) {
        for (const Item* const item : *list)
            if (would_be_due(*item)) return true;
    }
    return false;
}

void EpollSet::prepare(int set, Sleep& sleep) {
    const SetsHold hold;
    if (EpollSet* const its = set_of(set, false)) its->prepare_items(sleep);
}

void EpollSet::end_sleep(int set, Sleep& sleep) {
    sleep.counted.clear();
    if (!sleep.on_board) return;
    const SetsHold hold;
    if (EpollSet* const its = set_of(set, false)) its->board_.end_sleep();
}

int EpollSet::add_stored(int set, epoll_event* events, int count, int most) {
    const SetsHold hold;
    EpollSet* const its = set_of(set, false);
    if (its == nullptr) return count;
    if (its->board_.has_sleeper()) its->crowd();
    its->memorys_turn_ = count == most;
    return count + its->collect(events + count, most - count);
}

int EpollSet::wait(int set, epoll_event* events, int most, std::int64_t timeout_ns,
                   const sigset_t* mask) {
    const std::uint64_t deadline = deadline_of(timeout_ns);
    const Waiting waits(set);
    if (waits.is_shared()) SharedSets::use_shared(set);
    bool spun = false;
    for (;;) {
        const Turn turn = turn_of(set);
        if (turn == Turn::kernel_alone) {
            const int count = wait_in_kernel(set, events, most, ms_until(deadline), mask);
            if (count <= 0) return count;
            // What translate() found to be in memory by now is told with the rest.
            const int kept = add_stored(set, events, translate(events, count), most);
            if (kept > 0) return kept;
            continue;
        }
        if (events == nullptr || most <= 0) return real().epoll_pwait(set, events, most, 0, mask);
        if (turn == Turn::memorys) {
            const int count = add_stored(set, events, 0, most);
            if (count > 0) return count;
        }
        const int fresh = real().epoll_pwait(set, events, most, 0, mask);
        if (fresh < 0) return fresh;
        const int count = add_stored(set, events, translate(events, fresh), most);
        if (count > 0) return count;
        if (timeout_ns == 0 || (deadline != ~0ull && now_ns() >= deadline)) return 0;
        if (!spun && may_spin()) {
            const std::uint64_t until = ticks() + spin_ticks();
            while (ticks() < until && !is_ready(set)) detail::relax_processor();
            spun = true;
            continue;
        }
        Sleep sleep;
        prepare(set, sleep);
        int slept = 0;
        int ms = ms_until(deadline);
        if (sleep.look && (ms < 0 || ms > 1)) ms = 1;
        if (!sleep.again) slept = real().epoll_pwait(set, events, most, ms, mask);
        const int error = errno;
        end_sleep(set, sleep);
        errno = error;
        if (slept < 0) return slept;
        const int kept = add_stored(set, events, translate(events, slept), most);
        if (kept > 0) return kept;
        spun = spun && slept > 0;
    }
}

}  // namespace via::sockets
