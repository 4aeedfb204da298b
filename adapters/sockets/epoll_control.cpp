// What a program says of an epoll set: epoll_ctl().
#include <errno.h>

#include "connection.hpp"
#include "epoll_inside.hpp"

namespace via::sockets {

int EpollSet::control(int set, int operation, int fd, epoll_event* event) {
    Entry* const entry = socket_entry(fd);
    SharedSets::use_shared(set);
    if (operation == EPOLL_CTL_ADD) leave_to_kernel(fd);
    if (entry != nullptr && operation == EPOLL_CTL_ADD) {
        const bool exclusive = event != nullptr && (event->events & EPOLLEXCLUSIVE) != 0;
        const Reason why = !options().epoll || exclusive ? Reason::nested : left_to_kernel(set);
        if (why != Reason::none) hand_back(fd, *entry, why);
    }
    const bool ours = entry != nullptr && entry->kind.load() != Kind::plain;
    const bool stores = ours && through_memory(fd, *entry);
    const SetsHold hold;
    EpollSet* const its = set_of(set, ours && operation == EPOLL_CTL_ADD);
    Item* item = its == nullptr ? nullptr : its->item_at(fd);
    const bool adds = ours && operation == EPOLL_CTL_ADD && event != nullptr;
    if (item != nullptr || adds) its->be_helped();
    if (item != nullptr && item->left) {
        if (adds && stores) return its->add_again(*item, *event);
        its->remove(*item);
        item = nullptr;
    }
    if (item == nullptr && adds) return its->add(fd, *event, stores);
    if (item != nullptr && operation == EPOLL_CTL_DEL) return its->take_out(*item);
    if (item != nullptr && operation == EPOLL_CTL_MOD && event != nullptr)
        return its->change(*item, *event);
    return real().epoll_ctl(set, operation, fd, event);
}

/// Before it comes to this set: a mark is of one set's board.
void EpollSet::unmark_in_others(int fd) {
    for (EpollSet* const set : all_sets()) {
        Item* const other = set == this ? nullptr : set->item_at(fd);
        if (other != nullptr && other->left)
            set->remove(*other);
        else if (other != nullptr && other->marked)
            set->watch_by_bytes(*other);
    }
}

int EpollSet::add(int fd, const epoll_event& event, bool stores) {
    Entry& entry = descriptors[static_cast<unsigned>(fd)];
    if (entry.in_epoll.load()) unmark_in_others(fd);
    Item* const item = make_item(fd, event);
    ++entry.in_sets;
    if (stores) mark_stored(*item);
    entry.in_epoll.store(true);
    const int result = tell_kernel(*item, EPOLL_CTL_ADD);
    const int error = errno;
    if (result < 0) drop(*item);
    errno = error;
    return result;
}

/// While bytes go through memory its registration stays as it is, whatever the program wants. But
/// with it wakes a thread that waits in another call.
bool EpollSet::kernel_may_not_know(const Item& item) const {
    return item.stored && item.registered && !item.untold && waiting_ == 0;
}

/// The kernel has it still.
int EpollSet::add_again(Item& item, const epoll_event& event) {
    unmark_in_others(item.fd);
    item.left = false;
    ++descriptors[static_cast<unsigned>(item.fd)].in_sets;
    item.told = event;
    item.hint = item.ended;
    arm(item);
    mark_stored(item);
    return kernel_may_not_know(item) ? 0 : tell_kernel(item, EPOLL_CTL_MOD);
}

/// Programs that take a socket out and add it for each request make no system call.
int EpollSet::take_out(Item& item) {
    if (kernel_may_not_know(item) && !family_.begun()) {
        if (!item.marked) mark_kernels(item);
        item.left = true;
        --descriptors[static_cast<unsigned>(item.fd)].in_sets;
        renew_sleep();
        return 0;
    }
    const bool was_registered = item.registered;
    const int result = remove(item);
    return was_registered ? result : 0;
}

int EpollSet::change(Item& item, epoll_event& event) {
    const epoll_event former = item.told;
    item.told = event;
    const bool quiet = kernel_may_not_know(item) && (event.events & EPOLLEXCLUSIVE) == 0;
    const int result = quiet ? 0 : tell_kernel(item, EPOLL_CTL_MOD);
    if (result < 0) {
        item.told = former;
        return result;
    }
    arm(item);
    return 0;
}

/// Whatever there is is told.
void EpollSet::arm(Item& item) {
    item.fired = false;
    item.seen_in = ~0ull;
    item.seen_out = ~0u;
    item.seen_end = 0;
    if (item.marked) tell_mark(item);
}

}  // namespace via::sockets
