#include "device/shm/segments.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.hpp"

namespace via::device::shm {

Status Segments::offer(PathId path, const SharedMemory& memory, bool writable, std::uint64_t cookie,
                       GrantId& grant) {
    VIA_ASSERT(channels_.has(path));
    if (memory.length > segment_bytes_max) return Status::error_not_supported;  // it is not taken
    Channel& channel = channels_.at(path);
    // Whoever may only read does not map it otherwise by accident; on purpose it can, unless the
    // segment was sealed against that.
    Descriptor read_only;
    if (!writable) {
        read_only = Descriptor(system_, reopen_read_only(system_, memory.descriptor));
        if (!read_only.valid()) {
            reports_.tell(
                failure("cannot open a segment read-only (/proc/self/fd)", errno).error().text);
            return Status::error_resource;
        }
    }
    const GrantId taken = grant == no_grant ? channel.grants.take() : grant;
    if (taken == no_grant) {
        reports_.tell("shm: " + describe(channel) +
                      " asks for more segments than one peer may have");
        return Status::error_resource;
    }
    SegmentOffer message = make_segment_offer(memory.length, cookie, writable);
    message.grant = taken;
    message.granted = channel.grants.value(taken);
    const int attached = writable ? memory.descriptor : read_only.get();
    const int error = send_message(system_, channel.peer_info.socket.get(),
                                   std::as_bytes(std::span(&message, 1)), std::span(&attached, 1));
    if (error == 0) {
        grant = taken;
        return Status::success;
    }
    if (grant == no_grant) channel.grants.give_back(taken);
    if (!means_gone(error)) {
        reports_.tell(failure("cannot offer a segment to a peer (sendmsg)", error).error().text);
    }
    return Status::error_resource;
}

void Segments::revoke(PathId path, GrantId grant) {
    VIA_ASSERT(channels_.has(path));
    channels_.at(path).grants.give_back(grant);
}

/// A question stands, and no answer to it waits in our events.
bool Segments::is_expected(PathId path, std::uint64_t cookie) const {
    const auto answers = [=](const PathEvent& event) {
        return event.kind == PathEventKind::attached && event.path == path &&
               event.cookie == cookie;
    };
    return expects_ && expects_(path, cookie) && std::ranges::none_of(channels_.events(), answers);
}

bool Segments::take(Channel& channel, const Message& message) {
    SegmentOffer offer;
    if (!read_segment_offer(message.bytes(), offer)) return false;
    PathEvent event{PathEventKind::attached, channel.path};
    event.cookie = offer.cookie;
    const bool is_cut = message.descriptors().empty() && message.cut();
    if (!is_cut && message.descriptors().size() != 1) {
        channels_.close_for_violation(channel, "it offered a segment without its memory");
        return false;
    }
    // A late answer, or a lie: to map what nobody waits for would cost us only.
    if (!is_expected(channel.path, offer.cookie)) return true;
    if (is_cut) {
        reports_.tell(
            "shm: a segment cannot be taken: no more descriptors; raise the limit on open "
            "files (ulimit -n)");
        channels_.push(event);
        return true;
    }
    auto mapping =
        map_segment(system_, message.descriptors().front(), offer.length, offer.writable != 0);
    if (!mapping && mapping.error().status != Status::error_resource) {
        channels_.close_for_violation(channel, mapping.error().text.c_str());
        return false;
    }
    if (mapping) {
        event.attachment = {(*mapping)->data(),  offer.length,
                            offer.writable != 0, channel.grant_word(offer.grant),
                            offer.granted,       *mapping};
    } else {
        reports_.tell(mapping.error().text);
    }
    channels_.push(std::move(event));
    return true;
}

}  // namespace via::device::shm
