// epoll sets with sockets of ours in them.
#pragma once

#include <sys/epoll.h>

#include <map>
#include <vector>

#include "connection.hpp"
#include "real.hpp"
#include "set_board.hpp"
#include "set_family.hpp"

namespace via::sockets {

/// Owns what this process knows of one epoll set. The kernel's registrations stay. Those of our
/// sockets carry a mark in place of the program's data, by which the event is known again; while
/// the bytes go through memory the kernel only wakes, and the readiness is worked out here.
class EpollSet {
public:
    explicit EpollSet(int fd) : fd_(fd), descriptors_{fd} {}

    /// epoll_ctl() and the waiting calls on a set of ours.
    static int control(int set, int operation, int fd, epoll_event* event);
    static int wait(int set, epoll_event* events, int most, std::int64_t timeout_ns,
                    const sigset_t* mask);
    /// It is asked by others than the waiting calls: in another set, or by poll().
    static void leave_to_kernel(int set);

    /// The bytes of a socket go another way than before.
    static void refresh(int fd);
    static void forget_everywhere(int fd);
    /// dup() and the like have made `copy`.
    static void copied(int set, int copy);
    static void close(EpollSet* set, int fd);

private:
    friend class SharedSets;
    /// What one thread has done before it sleeps in the kernel.
    struct Sleep {
        std::vector<Sleeping> counted;
        bool on_board = false;  ///< the board says that it sleeps
        bool again = false;     ///< there is something to tell by now
        bool look = false;      ///< nobody may wake it
    };
    /// A thread is in a waiting call.
    class Waiting {
    public:
        explicit Waiting(int set);
        ~Waiting();
        bool is_shared() const { return shared_; }
        Waiting(const Waiting&) = delete;
        Waiting& operator=(const Waiting&) = delete;

    private:
        int fd_;
        EpollSet* set_;
        bool shared_;
    };
    /// Before its use: it is another process's, or one uses it that is.
    bool is_shared() const;
    void be_helped();
    std::vector<int> begin_to_unmark();
    void unmark_all(bool told);
    bool has_marks() const { return !unmarked_ && !family_.is_contested(); }
    /// Why what is added is handed back; none: it is not.
    static Reason left_to_kernel(int set);

    /// Who is asked first: what has had no place in the events of the last wait.
    enum class Turn { kernel_alone, kernels, memorys };
    static Turn turn_of(int set);
    static bool is_ready(int set);
    static void prepare(int set, Sleep& sleep);
    static void end_sleep(int set, Sleep& sleep);

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
        bool marked = false;     ///< whoever stores sets its bit on the board
        bool listed = false;     ///< in listed_
        bool left = false;       ///< the program took it out, and the kernel has not heard
        bool untold = false;     ///< the kernel has not heard that `stored` is another
        bool ended = false;      ///< the kernel says more than that there are bytes
        std::uint64_t seen_in = ~0ull;
        std::uint32_t seen_out = ~0u;
        std::uint32_t seen_end = 0;
    };
    Item* item_at(int fd) const;
    Item* make_item(int fd, const epoll_event& event);
    void unmark_in_others(int fd);
    int add(int fd, const epoll_event& event, bool stores);
    int add_again(Item& item, const epoll_event& event);
    int change(Item& item, epoll_event& event);
    void arm(Item& item);
    bool kernel_may_not_know(const Item& item) const;
    int take_out(Item& item);
    int tell_kernel(Item& item, int operation);
    int tell_kernel_once(Item& item, int operation, bool marked);
    void tell_kernel_of_way(Item& item);
    void touch();
    void mark_stored(Item& item);
    void mark_kernels(Item& item);
    void changes_way(Item& item, bool stores);

    bool may_mark(const Item& item) const;
    bool watch(Item& item);
    void unwatch(Item& item);
    void watch_by_bytes(Item& item);
    void watch_all_by_bytes();
    void crowd();
    void tell_mark(Item& item);
    void list(Item& item);
    void prepare_board(Sleep& sleep);
    void renew_sleep();
    void nudge();
    static bool stays_listed(const Item& item, bool told);

    static std::uint32_t due(Item& item);
    static bool would_be_due(const Item& item);
    bool tell(Item& item, epoll_event& event);
    int collect(epoll_event* events, int most);
    int collect_scanned(epoll_event* events, int most);
    int collect_listed(epoll_event* events, int most);
    static int translate(epoll_event* events, int count);
    /// Behind `count` events those of sockets whose bytes go through memory; how many then.
    static int add_stored(int set, epoll_event* events, int count, int most);
    void prepare_items(Sleep& sleep);
    bool prepare_item(Item& item, Sleep& sleep);
    void drop(Item& item);
    int remove(Item& item, bool registered_here = true);
    void drop_all_left();
    static Item* item_of(std::uint64_t data);

    int fd_;                        ///< one of those that follow
    std::vector<int> descriptors_;  ///< it has
    SetFamily family_;
    /// By fork(), and not used yet: its registrations are the parent's.
    bool inherited_ = false;
    bool left_to_kernel_ = false;  ///< what is added to it is
    bool unmarking_ = false;       ///< a thread is about to make it so that
    bool unmarked_ = false;        ///< the kernel has the program's data
    bool crowded_ = false;  ///< several threads slept at a time: each connection wakes by itself
    std::map<int, Item*> items_;
    std::vector<Item*> scanned_;  ///< of those whose bytes go through memory, the ones not marked
    std::size_t turn_ = 0;
    /// What had no place for events in the last wait comes first in the next one.
    bool memorys_turn_ = false, listeds_turn_ = false;
    std::size_t marked_ = 0;     ///< how many are marked by those who store for them
    std::vector<Item*> listed_;  ///< of these, what may have something to tell
    std::vector<Item*> kept_;    ///< for one call
    SetBoard board_;
    int waiting_ = 0;  ///< threads
};

/// What several processes do to a set, and what is done to all sets of this one.
class SharedSets {
public:
    /// Of a set of ours, by this process: it may be its parent's, or a child may use it, too.
    static void use_shared(int set);
    /// Somebody will use it who knows nothing of marks: it holds none any more, and is the
    /// kernel's. Waits for the sockets' peers as hand_back() does. Nothing, if it is no set.
    static void relinquish(int set);
    static void relinquish_all();
    /// By the thread that helps: another process has begun to use sets of ours.
    static void give_up_contested();
    static void say_helped();

    static void before_fork();
    static void renew_after_fork();
    /// Around exec(): those that the new program inherits are the kernel's.
    static void before_program(bool ends_this_one);
    static void after_failed_program();
    /// The process ends: its memory stays, if others of its family are in it.
    static void leave();

private:
    static bool ask_owner(int set);
    static void await_unmarked(int set);
    static void* relinquish_contested(void*);
};

/// poll(), with sockets of ours among the descriptors.
int poll_all(pollfd* fds, nfds_t count, std::int64_t timeout_ns, const sigset_t* mask);
int select_all(int count, fd_set* reads, fd_set* writes, fd_set* others, std::int64_t timeout_ns,
               const sigset_t* mask, std::int64_t* left_ns);

}  // namespace via::sockets
