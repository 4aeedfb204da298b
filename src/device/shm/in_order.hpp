// Frames of a peer come by its ring and by the mailbox: taken in the order in which they were sent.
#pragma once

#include <algorithm>
#include <span>

#include "device/shm/mailbox.hpp"
#include "device/shm/ring_reader.hpp"

namespace via::device::shm {

struct Arrival {
    std::size_t count;        ///< frames taken
    RingReader::Take why;     ///< there are no more, or `frame`
    bool by_mailbox = false;  ///< the only one
};

/// Takes what is there, as far as it fits, at most one by the mailbox. `frames` is not empty.
[[gnu::always_inline]] inline Arrival take_in_order(RingReader& reader, Mailbox& mailbox,
                                                    std::span<Frame> frames, PathId path) {
    const auto by_mailbox = [&](Mailbox::Look look) {
        frames.front().path = path;
        const bool took = mailbox.take(look, frames.front());
        return Arrival{took ? 1U : 0U, took ? RingReader::Take::frame : RingReader::Take::lie,
                       true};
    };
    Mailbox::Look look = mailbox.look();
    const bool was_there = look.is_there;
    if (was_there) {
        const std::int32_t before = look.behind(reader.position());
        if (before <= 0) return by_mailbox(look);
        frames = frames.first(std::min(frames.size(), static_cast<std::size_t>(before)));
    }
    Arrival arrival{0, RingReader::Take::empty};
    arrival.why = reader.take(frames, path, arrival.count);
    if (arrival.count == 0 || was_there) return arrival;
    // One that was put there meanwhile, before some of these, can be seen by now.
    look = mailbox.look();
    if (!look.is_there) [[likely]]
        return arrival;
    const auto first = reader.position() - static_cast<std::uint32_t>(arrival.count);
    const auto before = static_cast<std::size_t>(std::max(look.behind(first), 0));
    if (before >= arrival.count) return arrival;
    reader.untake(static_cast<std::uint32_t>(arrival.count - before));
    if (before == 0) return by_mailbox(look);
    return {before, RingReader::Take::frame};
}

/// It would take one.
inline bool is_pending(const RingReader& reader, const Mailbox& mailbox) {
    const Mailbox::Look look = mailbox.look();
    return (look.is_there && look.behind(reader.position()) <= 0) || reader.pending();
}

}  // namespace via::device::shm
