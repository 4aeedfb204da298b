// One side's memory of a channel: created and written by its owner, sealed, and mapped read-only
// by the peer after checks that make sure that no access to it can ever fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/shm/failure.hpp"
#include "device/shm/layout.hpp"
#include "device/shm/system.hpp"

namespace via::device::shm {

/// A mapping that unmaps itself; never inherited by a forked child.
class Mapping {
public:
    Mapping() = default;
    Mapping(System& system, std::byte* data, std::size_t bytes)
        : system_(&system), data_(data), bytes_(bytes) {}
    Mapping(Mapping&& other) noexcept { *this = std::move(other); }
    Mapping& operator=(Mapping&& other) noexcept;
    ~Mapping() { reset(); }

    std::byte* data() const { return data_; }
    bool valid() const { return data_ != nullptr; }
    void reset();

private:
    System* system_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// What we write and the peer reads.
class OwnMemory {
public:
    OwnMemory() = default;
    /// Sparse: pages appear when they are first written.
    static Outcome<OwnMemory> create(System& system, const Layout& layout);

    Control& control() const { return *reinterpret_cast<Control*>(mapping_.data()); }
    Slot* ring() const { return reinterpret_cast<Slot*>(mapping_.data() + Layout::ring_offset); }
    std::byte* arena() const { return mapping_.data() + layout_.arena_offset(); }
    const Layout& layout() const { return layout_; }

    /// The descriptor to send to the peer: read-only, as it is. Valid until closed.
    int descriptor() const { return read_only_.get(); }
    /// Once the peer has its copy of the descriptor, ours is not needed any more.
    void close_descriptor() { read_only_.reset(); }
    /// Gives the arena's pages back to the system; it reads as zeros afterwards. errno on failure.
    /// Where the system forbids it the pages stay.
    int give_back_arena();

private:
    System* system_ = nullptr;
    Layout layout_;
    Mapping mapping_;
    Descriptor read_only_;
    bool can_give_back_ = true;
};

/// Segments of programs are made elsewhere, but come and go by the same rules.
/// A descriptor of `fd` that cannot be mapped for writing, as it is; -1 and errno.
int reopen_read_only(System& system, int fd);
/// Maps a peer's segment after the checks that PeerMemory::map makes. The mapping is inherited by
/// children, as other memory of the program.
Outcome<std::shared_ptr<Mapping>> map_segment(System& system, int fd, std::uint64_t length,
                                              bool writable);

/// What the peer writes and we read.
class PeerMemory {
public:
    PeerMemory() = default;
    /// Checks that `fd` is memory that can neither shrink nor grow, of exactly the size that
    /// `layout` demands, and maps it. The descriptor stays the caller's. not_reachable: it is not.
    static Outcome<PeerMemory> map(System& system, int fd, const Layout& layout);

    const Control& control() const { return *reinterpret_cast<const Control*>(mapping_.data()); }
    const Slot* ring() const {
        return reinterpret_cast<const Slot*>(mapping_.data() + Layout::ring_offset);
    }
    const std::byte* arena() const { return mapping_.data() + layout_.arena_offset(); }
    const Layout& layout() const { return layout_; }

private:
    Layout layout_;
    Mapping mapping_;
};

/// The mailbox, which both sides write. Who comes makes it, who is come to maps it.
class MailboxMemory {
public:
    MailboxMemory() = default;
    static Outcome<MailboxMemory> create(System& system);
    /// After the checks that PeerMemory::map makes. The descriptor stays the caller's.
    static Outcome<MailboxMemory> map(System& system, int fd);

    Slot* line() const { return &layout()->line; }
    std::byte* room() const { return layout()->room; }
    /// Of what was created, to send to the peer. Valid until closed.
    int descriptor() const { return descriptor_.get(); }
    void close_descriptor() { descriptor_.reset(); }

private:
    static Outcome<MailboxMemory> map_checked(System& system, int fd);
    MailboxLayout* layout() const { return reinterpret_cast<MailboxLayout*>(mapping_.data()); }

    Mapping mapping_;
    Descriptor descriptor_;
};

}  // namespace via::device::shm
