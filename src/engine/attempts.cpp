#include "engine/attempts.hpp"

#include <algorithm>

namespace via::engine {

namespace {

bool is_waiting(const Vi& vi) {
    return vi.state_now() == ViState::connect_pending && vi.peer && !vi.asks;
}

}  // namespace

void Attempts::make_room(std::uint32_t vis) {
    deadlines_.reserve(vis);
    searches_.reserve(vis);
    due_.reserve(vis);
}

void Attempts::begin(Vi& vi, Time deadline) {
    deadlines_.set(vi, deadline);
    look_at(vi, Time::never());
}

void Attempts::end(Vi& vi) {
    deadlines_.remove(vi);
    searches_.remove(vi);
    if (vi.listening) forgotten_.push_back(vi.local_address.discriminator);
    vi.listening = false;
    find_next();
}

void Attempts::look_at(Vi& vi, Time due) {
    searches_.set(vi, due);
    find_next();
}

const std::vector<Vi*>& Attempts::due(Time now, bool answers_may_wait) {
    due_.clear();
    deadlines_.each_due(now, [&](Vi& vi) {
        if (!answers_may_wait || vi.path == no_path) due_.push_back(&vi);
    });
    std::ranges::sort(due_, {}, &Vi::index);
    return due_;
}

Vi* Attempts::next_search(Time now) {
    if (now < searches_.earliest()) return nullptr;
    Vi* const vi = searches_.first();
    if (vi != nullptr) look_at(*vi, Time::never());
    return vi;
}

bool Attempts::next_forgotten(Discriminator& discriminator) {
    if (forgotten_.empty()) return false;
    discriminator = forgotten_.front();
    forgotten_.pop_front();
    return true;
}

Vi* Attempts::awaiting(const NetAddress& asker, const Discriminator& wanted) const {
    Vi* found = nullptr;
    for (Vi* vi : deadlines_.all())
        if (is_waiting(*vi) && vi->remote_address == asker &&
            vi->local_address.discriminator == wanted &&
            (found == nullptr || vi->index < found->index))
            found = vi;
    return found;
}

}  // namespace via::engine
