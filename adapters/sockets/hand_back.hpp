// The way back to the kernel.
#pragma once

#include "connection.hpp"

namespace via::sockets {

/// The first look of this process at a connection whose bytes go through memory.
void enter(int fd, Entry& entry, const PipeEnd& end);
/// The bytes are the kernel's again; true: nothing of them is left in memory.
bool settle(int fd, Entry& entry, const PipeEnd& end);
/// The peer wants it: nothing that it sent is left in the kernel in front of what it will send
/// again, and what it has not read goes through the kernel.
void help_to_hand_back(int fd, const PipeEnd& end);
/// The peer has closed, or was killed: it says and sends nothing more.
bool is_deserted(int fd, const PipeEnd& end);
/// The peer is gone, and what it stored last is to be read by somebody who sees the kernel alone:
/// the descriptor becomes another socket, with those bytes. Its addresses are not the same.
void pass_on_the_rest(int fd, Entry& entry, const PipeEnd& end, Reason reason);
void set_state(Pipe& pipe, State state);

/// Of both ends: nobody stores, takes or wakes.
struct AllLocks {
    explicit AllLocks(Pipe& of) : pipe(of) {
        for (int side = 0; side < 2; ++side) {
            pipe.send[side].lock.take();
            pipe.read[side].lock.take();
        }
    }
    ~AllLocks() {
        for (int side = 0; side < 2; ++side) {
            pipe.send[side].lock.let_go();
            pipe.read[side].lock.let_go();
        }
    }
    AllLocks(const AllLocks&) = delete;
    AllLocks& operator=(const AllLocks&) = delete;
    Pipe& pipe;
};

enum class Back { done, again };
/// `late`: the peer does not do its part though nothing would be lost without it.
Back try_to_hand_back(int fd, const PipeEnd& end, bool late);
/// Bytes in the kernel that the peer has not read, in front of some that wake.
bool wakes_behind_bytes(const PipeEnd& end);
bool any_receives(const Pipe& pipe);
/// What can be sent again with all locks held: the reader needs one to take anything.
bool fits_in_kernel(int fd, const PipeEnd& end);
/// With all locks: what the peer has not read of ours goes through the kernel.
void send_again(int fd, const PipeEnd& end);

}  // namespace via::sockets
