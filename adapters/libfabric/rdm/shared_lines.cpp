// SPDX-License-Identifier: Apache-2.0
#include "rdm/shared_lines.hpp"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <limits>

namespace via::fabric::rdm {
namespace {

constexpr VIP_ULONG patience_ms = 1000;
constexpr std::size_t rooms_size = SharedLines::lines_each * SharedLines::long_room;
constexpr std::size_t whereabouts_at =
    2 * (SharedLines::lines_each * sizeof(StoredMessage) + rooms_size);
constexpr std::size_t taken_at = whereabouts_at + 2 * sizeof(Whereabouts);
constexpr VIP_ULONG lines_size = taken_at + 2 * sizeof(TakenWord);

std::atomic_ref<std::uint64_t> shared(std::uint64_t& word) { return std::atomic_ref(word); }
iovec piece(std::uint64_t address, std::size_t length) {
    return {reinterpret_cast<void*>(address), length};
}

}  // namespace

void SharedLines::create(Nic& nic, Hello& hello) {
    VIP_MEM_ATTRIBUTES attributes{nullptr, VIP_TRUE, VIP_TRUE};
    VIP_PVOID address = nullptr;
    VIP_MEM_HANDLE handle = 0;
    const VIP_RETURN code =
        ViaCreateSegment(nic.handle(), lines_size, &attributes, &address, &handle);
    if (code != VIP_SUCCESS) {
        FI_INFO(&provider, FI_LOG_EP_CTRL, "no lines for a peer: %s\n", ViaReturnText(code));
        return;
    }
    nic_ = &nic;
    begin(static_cast<StoredMessage*>(address), true);
    hello.lines_address = reinterpret_cast<std::uintptr_t>(address);
    hello.lines_handle = handle;
}

void SharedLines::attach(Nic& nic, VIP_VI_HANDLE vi, const Hello& hello) {
    if (hello.lines_address == 0) return;
    VIP_PVOID address = nullptr;
    VIP_ULONG length = 0;
    const VIP_RETURN code = ViaImportSegment(vi, hello.lines_address, hello.lines_handle, VIP_TRUE,
                                             patience_ms, &address, &length);
    if (code != VIP_SUCCESS) {
        FI_INFO(&provider, FI_LOG_EP_CTRL, "no lines to a peer: %s\n", ViaReturnText(code));
        return;
    }
    if (length < lines_size) {
        ViaReleaseSegment(nic.handle(), address);
        return;
    }
    nic_ = &nic;
    attached_ = static_cast<StoredMessage*>(address);
}

/// The maker does not know yet whether the peer attaches: it hears of it by its first message.
void SharedLines::begin(StoredMessage* memory, bool is_maker) {
    ours_ = memory + (is_maker ? 0 : lines_each);
    theirs_ = memory + (is_maker ? lines_each : 0);
    auto* const rooms = reinterpret_cast<std::byte*>(memory + 2 * lines_each);
    our_rooms_ = rooms + (is_maker ? 0 : rooms_size);
    their_rooms_ = rooms + (is_maker ? rooms_size : 0);
    is_maker_ = is_maker;
    taken_ = 0;
    if (!is_maker) used_ = 0;
    auto* const both = reinterpret_cast<Whereabouts*>(rooms + 2 * rooms_size);
    Whereabouts& own = both[is_maker ? 0 : 1];
    their_whereabouts_ = &both[is_maker ? 1 : 0];
    auto* const words =
        reinterpret_cast<TakenWord*>(reinterpret_cast<std::byte*>(memory) + taken_at);
    own_taken_ = &words[is_maker ? 0 : 1];
    their_taken_ = &words[is_maker ? 1 : 0];
    shared(own.process).store(static_cast<std::uint64_t>(getpid()), std::memory_order_relaxed);
    shared(own.address).store(reinterpret_cast<std::uintptr_t>(memory), std::memory_order_relaxed);
}

void SharedLines::store_long(const Header& header, const void* bytes, std::size_t length) {
    StoredMessage& line = next_line();
    line.length = static_cast<std::uint32_t>(length);
    std::memcpy(our_rooms_ + at_ * long_room, bytes, length);
    publish(line, header, StoredMessage::is_long);
}

/// True: there is a free one. 0 is a peer that took nothing yet, or does not tell; a message of the
/// peer may have told more since. What cannot be frees nothing; what is false costs the peer what
/// was in its lines.
bool SharedLines::hear_taken() {
    if (ours_ == nullptr) return false;
    const std::uint64_t told = shared(their_taken_->word).load(std::memory_order_acquire);
    const std::uint32_t used = stored_ - 1 - static_cast<std::uint32_t>(told >> 16);
    const auto older = static_cast<std::int16_t>(told - came_);
    if (told == 0 || older < 0 || used >= lines_each) return false;
    used_ = used;
    older_ = static_cast<std::uint16_t>(older);
    return true;
}

/// False: the peer breaks the rules.
bool SharedLines::take_long(const StoredMessage& message, std::size_t& length) {
    if (length != StoredMessage::is_long) return false;
    length =
        std::atomic_ref(const_cast<std::uint32_t&>(message.length)).load(std::memory_order_relaxed);
    bytes_ = their_rooms_ + static_cast<std::size_t>(&message - theirs_) * long_room;
    return length > room && length <= long_room;
}

// Pulls --------------------------------------------------------------------------------------

bool SharedLines::pull(void* to, std::uint64_t address, std::size_t length) {
    if (!may_pull()) return false;
    may_pull_ = (challenge_ != 0 || find_peer()) && pull_proven(to, address, length);
    return may_pull_;
}

/// Not a byte is pulled from a process before it has shown that it is the peer.
bool SharedLines::find_peer() {
    const std::uint64_t process =
        shared(their_whereabouts_->process).load(std::memory_order_relaxed);
    const std::uint64_t lines = shared(their_whereabouts_->address).load(std::memory_order_relaxed);
    if (process == 0 || process > std::numeric_limits<std::int32_t>::max()) return false;
    if (getrandom(&challenge_, sizeof challenge_, 0) != sizeof challenge_ || challenge_ == 0)
        return false;
    process_ = static_cast<std::int32_t>(process);
    const std::size_t at = whereabouts_at + (is_maker_ ? sizeof(Whereabouts) : 0);
    challenge_at_ = lines + at + offsetof(Whereabouts, challenge);
    shared(their_whereabouts_->challenge).store(challenge_, std::memory_order_release);
    if (pull_proven(nullptr, 0, 0)) return true;
    FI_INFO(&provider, FI_LOG_EP_CTRL, "long messages of a peer are not pulled in one copy\n");
    return false;
}

/// The bytes, and behind them by the same call our challenge, as that process has it in the lines.
/// Who took the peer's place, or whom the peer names in its own, has not got it there; nor has the
/// peer when it has given the bytes back to its program, for it gives up the lines before that.
bool SharedLines::pull_proven(void* to, std::uint64_t address, std::size_t length) {
    std::uint64_t found = 0;
    const iovec here[] = {{to, length}, {&found, sizeof found}};
    const iovec there[] = {piece(address, length), piece(challenge_at_, sizeof found)};
    const ssize_t got = process_vm_readv(process_, here, 2, there, 2, 0);
    return got == static_cast<ssize_t>(length + sizeof found) && found == challenge_;
}

void SharedLines::close() {
    open();
    StoredMessage* const memory = is_maker_ ? ours_ : theirs_;
    ours_ = theirs_ = nullptr;
    used_ = lines_each;
    if (memory == nullptr) return;
    if (is_maker_)
        ViaDestroySegment(nic_->handle(), memory);
    else
        ViaReleaseSegment(nic_->handle(), memory);
}

}  // namespace via::fabric::rdm
