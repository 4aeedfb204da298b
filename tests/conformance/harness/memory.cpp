#include "harness/memory.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace conformance {

namespace {

constexpr std::size_t page = 4096;

/// Eight bytes of the pattern at once.
std::uint64_t pattern_word(std::uint64_t seed, std::size_t index) {
    std::uint64_t word = seed * 0x9E3779B97F4A7C15U + index * 0xD1B54A32D192ED03U + 1;
    word ^= word >> 32;
    word *= 0xDABA0B6EB09322E3U;
    return word ^ (word >> 29);
}

std::byte pattern_byte(std::uint64_t seed, std::size_t at) {
    return static_cast<std::byte>(pattern_word(seed, at / 8) >> (at % 8 * 8));
}

testing::AssertionResult wrong_byte(std::size_t at, std::size_t length, std::byte is,
                                    std::byte wanted) {
    return testing::AssertionFailure()
           << "byte " << at << " of " << length << " is " << std::to_integer<int>(is) << ", not "
           << std::to_integer<int>(wanted);
}

/// Where segment `index` is, also beyond the two declared (VIPL 1.2).
void* segment_of(VIP_DESCRIPTOR* descriptor, std::size_t index) {
    return reinterpret_cast<std::byte*>(descriptor) + sizeof(VIP_CONTROL_SEGMENT) +
           index * sizeof(VIP_DATA_SEGMENT);
}

void make(VIP_DESCRIPTOR* descriptor, Pieces pieces, std::size_t first, VIP_UINT16 control) {
    descriptor->CS = {};
    descriptor->CS.SegCount = static_cast<VIP_UINT16>(pieces.size() + first);
    descriptor->CS.Control = control;
    descriptor->CS.Length = total_length(pieces);
    for (std::size_t index = 0; index < pieces.size(); ++index) {
        VIP_DATA_SEGMENT segment;
        segment.Data.AddressBits = reinterpret_cast<VIP_UINT64>(pieces[index].data);
        segment.Handle = pieces[index].handle;
        segment.Length = pieces[index].length;
        std::memcpy(segment_of(descriptor, first + index), &segment, sizeof segment);
    }
}

void make_remote(VIP_DESCRIPTOR* descriptor, Target target, Pieces pieces, VIP_UINT16 control) {
    make(descriptor, pieces, 1, control);
    descriptor->DS[0].Remote.Data.AddressBits = target.address;
    descriptor->DS[0].Remote.Handle = target.handle;
    descriptor->DS[0].Remote.Reserved = 0;
}

}  // namespace

VIP_MEM_ATTRIBUTES rights(bool write, bool read, VIP_PROTECTION_HANDLE tag) {
    return {tag, write ? VIP_TRUE : VIP_FALSE, read ? VIP_TRUE : VIP_FALSE};
}

Memory::Memory(Nic& nic, std::size_t bytes, Where where)
    : Memory(nic, bytes, rights(true, true), where) {}

Memory::Memory(Nic& nic, std::size_t bytes, VIP_MEM_ATTRIBUTES attributes, Where where)
    : nic_(nic), room_(bytes + page), length_(bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(room_.data());
    base_ = room_.data() + (page - address % page) % page;
    must(VipRegisterMem(nic_.handle(), base_, length_, &attributes, &handle_), "VipRegisterMem",
         where);
}

Tag::Tag(Nic& nic, Where where) : nic_(nic) {
    must(VipCreatePtag(nic.handle(), &handle_), "VipCreatePtag", where);
}

Tag::~Tag() {
    if (nic_.handle() == nullptr) return;
    EXPECT_EQ(VIP_SUCCESS, VipDestroyPtag(nic_.handle(), handle_));
}

Memory::~Memory() {
    // A NIC that was closed has forgotten the region.
    if (handle_ == 0 || nic_.handle() == nullptr) return;
    EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic_.handle(), base_, handle_));
}

Piece Memory::take(std::size_t bytes, std::size_t alignment, Where where) {
    const std::size_t from = (taken_ + alignment - 1) / alignment * alignment;
    require(from + bytes <= length_, "the test's memory is large enough", where);
    taken_ = from + bytes;
    return {base_ + from, static_cast<VIP_UINT32>(bytes), handle_};
}

VIP_DESCRIPTOR* Memory::descriptor(std::size_t segments, Where where) {
    const std::size_t bytes = std::max(
        sizeof(VIP_DESCRIPTOR), sizeof(VIP_CONTROL_SEGMENT) + segments * sizeof(VIP_DATA_SEGMENT));
    return reinterpret_cast<VIP_DESCRIPTOR*>(take(bytes, 64, where).data);
}

void Memory::deregister(Where where) {
    must(VipDeregisterMem(nic_.handle(), base_, std::exchange(handle_, 0)), "VipDeregisterMem",
         where);
}

void make_send(VIP_DESCRIPTOR* descriptor, Pieces pieces, VIP_UINT16 control,
               VIP_UINT32 immediate) {
    make(descriptor, pieces, 0, control);
    descriptor->CS.ImmediateData = immediate;
}

void make_receive(VIP_DESCRIPTOR* descriptor, Pieces pieces) { make(descriptor, pieces, 0, 0); }

void make_write(VIP_DESCRIPTOR* descriptor, Target target, Pieces pieces, VIP_UINT16 control,
                VIP_UINT32 immediate) {
    make_remote(descriptor, target, pieces,
                static_cast<VIP_UINT16>(control | VIP_CONTROL_OP_RDMAWRITE));
    descriptor->CS.ImmediateData = immediate;
}

void make_read(VIP_DESCRIPTOR* descriptor, Target target, Pieces pieces, VIP_UINT16 control) {
    make_remote(descriptor, target, pieces,
                static_cast<VIP_UINT16>(control | VIP_CONTROL_OP_RDMAREAD));
}

VIP_UINT32 total_length(Pieces pieces) {
    VIP_UINT32 sum = 0;
    for (const Piece& piece : pieces) sum += piece.length;
    return sum;
}

void fill(const Piece& piece, std::uint64_t seed, std::size_t from) {
    for (std::size_t at = 0; at < piece.length; ++at)
        piece.data[at] = pattern_byte(seed, from + at);
}

testing::AssertionResult holds(const Piece& piece, std::uint64_t seed, std::size_t from) {
    for (std::size_t at = 0; at < piece.length; ++at)
        if (piece.data[at] != pattern_byte(seed, from + at))
            return wrong_byte(at, piece.length, piece.data[at], pattern_byte(seed, from + at));
    return testing::AssertionSuccess();
}

void fill_with(const Piece& piece, int byte) { std::memset(piece.data, byte, piece.length); }

testing::AssertionResult holds_only(const Piece& piece, int byte) {
    for (std::size_t at = 0; at < piece.length; ++at)
        if (piece.data[at] != static_cast<std::byte>(byte))
            return wrong_byte(at, piece.length, piece.data[at], static_cast<std::byte>(byte));
    return testing::AssertionSuccess();
}

}  // namespace conformance
