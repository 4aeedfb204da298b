#include "agent/dma_pins.hpp"

#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/process.hpp"

namespace via::agent {

namespace {

std::string error_text(int error) { return std::string(" (") + strerror(error) + ")"; }

}  // namespace

/// What is wrong, or nothing.
std::string DmaPins::open() {
    if (ring_.valid()) return {};
    free_.reserve(buffers_max);
    io_uring_params parameters{};
    File ring(system_.io_uring_setup(1, &parameters));
    if (!ring.valid()) {
        const bool forbidden = errno == EPERM || errno == EACCES || errno == ENOSYS;
        return (forbidden ? "io_uring is forbidden here: kernel.io_uring_disabled, or a filter of "
                            "system calls"
                          : "there is no io_uring to be had") +
               error_text(errno);
    }
    io_uring_rsrc_register table{};
    table.nr = buffers_max;
    table.flags = IORING_RSRC_REGISTER_SPARSE;
    if (system_.io_uring_register(ring.get(), IORING_REGISTER_BUFFERS2, &table, sizeof table) < 0)
        return "io_uring gives no table of buffers" + error_text(errno);
    for (std::uint32_t buffer = buffers_max; buffer-- != 0;) free_.push_back(buffer);
    ring_ = std::move(ring);
    return {};
}

/// Length 0 empties the place. 0, or errno.
int DmaPins::update(std::uint32_t buffer, std::uint64_t address, std::uint64_t length) {
    iovec bytes{reinterpret_cast<void*>(address), length};
    io_uring_rsrc_update2 update{};
    update.offset = buffer;
    update.data = reinterpret_cast<std::uintptr_t>(&bytes);
    update.nr = 1;
    const int done = system_.io_uring_register(ring_.get(), IORING_REGISTER_BUFFERS_UPDATE, &update,
                                               sizeof update);
    return done == 1 ? 0 : done < 0 ? errno : EAGAIN;
}

std::string DmaPins::why(int error) const {
    const std::uint64_t limit = system_.locked_bytes_max();
    switch (error) {
        case ENOMEM:
            if (limit != LockSystem::unlimited && !system_.has_lock_right())
                return "RLIMIT_MEMLOCK is " + std::to_string(limit) +
                       " bytes, for all that this user has pinned with io_uring; raise it, or give "
                       "the process CAP_IPC_LOCK";
            return "there is not enough memory to have all its pages at once";
        case EFAULT:
            return "part of it is not mapped, or may not be written";
        case EOPNOTSUPP:
            return "it is a mapping of a file, which cannot be pinned";
        default:
            return std::string("io_uring_register: ") + strerror(error);
    }
}

std::expected<std::vector<std::uint32_t>, std::string> DmaPins::pin(std::uint64_t address,
                                                                    std::uint64_t length) {
    const std::uint64_t count = (length - 1) / buffer_bytes_max + 1;
    {
        const std::lock_guard guard(mutex_);
        if (std::string wrong = open(); !wrong.empty()) return std::unexpected(std::move(wrong));
        if (count > free_.size()) return std::unexpected(all_in_use());
    }
    std::vector<std::uint32_t> buffers;
    buffers.reserve(count);
    while (length != 0) {
        const std::uint64_t part = std::min(length, buffer_bytes_max);
        make_present(address, part);
        const std::lock_guard guard(mutex_);
        const int error = free_.empty() ? 0 : update(free_.back(), address, part);
        if (free_.empty() || error != 0) {
            std::string wrong = free_.empty() ? all_in_use() : why(error);
            release(buffers);
            return std::unexpected(std::move(wrong));
        }
        buffers.push_back(free_.back());
        free_.pop_back();
        address += part;
        length -= part;
    }
    return buffers;
}

/// The kernel pins a buffer with a lock held that malloc and page faults of all threads need: not
/// for longer than it takes to look pages up that are there. What cannot be, the pinning says.
void DmaPins::make_present(std::uint64_t address, std::uint64_t length) {
    while (length != 0) {
        const std::uint64_t part = std::min(length, present_bytes);
        if (system_.populate(address, part) < 0) return;
        address += part;
        length -= part;
    }
}

std::string DmaPins::all_in_use() {
    return "all " + std::to_string(buffers_max) +
           " buffers are in use: register fewer and larger regions";
}

void DmaPins::unpin(const std::vector<std::uint32_t>& buffers) {
    if (system_.forked()) return;
    const std::lock_guard guard(mutex_);
    release(buffers);
}

void DmaPins::release(const std::vector<std::uint32_t>& buffers) {
    for (const std::uint32_t buffer : buffers) {
        if (const int error = update(buffer, 0, 0); error != 0) {
            log(1, "pinned memory stays pinned until the process ends (io_uring_register: %s)",
                strerror(error));
            continue;  // its place is lost with it
        }
        free_.push_back(buffer);
    }
}

}  // namespace via::agent
