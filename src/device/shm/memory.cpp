#include "device/shm/memory.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <cstdio>
#include <utility>

#include "device/shm/peer_load.hpp"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace via::device::shm {

namespace {

constexpr int seals_needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::unexpected<Failure> not_acceptable(const char* why) {
    return std::unexpected(
        Failure{Status::not_reachable, std::string("shm: the peer's memory is refused: ") + why});
}

int create_memfd(System& system) {
    constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    const int fd = system.memfd_create("via-channel", flags | MFD_NOEXEC_SEAL);
    if (fd >= 0 || errno != EINVAL) return fd;
    return system.memfd_create("via-channel", flags);  // Linux before 6.3
}

/// What makes sure that no access to mapped memory of the peer can ever fault.
Outcome<void> check_peer_memory(System& system, int fd, std::uint64_t length) {
    const int seals = system.get_seals(fd);
    if (seals < 0 || (seals & seals_needed) != seals_needed) {
        return not_acceptable("it is not sealed against shrinking and growing");
    }
    // Not huge pages: touching those can fault for want of one.
    if (system.file_system_type(fd) != TMPFS_MAGIC) return not_acceptable("it is not plain memory");
    struct stat status;
    if (system.fstat(fd, &status) < 0) {
        return failure("cannot look at the peer's memory (fstat)", errno);
    }
    if (static_cast<std::uint64_t>(status.st_size) != length) {
        return not_acceptable("it has another size than announced");
    }
    return {};
}

}  // namespace

/// Against slips only: who has it can open it once more, for writing. The seal FUTURE_WRITE would
/// prevent that, but forbids the owner to give pages back (MADV_REMOVE fails with EPERM). So we
/// never read back what a channel's peer has in this way.
int reopen_read_only(System& system, int fd) {
    char path[40];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return system.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

Outcome<std::shared_ptr<Mapping>> map_segment(System& system, int fd, std::uint64_t length,
                                              bool writable) {
    if (auto checked = check_peer_memory(system, fd, length); !checked) {
        return std::unexpected(checked.error());
    }
    void* data = system.mmap(length, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd);
    if (data == MAP_FAILED) return failure("cannot map the peer's segment (mmap)", errno);
    return std::make_shared<Mapping>(system, static_cast<std::byte*>(data), length);
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
    if (this != &other) {
        reset();
        system_ = other.system_;
        data_ = std::exchange(other.data_, nullptr);
        bytes_ = other.bytes_;
    }
    return *this;
}

void Mapping::reset() {
    if (data_ != nullptr) system_->munmap(data_, bytes_);
    data_ = nullptr;
}

Outcome<OwnMemory> OwnMemory::create(System& system, const Layout& layout) {
    Descriptor fd(system, create_memfd(system));
    if (!fd.valid()) return failure("cannot create shared memory (memfd_create)", errno);
    if (system.ftruncate(fd.get(), static_cast<off_t>(layout.bytes())) < 0) {
        return failure("cannot size shared memory (ftruncate)", errno);
    }
    void* data = system.mmap(layout.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get());
    if (data == MAP_FAILED) return failure("cannot map own shared memory (mmap)", errno);
    OwnMemory memory;
    memory.system_ = &system;
    memory.layout_ = layout;
    memory.mapping_ = Mapping(system, static_cast<std::byte*>(data), layout.bytes());
    if (system.madvise(data, layout.bytes(), MADV_DONTFORK) < 0) {
        return failure("cannot keep shared memory from children (madvise)", errno);
    }
    memory.read_only_ = Descriptor(system, reopen_read_only(system, fd.get()));
    memory.can_give_back_ = memory.read_only_.valid();
    if (!memory.can_give_back_ && errno != EACCES) {
        return failure("cannot open shared memory read-only (/proc/self/fd)", errno);
    }
    // A process that is not dumpable may not open its own descriptors again.
    const int seals = seals_needed | (memory.can_give_back_ ? 0 : F_SEAL_FUTURE_WRITE);
    if (system.add_seals(fd.get(), seals) < 0) {
        return failure("cannot seal shared memory (fcntl F_ADD_SEALS)", errno);
    }
    if (!memory.can_give_back_) memory.read_only_ = std::move(fd);
    Control& control = memory.control();
    control.version.store(channel_version, memory_order_relaxed);
    control.features.store(features_known, memory_order_relaxed);
    control.ring_slots.store(layout.ring_slots, memory_order_relaxed);
    control.arena_bytes.store(layout.arena_bytes, memory_order_relaxed);
    control.magic.store(channel_magic, memory_order_release);
    return memory;
}

int OwnMemory::give_back_arena() {
    if (!can_give_back_) return 0;
    return system_->madvise(arena(), layout_.arena_bytes, MADV_REMOVE) < 0 ? errno : 0;
}

Outcome<PeerMemory> PeerMemory::map(System& system, int fd, const Layout& layout) {
    if (auto checked = check_peer_memory(system, fd, layout.bytes()); !checked) {
        return std::unexpected(checked.error());
    }
    void* data = system.mmap(layout.bytes(), PROT_READ, MAP_SHARED, fd);
    if (data == MAP_FAILED) return failure("cannot map the peer's memory (mmap)", errno);
    PeerMemory memory;
    memory.layout_ = layout;
    memory.mapping_ = Mapping(system, static_cast<std::byte*>(data), layout.bytes());
    if (system.madvise(data, layout.bytes(), MADV_DONTFORK) < 0) {
        return failure("cannot keep the peer's memory from children (madvise)", errno);
    }
    peer_decision();
    const Control& control = memory.control();
    if (peer_load(control.magic, memory_order_acquire) != channel_magic ||
        peer_load(control.version, memory_order_relaxed) != channel_version ||
        peer_load(control.ring_slots, memory_order_relaxed) != layout.ring_slots ||
        peer_load(control.arena_bytes, memory_order_relaxed) != layout.arena_bytes) {
        return not_acceptable("its header says something else than the greeting");
    }
    return memory;
}

Outcome<MailboxMemory> MailboxMemory::create(System& system) {
    Descriptor fd(system, create_memfd(system));
    if (!fd.valid()) return failure("cannot create a mailbox (memfd_create)", errno);
    if (system.ftruncate(fd.get(), static_cast<off_t>(mailbox_bytes)) < 0) {
        return failure("cannot size a mailbox (ftruncate)", errno);
    }
    if (system.add_seals(fd.get(), seals_needed) < 0) {
        return failure("cannot seal a mailbox (fcntl F_ADD_SEALS)", errno);
    }
    auto memory = map_checked(system, fd.get());
    if (memory) memory->descriptor_ = std::move(fd);
    return memory;
}

Outcome<MailboxMemory> MailboxMemory::map(System& system, int fd) {
    if (auto checked = check_peer_memory(system, fd, mailbox_bytes); !checked) {
        return std::unexpected(checked.error());
    }
    return map_checked(system, fd);
}

Outcome<MailboxMemory> MailboxMemory::map_checked(System& system, int fd) {
    void* data = system.mmap(mailbox_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    if (data == MAP_FAILED) return failure("cannot map a mailbox (mmap)", errno);
    MailboxMemory memory;
    memory.mapping_ = Mapping(system, static_cast<std::byte*>(data), mailbox_bytes);
    if (system.madvise(data, mailbox_bytes, MADV_DONTFORK) < 0) {
        return failure("cannot keep a mailbox from children (madvise)", errno);
    }
    return memory;
}

}  // namespace via::device::shm
