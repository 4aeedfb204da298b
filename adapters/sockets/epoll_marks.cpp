// The items of an epoll set that peers mark on its board, and the thread that sleeps beside it.
#include "connection.hpp"
#include "epoll_inside.hpp"

namespace via::sockets {

/// What the board says is for this process alone, and of one set.
bool EpollSet::may_mark(const Item& item) const {
    const Entry* const entry = socket_entry(item.fd);
    if (crowded_ || inherited_ || entry == nullptr || entry->in_sets != 1) return false;
    const Stream* const stream = entry->stream.load();
    return entry->pipe.load() != nullptr && stream != nullptr && stream->holders.load() == 1;
}

/// false: it is looked at in each wait, and woken by itself.
bool EpollSet::watch(Item& item) {
    if (!may_mark(item) || !board_.open()) return false;
    item.marked = true;
    item.parked = false;
    ++marked_;
    tell_mark(item);
    return true;
}

/// And a look at it: what was stored before that marked nothing.
void EpollSet::tell_mark(Item& item) {
    const Mark mark = board_.mark_of(item.fd, wants_room(item.told));
    descriptors[static_cast<unsigned>(item.fd)].end().own().mark.store(mark.word());
    std::atomic_thread_fence(std::memory_order_seq_cst);  // against wake()
    list(item);
}

void EpollSet::unwatch(Item& item) {
    item.marked = false;
    --marked_;
    if (std::exchange(item.listed, false)) std::erase(listed_, &item);
    const Entry& entry = descriptors[static_cast<unsigned>(item.fd)];
    if (entry.pipe.load() != nullptr) entry.end().own().mark.store(0);
    board_.clear(item.fd);
}

/// From now on it is woken by itself. A thread that sleeps relied on the board.
void EpollSet::watch_by_bytes(Item& item) {
    if (item.left) return mark_kernels(item);
    unwatch(item);
    scanned_.push_back(&item);
    if (!board_.has_sleeper()) return;
    const Entry& entry = descriptors[static_cast<unsigned>(item.fd)];
    if (entry.pipe.load() == nullptr) return;
    entry.end().own().asleep.fetch_or(wants_room(item.told) ? for_data | for_room : for_data);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // against wake()
    if (would_be_due(item)) nudge();
}

void EpollSet::watch_all_by_bytes() {
    if (marked_ == 0) return;
    for (const auto& [fd, item] : items_)
        if (item->marked) watch_by_bytes(*item);
}

/// What one thread takes from the board another one would not be woken for.
void EpollSet::crowd() {
    crowded_ = true;
    watch_all_by_bytes();
}

void EpollSet::list(Item& item) {
    if (!item.marked || std::exchange(item.listed, true)) return;
    listed_.push_back(&item);
}

/// Behind a look at all that is listed.
void EpollSet::prepare_board(Sleep& sleep) {
    if (board_.has_sleeper() && !crowded_) {
        crowd();
        sleep.again = true;
    }
    if (marked_ == 0) return;
    sleep.on_board = true;
    board_.sleep();
    if (board_.any()) sleep.again = true;
    for (const Item* const item : listed_) {
        sleep.look = true;
        sleep.again = sleep.again || would_be_due(*item);
    }
}

/// Behind a socket's leaving, whose mark was taken away first: a byte that was to wake may have
/// gone with it. It was sent for all.
void EpollSet::renew_sleep() {
    if (!board_.has_sleeper()) return;
    board_.sleep();
    if (board_.any()) nudge();
}

/// A thread that sleeps in the kernel looks again: all that is registered has room there.
void EpollSet::nudge() {
    for (const auto& [fd, item] : items_)
        if (item->stored && tell_kernel(*item, EPOLL_CTL_MOD) == 0) return;
}

}  // namespace via::sockets
