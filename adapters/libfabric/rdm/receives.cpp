// SPDX-License-Identifier: Apache-2.0
#include "rdm/receives.hpp"

namespace via::fabric::rdm {

Receive* Receives::make(void* buffer, std::size_t room, Peer* from, void* context, bool told) {
    if (!completions_.reserve_receive()) return nullptr;
    Receive* const receive = pool_.take();
    if (receive == nullptr) {
        completions_.give_back_receive();
        return nullptr;
    }
    receive->from = from;
    receive->buffer = static_cast<std::byte*>(buffer);
    receive->room = room;
    receive->context = context;
    receive->told = told;
    receive->done = false;
    receive->takes_many = receive->is_used_up = false;
    receive->of = nullptr;
    return receive;
}

// For several messages --------------------------------------------------------------------------

Receive* Receives::part_of(Receive& many, std::size_t length) {
    const std::size_t taken = std::min(length, many.room);
    const bool is_last = many.room - taken < min_room_;
    if (!is_last && !completions_.reserve_receive()) return nullptr;
    Receive* const part = pool_.take();
    if (part == nullptr) {
        if (!is_last) completions_.give_back_receive();
        return nullptr;
    }
    *part = many;
    part->takes_many = false;
    part->of = &many;
    many.buffer += taken;
    many.room -= taken;
    ++many.parts;
    if (is_last) {
        many.is_used_up = true;
        posted_.tagged_if(many.with_tag).take([&](const Receive& posted) {
            return &posted == &many;
        });
    }
    return part;
}

/// FI_MULTI_RECV: that was the last one.
std::uint64_t Receives::end_part(Receive& many) {
    if (--many.parts != 0 || !many.is_used_up) return 0;
    give_back(many);
    return FI_MULTI_RECV;
}

void Receives::tell_part(const Receive& part, Peer& from, const Header& header,
                         std::size_t length) {
    const bool fits = length <= part.room;
    const std::uint64_t ends = end_part(*part.of);
    completions_.count_receive(!fits);
    if (!part.told && fits && ends == 0) return completions_.give_back_receive();
    completions_.tell_receive({.context = part.context,
                               .flags = received_flags(header) | ends,
                               .length = fits ? length : part.room,
                               .buffer = part.buffer,
                               .data = header.data,
                               .source = peers_.number_of(from),
                               .missing = fits ? 0 : length - part.room,
                               .error = fits ? 0 : FI_ETRUNC});
}

// Without a message -----------------------------------------------------------------------------

void Receives::fail(Receive& receive, int error) {
    Completion completion;
    completion.context = receive.context;
    completion.flags = FI_RECV | (receive.with_tag ? FI_TAGGED : FI_MSG);
    completion.tag = receive.tag;
    completion.error = error;
    completions_.count_receive(true);
    if (receive.of != nullptr) completion.flags |= end_part(*receive.of);
    // The memory of one that takes many is the program's again when its last part is done, too.
    receive.is_used_up = receive.takes_many && receive.parts != 0;
    if (receive.takes_many && !receive.is_used_up) completion.flags |= FI_MULTI_RECV;
    completions_.tell_receive(completion);
    if (!receive.is_used_up) give_back(receive);
}

void Receives::fail_all_from(const Peer& peer, int error) {
    for (const bool with_tag : {true, false}) {
        Line<Receive>& posted = posted_.tagged_if(with_tag);
        while (Receive* receive =
                   posted.take([&](const Receive& one) { return one.from == &peer; }))
            fail(*receive, error);
    }
}

bool Receives::cancel(const void* context) {
    for (const bool with_tag : {true, false}) {
        Receive* const receive = posted_.tagged_if(with_tag).take(
            [&](const Receive& posted) { return posted.context == context; });
        if (receive == nullptr) continue;
        fail(*receive, FI_ECANCELED);
        return true;
    }
    return false;
}

}  // namespace via::fabric::rdm
