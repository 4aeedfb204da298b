// SPDX-License-Identifier: Apache-2.0
#include "rdm/long_messages.hpp"

#include <utility>

namespace via::fabric::rdm {

Outgoing* LongMessages::take(void* context, std::uint64_t flags, bool told) {
    const auto make = [this] {
        const auto place = static_cast<std::uint32_t>(all_.size());
        all_.emplace_back().place = place;
        free_ = &all_.back();
        return 0;
    };
    if (free_ == nullptr && guarded(make) != 0) return nullptr;
    Outgoing* const taken = free_;
    free_ = taken->next;
    taken->is_used = true;
    taken->context = context;
    taken->flags = flags;
    taken->told = told;
    taken->connection = nullptr;
    taken->is_atomic = false;
    return taken;
}

void LongMessages::put_back(Outgoing& outgoing) {
    outgoing.is_used = false;
    ++outgoing.generation;
    outgoing.next = std::exchange(free_, &outgoing);
}

/// The peer has no more to do with it.
void LongMessages::take_back(Outgoing& outgoing) {
    if (outgoing.connection == nullptr) return;
    if (outgoing.is_atomic)
        --outgoing.connection->atomics;
    else
        nic_.release(outgoing.region);
}

void LongMessages::finish(Outgoing& outgoing, int error) {
    take_back(outgoing);
    completions_.tell_done(outgoing.context, outgoing.flags, outgoing.told, error);
    put_back(outgoing);
}

void LongMessages::finish_all(const Connection& connection, int error) {
    for (Outgoing& outgoing : all_)
        if (outgoing.is_used && outgoing.connection == &connection) finish(outgoing, error);
}

Outgoing* LongMessages::find(const Connection& connection, std::uint64_t cookie, bool is_atomic) {
    const auto place = static_cast<std::uint32_t>(cookie);
    if (place >= all_.size()) return nullptr;
    Outgoing& outgoing = all_[place];
    const bool is_that = outgoing.is_used && outgoing.cookie() == cookie &&
                         outgoing.connection == &connection && outgoing.is_atomic == is_atomic;
    return is_that ? &outgoing : nullptr;
}

bool LongMessages::finish_named(const Connection& connection, std::uint64_t cookie) {
    Outgoing* const outgoing = find(connection, cookie, false);
    if (outgoing != nullptr) finish(*outgoing, 0);
    return outgoing != nullptr;
}

void LongMessages::discard_all() {
    for (Outgoing& outgoing : all_)
        if (outgoing.is_used) take_back(outgoing);
}

}  // namespace via::fabric::rdm
