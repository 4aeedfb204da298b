// This process under the library: whether it is accelerated, its arena, its thread; fork, and its
// end.
#pragma once

#include "arena.hpp"

namespace via::sockets {

/// The process is accelerated still. Ended by stop(), for all time.
bool active();
void stop(Reason reason);
/// This process's own arena, made when first asked for; null: none can be had.
Arena* own_arena();
Arena* own_arena_if_made();

/// exit() has come, or _exit().
void leave();
/// A thread that does what a peer that hands back wants, whatever the program does. At a process's
/// first call on a connection in memory; a child by fork() has its own. false: there is no memory.
bool start_helper();
bool has_helper();
/// One that the program does not know of, and no signal comes to. false: there is no memory.
bool start_thread(void* (*does)(void*), void* with);
/// A peer hands back, and this one's program may be far from any call of ours.
void call_for_help(std::uint64_t arena);
/// A vfork() child, which has our memory and descriptors of its own.
bool is_borrowed();

}  // namespace via::sockets
