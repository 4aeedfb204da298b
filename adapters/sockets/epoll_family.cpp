// epoll sets that others have, too: children by fork(), programs that are started, who is given
// one. Marks mean something to one process; see SetFamily.
#include <errno.h>

#include "connection.hpp"
#include "epoll_inside.hpp"
#include "waiting.hpp"

namespace via::sockets {

namespace {

/// With the sets held.
template <class Which>
std::vector<int> sets_that(const Which& which) {
    std::vector<int> found;
    for (int fd = 0; fd < highest.load(); ++fd)
        if (epoll_entry(fd) != nullptr && which(fd)) found.push_back(fd);
    return found;
}

bool is_inherited_by_programs(int fd) {
    const int flags = real().fcntl(fd, F_GETFD);
    return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

constexpr std::uint64_t patience_ns = 2'000'000'000;

}  // namespace

bool EpollSet::is_shared() const {
    return family_.begun() && !unmarked_ && (inherited_ || family_.is_contested());
}

/// Before each use of it.
void SharedSets::use_shared(int set) {
    {
        const SetsHold hold;
        EpollSet* const its = set_of(set, false);
        if (its == nullptr || !its->is_shared()) return;
        if (its->inherited_ && its->family_.take_over(has_helper())) {
            its->inherited_ = false;
            return its->touch();
        }
    }
    relinquish(set);
}

/// What its owner changes from now on a child does not know: then the owner has to be there.
void EpollSet::be_helped() {
    if (family_.begun() && !unmarked_ && own_arena() != nullptr && start_helper())
        family_.has_helper();
}

void SharedSets::say_helped() {
    const SetsHold hold;
    for (EpollSet* const set : all_sets())
        if (!set->inherited_) set->family_.has_helper();
}

/// true: it holds none of the owner's marks. false: this process is to take them out.
bool SharedSets::ask_owner(int set) {
    SetFamily family;
    {
        const SetsHold hold;
        if (const EpollSet* const its = set_of(set, false)) family = its->family_;
    }
    if (!family.begun()) return false;
    if (const Arena* const arena = own_arena_if_made()) call_for_help(arena->head().id);
    const std::uint64_t late = now_ns() + patience_ns;
    while (!family.is_given_up()) {
        const bool waits = (family.is_helped() || family.is_claimed()) && now_ns() < late;
        if (!waits && family.claim()) return false;
        if (family.is_left() || now_ns() >= late) return false;  // it began to, and goes not on
        nap();
    }
    return true;
}

/// Another thread does it: until it has.
void SharedSets::await_unmarked(int set) {
    const std::uint64_t late = now_ns() + patience_ns;
    for (bool done = false; !done && now_ns() < late; nap()) {
        const SetsHold hold;
        const EpollSet* const its = set_of(set, false);
        done = its == nullptr || its->unmarked_;
    }
}

/// With the sets held; what is to be handed back.
std::vector<int> EpollSet::begin_to_unmark() {
    left_to_kernel_ = true;
    drop_all_left();
    if (family_.begun()) family_.contest();
    std::vector<int> members;
    for (const auto& [member, item] : items_) members.push_back(member);
    return members;
}

void SharedSets::relinquish(int set) {
    if (epoll_entry(set) == nullptr) return;
    const int error = errno;
    std::vector<int> members;
    bool others = false;  // do it
    bool inherited = false;
    bool told = false;
    {
        const SetsHold hold;
        EpollSet* const its = set_of(set, true);
        if (its == nullptr || its->unmarked_) return;
        others = std::exchange(its->unmarking_, true);
        if (!others) members = its->begin_to_unmark();
        inherited = its->inherited_;
        if (!others && !inherited && its->family_.begun()) told = !its->family_.claim();
    }
    if (others) {
        await_unmarked(set);
        errno = error;
        return;
    }
    if (inherited) told = ask_owner(set);
    for (const int member : members)
        if (Entry* const its = socket_entry(member)) hand_back(member, *its, Reason::shared_set);
    const SetsHold hold;
    if (EpollSet* const its = set_of(set, false)) its->unmark_all(told);
    errno = error;
}

/// `told`: the kernel has been, by another process.
void EpollSet::unmark_all(bool told) {
    unmarked_ = true;
    for (auto at = items_.begin(); at != items_.end();) {
        Item& item = *(at++)->second;
        mark_kernels(item);
        if (item.fired && !item.registered) continue;  // the program's next word adds it again
        if (!item.fired && !told && tell_kernel(item, EPOLL_CTL_MOD) < 0 && errno == ENOENT &&
            !inherited_)
            tell_kernel(item, EPOLL_CTL_ADD);  // the descriptor is another socket by now
        drop(item);
    }
    if (family_.begun() && !told) family_.give_up();
}

void SharedSets::relinquish_all() {
    for (const int fd : sets_that([](int) { return true; })) relinquish(fd);
}

void* SharedSets::relinquish_contested(void*) {
    std::vector<int> contested;
    {
        const SetsHold hold;
        contested = sets_that([](int fd) {
            const EpollSet* const set = set_of(fd, false);
            return set != nullptr && !set->inherited_ && set->is_shared();
        });
    }
    for (const int fd : contested) relinquish(fd);
    return nullptr;
}

/// By another thread: this one is to help peers meanwhile, of whom some may be this process's.
void SharedSets::give_up_contested() {
    bool any = false;
    {
        const SetsHold hold;
        for (const EpollSet* const set : all_sets())
            any = any || (!set->inherited_ && set->is_shared());
    }
    if (any) start_thread(relinquish_contested, nullptr);
}

/// What a set's memory says of its sleeper is of one process.
void SharedSets::before_fork() {
    std::vector<int> alone;
    {
        const SetsHold hold;
        alone = sets_that([](int fd) {
            EpollSet* const set = set_of(fd, true);
            if (set->unmarked_ || set->inherited_) return false;
            set->drop_all_left();
            set->watch_all_by_bytes();
            return !set->family_.begin(has_helper());
        });
    }
    for (const int fd : alone) relinquish(fd);
}

void SharedSets::renew_after_fork() {
    sets_lock.let_go();
    for (EpollSet* const set : all_sets()) {
        set->inherited_ = true;
        set->unmarking_ = false;  // that thread is not in this process
        set->waiting_ = 0;
        set->board_.forget();
    }
}

void SharedSets::before_program(bool ends_this_one) {
    for (const int fd : sets_that(is_inherited_by_programs)) relinquish(fd);
    if (!ends_this_one || is_borrowed()) return;
    const SetsHold hold;
    for (EpollSet* const set : all_sets())
        if (!set->inherited_) set->family_.leave();
}

void SharedSets::after_failed_program() {
    const SetsHold hold;
    for (EpollSet* const set : all_sets()) {
        SetFamily& family = set->family_;
        if (!set->inherited_ && family.begun() && !family.is_contested())
            set->inherited_ = !family.take_over(has_helper());
    }
}

void SharedSets::leave() {
    const SetsHold hold;
    for (EpollSet* const set : all_sets()) {
        set->watch_all_by_bytes();
        set->board_.give_back();
        if (!set->inherited_) set->family_.leave();
    }
}

}  // namespace via::sockets
