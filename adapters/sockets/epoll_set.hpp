// epoll sets with sockets of ours in them.
#pragma once

#include <sys/epoll.h>

#include <map>
#include <vector>

#include "descriptors.hpp"
#include "real.hpp"

namespace via::sockets {

/// What this process knows of one epoll set. The kernel's registrations stay. Those of our sockets
/// carry a mark in place of the program's data, by which the event is known again; while the bytes
/// go through memory the kernel only wakes, and the readiness is worked out here.
class EpollSet {
public:
    explicit EpollSet(int fd) : fd_(fd) {}

    /// epoll_ctl() and the waiting calls on a set of ours.
    static int control(int set, int operation, int fd, epoll_event* event);
    static int wait(int set, epoll_event* events, int most, std::int64_t timeout_ns,
                    const sigset_t* mask);
    /// It is asked by others than the waiting calls: in another set, or by poll().
    static void leave_to_kernel(int set);

    /// The bytes of a socket go another way than before.
    static void refresh(int fd);
    static void forget_everywhere(int fd);
    static void close(EpollSet* set);
    static void renew_after_fork();

private:
    static bool has_stored(int set);
    static bool is_ready(int set);
    static void prepare(int set, std::vector<Entry*>& asleep, bool& again, bool& look);

    struct Item {
        EpollSet* set;
        int fd;
        std::uint32_t slot;
        epoll_event told;        ///< by the program
        bool stored = false;     ///< its bytes go through memory
        bool fired = false;      ///< EPOLLONESHOT
        bool registered = true;  ///< in the kernel
        bool hint = false;       ///< the kernel had something
        bool parked = false;     ///< found empty, and whoever stores will wake
        bool untold = false;     ///< the kernel has not heard that `stored` is another
        bool ended = false;      ///< the kernel says more than that there are bytes
        std::uint64_t seen_in = ~0ull;
        std::uint32_t seen_out = ~0u;
        std::uint32_t seen_end = 0;
    };
    int tell_kernel(Item& item, int operation);
    void tell_kernel_of_way(Item& item);
    void touch();
    void mark_stored(Item& item);
    static std::uint32_t due(Item& item);
    static bool would_be_due(const Item& item);
    int collect(epoll_event* events, int most);
    static int translate(epoll_event* events, int count);
    /// Behind `count` events those of sockets whose bytes go through memory; how many then.
    static int add_stored(int set, epoll_event* events, int count, int most);
    void prepare_items(std::vector<Entry*>& asleep, bool& again, bool& look);
    void drop(Item& item);
    static Item* marked(std::uint64_t data);

    int fd_;
    bool inherited_ = false;  ///< by fork()
    /// A child that only uses the sockets leaves its parent's registrations as they are, until it
    /// waits for the set itself.
    bool untouched_ = false;
    std::map<int, Item*> items_;
    std::vector<Item*> stored_;
    std::size_t turn_ = 0;
};

/// poll(), with sockets of ours among the descriptors.
int poll_all(pollfd* fds, nfds_t count, std::int64_t timeout_ns, const sigset_t* mask);
int select_all(int count, fd_set* reads, fd_set* writes, fd_set* others, std::int64_t timeout_ns,
               const sigset_t* mask, std::int64_t* left_ns);

}  // namespace via::sockets
