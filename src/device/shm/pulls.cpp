#include "device/shm/pulls.hpp"

#include <array>
#include <cerrno>

#include "base/assert.hpp"

namespace via::device::shm {

namespace {

constexpr std::size_t pieces_max = 64;

std::size_t list(std::span<const Extent> extents, std::array<iovec, pieces_max>& to) {
    VIA_ASSERT(extents.size() <= pieces_max);
    std::size_t count = 0;
    for (const Extent& extent : extents) {
        to[count++] = {reinterpret_cast<void*>(extent.address), extent.length};
    }
    return count;
}

std::uint64_t sum(std::span<const Extent> extents) {
    std::uint64_t bytes = 0;
    for (const Extent& extent : extents) bytes += extent.length;
    return bytes;
}

}  // namespace

bool Pulls::prefers_pull(PathId path, std::uint64_t length) {
    Channel& channel = channels_.at(path);
    return channel.copies.pull(length, channel.stores.settled(), [this] { return system_.now(); });
}

void Pulls::pulled(PathId path, bool done) {
    Channel& channel = channels_.at(path);
    channel.copies.ended(done, [this] { return system_.now(); });
    if (!done) {
        reports_.tell(
            "shm: " + describe(channel) +
            " does not pull large messages from our memory: its system (process_vm_readv) or its "
            "option one_copy forbids it; they go in two copies");
    }
}

/// What the kernel lets us read of a process of the same user decides: not if it is not dumpable,
/// under a filter of system calls, or where only parents may trace.
Status Pulls::pull(PathId path, std::span<const Extent> remote, std::span<const Extent> local) {
    // Whose pages come late keeps the kernel waiting, and us: who wants none of it must be able to.
    if (config_.one_copy == OneCopy::never) return Status::error_not_supported;
    const std::int32_t pid = channels_.at(path).peer_info.pid;
    if (pid <= 0) return Status::error_not_supported;  // of another pid namespace
    std::array<iovec, pieces_max> from;
    std::array<iovec, pieces_max> to;
    const std::size_t from_count = list(remote, from);
    const std::size_t to_count = list(local, to);
    ssize_t got;
    do {
        got = system_.process_vm_readv(pid, to.data(), to_count, from.data(), from_count);
    } while (got < 0 && errno == EINTR);
    if (got >= 0 && static_cast<std::uint64_t>(got) == sum(remote)) return Status::success;
    return got < 0 && errno != EFAULT && errno != ENOMEM ? Status::error_not_supported
                                                         : Status::error_resource;
}

}  // namespace via::device::shm
