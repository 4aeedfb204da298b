// A connection on its way into memory and back, and its bytes.
#pragma once

#include <utility>

#include "clock.hpp"
#include "descriptors.hpp"
#include "options.hpp"
#include "process.hpp"
#include "real.hpp"

namespace via::sockets {

/// recv and send on a socket of ours, with the kernel's results.
ssize_t receive(int fd, Entry& entry, const iovec* parts, int count, int flags);
ssize_t send(int fd, Entry& entry, const iovec* parts, int count, int flags);

/// After a call with bytes: looks for the peer, answers its offer, moves to memory.
void step(int fd, Entry& entry);
/// The entry's pipe. nullptr: there is none yet; `call` went to the kernel, counted in `calls`, for
/// which a new pipe waits, and a step followed.
template <class Call>
Pipe* pipe_or_kernel(int fd, Entry& entry, std::atomic<std::uint32_t>& calls, ssize_t& bytes,
                     Call call) {
    if (entry.busy_poll.is_on()) {  // the peer is on another host: there will never be one
        bytes = call();
        return nullptr;
    }
    Pipe* pipe = pipe_of(entry);
    if (pipe != nullptr) return pipe;
    calls.fetch_add(1);
    pipe = pipe_of(entry);
    if (pipe == nullptr) bytes = call();
    calls.fetch_sub(1);
    if (pipe == nullptr && bytes > 0) step(fd, entry);
    return pipe;
}
/// Whether the bytes go through memory, or some lie there still. What has to be done at once when
/// they begin to is done.
bool through_memory(int fd, Entry& entry);
/// All that comes is the kernel's again, and no byte is left behind. Waits for the peer if bytes of
/// its lie in memory.
void hand_back(int fd, Entry& entry, Reason reason);

/// The peer's wish to hand back is fulfilled, if it has one.
void help_if_wanted(int fd, Entry& entry);

struct Readiness {
    bool bytes = false, room = false;
};
/// What memory says, and what is left of the bytes in the kernel.
Readiness readiness(int fd, Entry& entry);
/// Asks the kernel for the end and for errors; they are kept in the pipe.
void look_at_kernel(int fd, const PipeEnd& end);
/// sleeps: a Sleeping follows. looks: there is something by now. waits: a byte that woke other
/// threads as well lies in the kernel until they have run, and would let nobody sleep.
enum class Rest { sleeps, looks, waits };
/// Whether a byte that lies there ends a sleep; `alone`: whoever else is asleep never runs again.
enum class Sleeper { by_edge, by_level, alone };
/// Before sleeping in the kernel for `why`, Asleep.
Rest about_to_sleep(int fd, Entry& entry, std::uint32_t why, Sleeper how);
/// Owns that a thread is counted as asleep, also if it is cancelled then. errno stays.
class Sleeping {
public:
    explicit Sleeping(Entry& entry) : entry_(&entry) {}
    ~Sleeping();
    Sleeping(Sleeping&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
    Sleeping& operator=(Sleeping&&) = delete;

private:
    Entry* entry_;
};
/// For the peer, or another thread, which is about to hand back.
void nap();
/// Owns how long one call has waited for other threads to see the byte that woke them.
class ForOthers {
public:
    void rest();
    /// One that was killed in its sleep is counted for ever.
    Sleeper sleeper() const { return rests_ > most ? Sleeper::alone : Sleeper::by_level; }

private:
    static constexpr int yields = 16, most = 4000;
    int rests_ = 0;
};
/// The peer cannot send a byte to say that there is room: sleep for a little only.
bool must_look_again(Entry& entry);
/// FIONREAD.
std::size_t unread(int fd, Entry& entry);
/// What was sent lies in memory still.
bool has_unread_by_peer(const Entry& entry);
/// Before the last close: end of stream, or that bytes were not read.
void say_goodbye(int fd, Entry& entry);
/// Pipes whose other process was not quite dead then.
void free_left_pipes();
/// They are the parent's.
void forget_left_pipes();

}  // namespace via::sockets
