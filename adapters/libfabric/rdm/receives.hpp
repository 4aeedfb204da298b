// SPDX-License-Identifier: Apache-2.0
// Receives that the program posted to an endpoint for datagrams, and what it is told of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rdm/completions.hpp"
#include "rdm/matching.hpp"
#include "rdm/peers.hpp"
#include "rdm/shared_lines.hpp"

namespace via::fabric::rdm {

inline std::uint64_t received_flags(const Header& header) {
    return FI_RECV | ((header.flags & flag::tagged) != 0 ? FI_TAGGED : FI_MSG) |
           ((header.flags & flag::data) != 0 ? FI_REMOTE_CQ_DATA : 0);
}

/// Owns the posted receives, each with room for its completion, until the program was told what
/// became of it. Under the domain's guard.
class Receives {
public:
    /// Both outlive it.
    Receives(Completions& completions, Peers& peers) : completions_(completions), peers_(peers) {}

    /// Bytes: one that several messages share is used up when less is left of it.
    std::size_t& min_room() { return min_room_; }

    /// With room for its completion; not posted. `from`: nullptr: anybody. nullptr: no memory.
    Receive* make(void* buffer, std::size_t room, Peer* from, void* context, bool told);
    /// Of no buffer and without a completion. nullptr: no memory.
    Receive* make_bare() { return pool_.take(); }
    void post(Receive& receive) { posted_.tagged_if(receive.with_tag).push(receive); }
    /// The oldest one that takes the message. One that several messages share stays posted, and the
    /// message gets a part of it. nullptr: none.
    Receive* take(bool with_tag, const Peer* from, std::uint64_t tag) {
        return posted_.tagged_if(with_tag).take(
            [&](const Receive& receive) { return takes(receive, from, tag); },
            [](const Receive& receive) { return receive.takes_many; });
    }
    /// For a message of `length` bytes. nullptr: no memory. The last part has the completion that
    /// was reserved for the whole.
    Receive* part_of(Receive& many, std::size_t length);

    // Ends --------------------------------------------------------------------------------------
    /// The message lies in front of us. `completions`: those that it was made with; who has them at
    /// hand says so, which saves instructions of each message.
    [[gnu::always_inline]] void deliver(Completions& completions, Receive& receive, Peer& from,
                                        const Header& header, const std::byte* bytes,
                                        std::size_t length) {
        copy_short(receive.buffer, bytes, std::min(length, receive.room));
        tell(completions, receive, from, header, length);
        give_back(receive);
    }
    /// Its message of `length` bytes is there, as far as there was room. Then give_back() it.
    [[gnu::always_inline]] void tell(Completions& completions, const Receive& receive, Peer& from,
                                     const Header& header, std::size_t length) {
        if (receive.of != nullptr) [[unlikely]]
            return tell_part(receive, from, header, length);
        const bool fits = length <= receive.room;
        completions.count_receive(!fits);
        if (!receive.told && fits) return completions.give_back_receive();
        completions.tell_receive({.context = receive.context,
                                  .flags = received_flags(header),
                                  .length = fits ? length : receive.room,
                                  .buffer = receive.buffer,
                                  .data = header.data,
                                  .tag = header.tag,
                                  .source = peers_.number_of(from),
                                  .missing = fits ? 0 : length - receive.room,
                                  .error = fits ? 0 : FI_ETRUNC});
    }
    void give_back(Receive& receive) { pool_.give_back(receive); }
    /// There will be no message: FI_E...; taken off before.
    void fail(Receive& receive, int error);
    /// Those posted ones that nobody but `peer` can satisfy.
    void fail_all_from(const Peer& peer, int error);
    /// The oldest one posted with that context. False: none.
    bool cancel(const void* context);

private:
    [[gnu::noinline]] void tell_part(const Receive& part, Peer& from, const Header& header,
                                     std::size_t length);
    std::uint64_t end_part(Receive& many);

    Completions& completions_;
    Peers& peers_;
    std::size_t min_room_ = 16384;
    TwoLines<Receive> posted_;
    Pool<Receive> pool_;
};

}  // namespace via::fabric::rdm
