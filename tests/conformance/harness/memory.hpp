// Registered memory, cut into descriptors and data, and patterns to know data again by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/nic.hpp"

namespace conformance {

/// A piece of registered memory: what a data segment names.
struct Piece {
    std::byte* data = nullptr;
    VIP_UINT32 length = 0;
    VIP_MEM_HANDLE handle = 0;

    Piece part(std::size_t from, std::size_t bytes) const {
        return {data + from, static_cast<VIP_UINT32>(bytes), handle};
    }
    /// The same piece longer or shorter, whatever is there.
    Piece with_length(std::size_t bytes) const { return part(0, bytes); }
    Piece with_handle(VIP_MEM_HANDLE other) const { return {data, length, other}; }
};

/// Where an RDMA goes; roles tell it each other.
struct Target {
    VIP_UINT64 address = 0;
    VIP_MEM_HANDLE handle = 0;

    Target() = default;
    explicit Target(const Piece& piece)
        : address(reinterpret_cast<VIP_UINT64>(piece.data)), handle(piece.handle) {}
    Target at(std::size_t offset) const {
        Target moved = *this;
        moved.address += offset;
        return moved;
    }
};

/// RDMA rights and tag of a region.
VIP_MEM_ATTRIBUTES rights(bool write, bool read, VIP_PROTECTION_HANDLE tag = nullptr);

/// A registered region of its own memory, from which pieces are cut; deregistered with the object.
class Memory {
public:
    /// Writable and readable by RDMA.
    explicit Memory(Nic& nic, std::size_t bytes, Where where = Where::current());
    Memory(Nic& nic, std::size_t bytes, VIP_MEM_ATTRIBUTES attributes,
           Where where = Where::current());
    Memory(const Memory&) = delete;
    ~Memory();

    VIP_MEM_HANDLE handle() const { return handle_; }
    std::byte* base() const { return base_; }
    std::size_t length() const { return length_; }
    /// The next bytes that nobody has.
    Piece take(std::size_t bytes, std::size_t alignment = 64, Where where = Where::current());
    /// An empty descriptor with room for that many segments.
    VIP_DESCRIPTOR* descriptor(std::size_t segments = 2, Where where = Where::current());
    /// Ends the registration before the object's end.
    void deregister(Where where = Where::current());

private:
    Nic& nic_;
    std::vector<std::byte> room_;
    std::byte* base_ = nullptr;  ///< at a page's begin
    std::size_t length_ = 0;
    std::size_t taken_ = 0;
    VIP_MEM_HANDLE handle_ = 0;
};

/// A protection tag; destroyed with the object, when nothing carries it any more.
class Tag {
public:
    explicit Tag(Nic& nic, Where where = Where::current());
    Tag(const Tag&) = delete;
    ~Tag();
    VIP_PROTECTION_HANDLE handle() const { return handle_; }

private:
    Nic& nic_;
    VIP_PROTECTION_HANDLE handle_ = nullptr;
};

// Descriptors: all fields are set as the operation wants them, whatever they were.
using Pieces = std::span<const Piece>;
void make_send(VIP_DESCRIPTOR* descriptor, Pieces pieces, VIP_UINT16 control = 0,
               VIP_UINT32 immediate = 0);
void make_receive(VIP_DESCRIPTOR* descriptor, Pieces pieces);
void make_write(VIP_DESCRIPTOR* descriptor, Target target, Pieces pieces, VIP_UINT16 control = 0,
                VIP_UINT32 immediate = 0);
void make_read(VIP_DESCRIPTOR* descriptor, Target target, Pieces pieces, VIP_UINT16 control = 0);
VIP_UINT32 total_length(Pieces pieces);

/// Writes a pattern that only `seed` makes; `from` is the position within it.
void fill(const Piece& piece, std::uint64_t seed, std::size_t from = 0);
/// Says where the pattern is broken, if it is.
testing::AssertionResult holds(const Piece& piece, std::uint64_t seed, std::size_t from = 0);
void fill_with(const Piece& piece, int byte);
testing::AssertionResult holds_only(const Piece& piece, int byte);

}  // namespace conformance
