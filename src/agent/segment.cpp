// Segments: memory of a program that others can map.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "agent/file.hpp"
#include "agent/host_agent.hpp"
#include "agent/process.hpp"
#include "posix/not_cancelled.hpp"
#include "posix/resize.hpp"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace via::agent {

namespace {

/// A memfd of one size for ever, mapped. `writable`: others may map it for writing, too. A
/// descriptor that only reads does not keep them from it: it can be opened again for writing
/// (/proc/self/fd).
class SealedMemory {
public:
    /// What failed and errno; nullptr: nothing.
    const char* make(std::uint64_t length, bool writable) {
        constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
        descriptor_ = memfd_create("via-segment", flags | MFD_NOEXEC_SEAL);
        if (descriptor_ < 0 && errno == EINVAL)  // Linux before 6.3
            descriptor_ = memfd_create("via-segment", flags);
        if (descriptor_ < 0) return "memfd_create";
        if (posix::resize(descriptor_, length) < 0) return "ftruncate";
        void* base = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
        if (base == MAP_FAILED) return "mmap";
        base_ = static_cast<std::byte*>(base);
        length_ = length;
        // Our own mapping, which was there before, stays writable.
        const int against_writers = writable ? 0 : F_SEAL_FUTURE_WRITE;
        if (fcntl(descriptor_, F_ADD_SEALS,
                  F_SEAL_SHRINK | F_SEAL_GROW | against_writers | F_SEAL_SEAL) < 0)
            return "fcntl F_ADD_SEALS";
        return nullptr;
    }
    SealedMemory() = default;
    SealedMemory(const SealedMemory&) = delete;
    SealedMemory& operator=(const SealedMemory&) = delete;
    ~SealedMemory() {
        if (base_ != nullptr) munmap(base_, length_);
        if (descriptor_ >= 0) posix::close_uncancelled(descriptor_);
    }
    std::byte* base() const { return base_; }
    int descriptor() const { return descriptor_; }

private:
    int descriptor_ = -1;
    std::byte* base_ = nullptr;
    std::uint64_t length_ = 0;
};

}  // namespace

Result<Segment> HostAgent::make_segment(std::uint64_t length,
                                        const memory::MemoryAttributes& attributes) {
    auto sealed = std::make_shared<SealedMemory>();
    if (const char* failed = sealed->make(length, attributes.rdma_write); failed != nullptr) {
        const int error = errno;
        log(1, "NIC %s: no segment of %llu bytes (%s): %s%s", nic_.name().c_str(),
            static_cast<unsigned long long>(length), failed, strerror(error),
            error == EFBIG ? "; raise the limit on the size of files (ulimit -f)" : "");
        return std::unexpected(Status::error_resource);
    }
    std::byte* base = sealed->base();
    const auto region = nic_.add_segment(
        {base, length, sealed->descriptor(), sealed, attributes.rdma_write}, attributes);
    if (!region) return std::unexpected(region.error());
    const Status pinned = pins_.pin(*region, reinterpret_cast<std::uint64_t>(base), length);
    if (pinned == Status::success) return Segment{base, *region};
    [[maybe_unused]] const auto removed = nic_.remove_segment(base);
    return std::unexpected(pinned);
}

Status HostAgent::destroy_segment(const std::byte* base) {
    const auto removed = nic_.remove_segment(base);
    if (!removed) return removed.error();
    // While it is still mapped: the addresses may be somebody else's next.
    if (removed->handle != 0) pins_.unpin(removed->handle);
    return Status::success;
}

}  // namespace via::agent
