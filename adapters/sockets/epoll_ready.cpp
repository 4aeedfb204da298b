// What an epoll set has to tell of sockets whose bytes go through memory.
#include "connection.hpp"
#include "epoll_inside.hpp"

namespace via::sockets {

std::uint32_t EpollSet::due(Item& item) {
    Entry* const entry = socket_entry(item.fd);
    if (entry == nullptr || item.fired || item.left || entry->pipe.load() == nullptr) return 0;
    const PipeEnd end = entry->end();
    const std::uint32_t mask = (item.told.events | always);
    const bool out = wants_room(item.told);
    // Nobody has woken it since it was last found empty.
    if (item.parked && !item.hint && !item.ended && !out &&
        (end.own().asleep.load() & for_data) != 0)
        return 0;
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

/// Whether there is anything to tell of it.
bool EpollSet::tell(Item& item, epoll_event& event) {
    const std::uint32_t ready = due(item);
    if (ready == 0) return false;
    event.events = ready;
    event.data = item.told.data;
    if ((item.told.events & EPOLLONESHOT) != 0) item.fired = true;
    return true;
}

int EpollSet::collect(epoll_event* events, int most) {
    const bool listed_first = listeds_turn_;
    int count = listed_first ? collect_listed(events, most) : collect_scanned(events, most);
    count += listed_first ? collect_scanned(events + count, most - count)
                          : collect_listed(events + count, most - count);
    listeds_turn_ = listed_first != (count == most);
    return count;
}

int EpollSet::collect_scanned(epoll_event* events, int most) {
    int count = 0;
    std::size_t seen = 0;
    const std::size_t all = scanned_.size();
    for (; seen < all && count < most; ++seen)
        count += tell(*scanned_[(turn_ + seen) % all], events[count]);
    if (all != 0) turn_ = (turn_ + seen) % all;
    return count;
}

/// What is told by level is told again. Of room that no byte can tell of nobody hears.
bool EpollSet::stays_listed(const Item& item, bool told) {
    if (told) return (item.told.events & (EPOLLET | EPOLLONESHOT)) == 0;
    Entry* const entry = socket_entry(item.fd);
    return !item.fired && !item.left && wants_room(item.told) && entry != nullptr &&
           entry->pipe.load() != nullptr && must_look_again(*entry) &&
           !entry->end().may_have_room();
}

int EpollSet::collect_listed(epoll_event* events, int most) {
    if (marked_ == 0) return 0;
    board_.take([this](std::uint32_t bit) {
        Item* const item = item_at(static_cast<int>(bit));
        if (item != nullptr && item->left)
            mark_kernels(*item);  // of what the program does not ask for it hears once
        else if (item != nullptr)
            list(*item);
    });
    int count = 0;
    std::size_t seen = 0;
    kept_.clear();
    for (; seen < listed_.size() && count < most; ++seen) {
        Item& item = *listed_[seen];
        const Entry* const entry = socket_entry(item.fd);
        if (item.hint && entry != nullptr && entry->pipe.load() != nullptr)
            look_at_kernel(item.fd, entry->end());  // the byte that woke is read
        const bool told = tell(item, events[count]);
        if (stays_listed(item, told))
            kept_.push_back(&item);
        else
            item.listed = false;
        count += told;
    }
    listed_.erase(listed_.begin(), listed_.begin() + static_cast<std::ptrdiff_t>(seen));
    listed_.insert(listed_.end(), kept_.begin(), kept_.end());
    return count;
}

}  // namespace via::sockets
