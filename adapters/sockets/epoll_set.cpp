#include "epoll_inside.hpp"

#include <errno.h>
#include <sys/random.h>

#include "connection.hpp"

namespace via::sockets {

namespace {

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

std::vector<EpollSet*>& all_sets() {
    static auto* all = new std::vector<EpollSet*>;
    return *all;
}

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
        all_sets().push_back(set);
    }
    return set;
}

EpollSet::Item* EpollSet::item_of(std::uint64_t data) {
    if ((data >> slot_bits) != (mark_base() >> slot_bits)) return nullptr;
    const std::uint64_t slot = data & ((1u << slot_bits) - 1);
    return slot < slots().size() ? static_cast<Item*>(slots()[slot]) : nullptr;
}

int EpollSet::tell_kernel_once(Item& item, int operation, bool marked) {
    epoll_event event = item.told;
    if (marked) event.data.u64 = mark_base() | item.slot;
    // There is always room, so that an edge is told also when another thread has read the byte.
    if (item.stored) event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    int result = real().epoll_ctl(fd_, operation, item.fd, &event);
    if (result < 0 && operation == EPOLL_CTL_MOD && errno == ENOENT && !item.registered)
        result = real().epoll_ctl(fd_, EPOLL_CTL_ADD, item.fd, &event);
    if (result == 0) item.registered = true;
    return result;
}

int EpollSet::tell_kernel(Item& item, int operation) {
    const bool marked = has_marks();
    // Whoever has begun to use it, too, may have told the kernel what came later.
    if (!marked && !unmarked_ && operation == EPOLL_CTL_MOD) return 0;
    const int result = tell_kernel_once(item, operation, marked);
    // Another process may have begun to use it meanwhile.
    if (result == 0 && marked && !has_marks()) tell_kernel_once(item, EPOLL_CTL_MOD, false);
    return result;
}

EpollSet::Item* EpollSet::item_at(int fd) const {
    if (static_cast<unsigned>(fd) >= descriptors_max) return nullptr;
    void*& near = descriptors[static_cast<unsigned>(fd)].item;
    if (near != nullptr && static_cast<Item*>(near)->set == this) return static_cast<Item*>(near);
    const auto found = items_.find(fd);
    if (found == items_.end()) return nullptr;
    near = found->second;
    return found->second;
}

EpollSet::Item* EpollSet::make_item(int fd, const epoll_event& event) {
    auto slot = static_cast<std::uint32_t>(slots().size());
    if (!free_slots().empty()) {
        slot = free_slots().back();
        free_slots().pop_back();
    } else {
        slots().push_back(nullptr);
    }
    Item* const item = new Item{this, fd, slot, event};
    slots()[slot] = item;
    items_[fd] = item;
    return item;
}

void EpollSet::drop(Item& item) {
    items_.erase(item.fd);
    mark_kernels(item);
    Entry& entry = descriptors[static_cast<unsigned>(item.fd)];
    if (entry.item == &item) entry.item = nullptr;
    if (!item.left && entry.in_sets > 0) --entry.in_sets;  // 0: closed past us, and opened again
    slots()[item.slot] = nullptr;
    free_slots().push_back(item.slot);
    delete &item;
}

void EpollSet::mark_stored(Item& item) {
    if (item.stored) return;
    item.stored = true;
    if (!watch(item)) scanned_.push_back(&item);
}

void EpollSet::mark_kernels(Item& item) {
    item.stored = false;
    if (item.marked)
        unwatch(item);
    else
        std::erase(scanned_, &item);
}

/// Its mark goes first, then its registration, if that is this process's: see renew_sleep().
/// Returns what the kernel said, with errno.
int EpollSet::remove(Item& item, bool registered_here) {
    const int fd = item.fd;
    drop(item);
    const int result = registered_here ? real().epoll_ctl(fd_, EPOLL_CTL_DEL, fd, nullptr) : 0;
    const int error = errno;
    renew_sleep();
    errno = error;
    return result;
}

void EpollSet::drop_all_left() {
    for (auto at = items_.begin(); at != items_.end();) {
        Item& item = *(at++)->second;
        if (item.left) remove(item);
    }
}

void EpollSet::leave_to_kernel(int set) {
    if (epoll_entry(set) == nullptr) return;
    SharedSets::use_shared(set);
    std::vector<int> held;
    {
        const SetsHold hold;
        EpollSet* const its = set_of(set, true);
        if (its == nullptr || std::exchange(its->left_to_kernel_, true)) return;
        its->drop_all_left();
        for (const auto& [member, item] : its->items_) held.push_back(member);
    }
    for (const int member : held)
        if (Entry* const its = socket_entry(member)) hand_back(member, *its, Reason::nested);
}

Reason EpollSet::left_to_kernel(int set) {
    const SetsHold hold;
    const EpollSet* const its = set_of(set, false);
    if (its == nullptr || !its->left_to_kernel_) return Reason::none;
    return its->unmarked_ ? Reason::shared_set : Reason::nested;
}

void EpollSet::refresh(int fd) {
    Entry* const entry = socket_entry(fd);
    const bool stores = entry != nullptr && entry->entered.load();
    const SetsHold hold;
    if (!hold.taken) return;
    for (EpollSet* const set : all_sets()) {
        Item* const item = set->item_at(fd);
        if (item == nullptr) continue;
        if (item->left && !stores)
            set->remove(*item);
        else if (!item->left && stores != item->stored)
            set->changes_way(*item, stores);
    }
}

void EpollSet::changes_way(Item& item, bool stores) {
    if (stores)
        mark_stored(item);
    else
        mark_kernels(item);
    item.untold = true;
    if (!inherited_) tell_kernel_of_way(item);
    renew_sleep();
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
    for (const auto& [fd, item] : items_)
        if (item->untold) tell_kernel_of_way(*item);
}

void EpollSet::forget_everywhere(int fd) {
    const SetsHold hold;
    for (EpollSet* const set : all_sets()) {
        Item* const item = set->item_at(fd);
        if (item == nullptr) continue;
        // A child's closing takes nothing from its parent's set. Our own loses what would go on to
        // report a socket that a child keeps open.
        set->remove(*item, !set->inherited_);
    }
}

void EpollSet::copied(int set, int copy) {
    opened(copy, Kind::epoll);
    if (epoll_entry(copy) == nullptr) return SharedSets::relinquish(set);  // beyond our table
    const SetsHold hold;
    EpollSet* const its = set_of(set, true);
    if (its == nullptr) return;
    its->descriptors_.push_back(copy);
    descriptors[static_cast<unsigned>(copy)].set.store(its);
}

void EpollSet::close(EpollSet* set, int fd) {
    const SetsHold hold;
    std::erase(set->descriptors_, fd);
    if (!set->descriptors_.empty()) {
        set->fd_ = set->descriptors_.front();
        return;
    }
    while (!set->items_.empty()) set->drop(*set->items_.begin()->second);
    std::erase(all_sets(), set);
    set->board_.give_back();
    if (!set->inherited_) set->family_.leave();
    set->family_.end();
    delete set;
}

}  // namespace via::sockets
