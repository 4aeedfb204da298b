// What has come for one end: from the kernel, what was read ahead of it, and from memory.
#pragma once

#include <optional>

#include "connection.hpp"

namespace via::sockets {

/// What a receiving call of the kernel's said of the end.
void heard(const PipeEnd& end, long result, int error);
/// What the kernel said, once.
int take_error(const PipeEnd& end);
void ask_for_end(int fd, const PipeEnd& end);
/// With the lock of reading(): bytes that the peer sent through the kernel and nobody has read. The
/// kernel is asked once. Nothing: it cannot be told yet.
std::optional<std::size_t> kernel_left(int fd, const PipeEnd& end);
/// With the lock of reading().
bool kernel_is_empty(int fd, const PipeEnd& end);
/// Bytes that woke, and are in the kernel still.
std::uint32_t wakes_left(const PipeEnd& end);
/// With the lock of reading(), when the kernel has nothing but bytes that wake. true: all of them.
bool drain(int fd, const PipeEnd& end);
/// How many of `got` bytes, just read from the kernel, are the peer's data and not wakes.
long data_among(int fd, const PipeEnd& end, long got, int flags);
/// With the lock of reading(). Sets `room` when the sender may want to know of it.
std::size_t take(int fd, const PipeEnd& end, Buffers& to, int flags, bool& room);

}  // namespace via::sockets
