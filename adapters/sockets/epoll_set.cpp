#include "epoll_inside.hpp"

#include <errno.h>
#include <sys/random.h>

#include "connection.hpp"

namespace via::sockets {

namespace {

std::vector<EpollSet*>& sets() {
    static auto* all = new std::vector<EpollSet*>;
    return *all;
}
std::vector<void*>& slots() {
    static auto* all = new std::vector<void*>;
    return *all;
}
std::vector<std::uint32_t>& free_slots() {
    static auto* all = new std::vector<std::uint32_t>;
    return *all;
}

}  // namespace

constinit Lock sets_lock{};

std::uint64_t mark_base() {
    static const std::uint64_t drawn = [] {
        std::uint64_t value = 0;
        if (getrandom(&value, sizeof value, 0) != sizeof value)
            value = ticks() * 0x9E3779B97F4A7C15;
        return value >> slot_bits << slot_bits;
    }();
    return drawn;
}

EpollSet* set_of(int fd, bool make) {
    Entry* const entry = epoll_entry(fd);
    if (entry == nullptr) return nullptr;
    EpollSet* set = entry->set.load();
    if (set == nullptr && make) {
        set = new EpollSet(fd);
        entry->set.store(set);
        sets().push_back(set);
    }
    return set;
}

void EpollSet::renew_after_fork() {
    sets_lock.let_go();
    for (EpollSet* const set : sets()) set->inherited_ = set->untouched_ = true;
}

EpollSet::Item* EpollSet::marked(std::uint64_t data) {
    if ((data >> slot_bits) != (mark_base() >> slot_bits)) return nullptr;
    const std::uint64_t slot = data & ((1u << slot_bits) - 1);
    return slot < slots().size() ? static_cast<Item*>(slots()[slot]) : nullptr;
}

int EpollSet::tell_kernel(Item& item, int operation) {
    epoll_event event = item.told;
    event.data.u64 = mark_base() | item.slot;
    if (item.stored) event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    int result = real().epoll_ctl(fd_, operation, item.fd, &event);
    if (result < 0 && operation == EPOLL_CTL_MOD && errno == ENOENT && !item.registered)
        result = real().epoll_ctl(fd_, EPOLL_CTL_ADD, item.fd, &event);
    if (result == 0) item.registered = true;
    return result;
}

void EpollSet::drop(Item& item) {
    items_.erase(item.fd);
    std::erase(stored_, &item);
    slots()[item.slot] = nullptr;
    free_slots().push_back(item.slot);
    delete &item;
}

void EpollSet::mark_stored(Item& item) {
    if (item.stored) return;
    item.stored = true;
    stored_.push_back(&item);
}

void EpollSet::leave_to_kernel(int set) {
    Entry* const entry = epoll_entry(set);
    if (entry == nullptr || entry->busy.load()) return;
    std::vector<int> held;
    {
        const SetsHold hold;
        if (EpollSet* const its = entry->set.load())
            for (const auto& [member, item] : its->items_) held.push_back(member);
        entry->busy.store(true);  // whatever is added later stays with the kernel
    }
    for (const int member : held)
        if (Entry* const its = socket_entry(member)) hand_back(member, *its, Reason::nested);
}

int EpollSet::control(int set, int operation, int fd, epoll_event* event) {
    Entry* const entry = socket_entry(fd);
    if (operation == EPOLL_CTL_ADD) leave_to_kernel(fd);
    const bool outer_is_nested = epoll_entry(set) != nullptr && epoll_entry(set)->busy.load();
    const bool exclusive =
        event != nullptr && operation == EPOLL_CTL_ADD && (event->events & EPOLLEXCLUSIVE) != 0;
    const bool kernel_alone = !options().epoll || outer_is_nested || exclusive;
    if (entry != nullptr && operation == EPOLL_CTL_ADD && kernel_alone)
        hand_back(fd, *entry, Reason::nested);
    const bool ours = entry != nullptr && entry->kind.load() != Kind::plain;
    const bool stores = ours && through_memory(fd, *entry);
    const SetsHold hold;
    EpollSet* const its = set_of(set, ours && operation == EPOLL_CTL_ADD);
    const auto found = its == nullptr ? std::map<int, Item*>::iterator{} : its->items_.find(fd);
    const bool known = its != nullptr && found != its->items_.end();
    if (!known) {
        if (its == nullptr || !ours || operation != EPOLL_CTL_ADD || event == nullptr)
            return real().epoll_ctl(set, operation, fd, event);
        std::uint32_t slot = static_cast<std::uint32_t>(slots().size());
        if (!free_slots().empty()) {
            slot = free_slots().back();
            free_slots().pop_back();
        } else {
            slots().push_back(nullptr);
        }
        Item* const item = new Item{its, fd, slot, *event};
        slots()[slot] = item;
        its->items_[fd] = item;
        if (stores) its->mark_stored(*item);
        entry->in_epoll.store(true);
        const int result = its->tell_kernel(*item, EPOLL_CTL_ADD);
        const int error = errno;
        if (result < 0) its->drop(*item);
        errno = error;
        return result;
    }
    Item& item = *found->second;
    if (operation == EPOLL_CTL_DEL) {
        const bool was_registered = item.registered;
        its->drop(item);
        const int result = real().epoll_ctl(set, operation, fd, event);
        return was_registered ? result : 0;
    }
    if (operation != EPOLL_CTL_MOD || event == nullptr)
        return real().epoll_ctl(set, operation, fd, event);
    const epoll_event former = item.told;
    item.told = *event;
    const int result = its->tell_kernel(item, EPOLL_CTL_MOD);
    if (result < 0) {
        item.told = former;
        return result;
    }
    item.fired = false;
    item.seen_in = ~0ull;
    item.seen_out = ~0u;
    item.seen_end = 0;
    return 0;
}

void EpollSet::refresh(int fd) {
    Entry* const entry = socket_entry(fd);
    const bool stores = entry != nullptr && entry->entered.load();
    const SetsHold hold;
    if (!hold.taken) return;
    for (EpollSet* const set : sets()) {
        const auto found = set->items_.find(fd);
        if (found == set->items_.end()) continue;
        Item& item = *found->second;
        if (stores) {
            set->mark_stored(item);
        } else if (item.stored) {
            item.stored = false;
            std::erase(set->stored_, &item);
        } else {
            continue;
        }
        item.untold = true;
        if (!set->untouched_) set->tell_kernel_of_way(item);
    }
}

/// One-shot registrations that have fired stay so.
void EpollSet::tell_kernel_of_way(Item& item) {
    item.untold = false;
    if (item.stored || !item.fired) {
        tell_kernel(item, EPOLL_CTL_MOD);
    } else if (real().epoll_ctl(fd_, EPOLL_CTL_DEL, item.fd, nullptr) == 0) {
        item.registered = false;
    }
}

void EpollSet::touch() {
    if (!untouched_) return;
    untouched_ = false;
    for (const auto& [fd, item] : items_)
        if (item->untold) tell_kernel_of_way(*item);
}

void EpollSet::forget_everywhere(int fd) {
    const SetsHold hold;
    for (EpollSet* const set : sets()) {
        const auto found = set->items_.find(fd);
        if (found == set->items_.end()) continue;
        // A child's closing takes nothing from its parent's set. Our own loses what would go on to
        // report a socket that a child keeps open.
        if (!set->inherited_) real().epoll_ctl(set->fd_, EPOLL_CTL_DEL, fd, nullptr);
        set->drop(*found->second);
    }
}

void EpollSet::close(EpollSet* set) {
    const SetsHold hold;
    while (!set->items_.empty()) set->drop(*set->items_.begin()->second);
    std::erase(sets(), set);
    delete set;
}

}  // namespace via::sockets
