#include "sim/host/baton.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/assert.hpp"

namespace via::sim {

namespace {

/// The calling thread's place; no_place: it takes no part. Trivial, so that it can be read to the
/// very end of a thread.
constexpr Place no_place = ~Place{0};
thread_local Place my_place = no_place;
thread_local bool settling = false;
thread_local bool ending = false;

/// Leaves when the thread ends.
struct AtThreadEnd {
    bool armed = false;
    ~AtThreadEnd() {
        ending = true;
        leave();
    }
};
thread_local AtThreadEnd at_thread_end;

}  // namespace

bool Baton::is_settling() { return settling; }

bool Baton::is_member() const { return my_place != no_place; }

// Taking part -------------------------------------------------------------------------------------

Place Baton::enlist(std::string_view name, bool service) {
    const std::lock_guard lock(mutex_);
    Member& member = members_.emplace_back();
    member.place = next_place_++;
    member.name = name;
    member.service = service;
    return member.place;
}

void Baton::join(Place place) {
    VIA_ASSERT(my_place == no_place);
    std::unique_lock lock(mutex_);
    const auto found =
        std::find_if(members_.begin(), members_.end(),
                     [place](const Member& member) { return member.place == place; });
    VIA_ASSERT(found != members_.end());
    my_place = place;
    if (!ending) at_thread_end.armed = true;
    if (current_ == nullptr) pass_on();
    run_as(*found, lock);
}

void Baton::dismiss(Place place) {
    const std::lock_guard lock(mutex_);
    members_.remove_if([place](const Member& member) { return member.place == place; });
}

void Baton::join_unless_member() {
    if (is_member()) return;
    join(enlist("a thread that was not enlisted"));
}

/// Returns when the member has the baton.
void Baton::run_as(Member& member, std::unique_lock<std::mutex>& lock) {
    member.changed.wait(lock, [&] { return current_ == &member; });
    member.stage = Stage::running;
}

void Baton::leave(bool comes_back) {
    if (!is_member()) return;
    const std::lock_guard lock(mutex_);
    VIA_ASSERT(current_ != nullptr && current_->place == my_place);
    members_.remove_if([](const Member& member) { return member.place == my_place; });
    my_place = no_place;
    if (comes_back) ++away_;
    current_ = nullptr;
    pass_on();
}

void Baton::come_back(std::string_view name) {
    const Place place = enlist(name);
    {
        const std::lock_guard lock(mutex_);
        --away_;
    }
    join(place);
}

std::string Baton::my_name() const {
    return is_member() && current_ != nullptr ? current_->name : std::string();
}

bool Baton::is_alone() {
    const std::lock_guard lock(mutex_);
    return is_member() && members_.size() == 1 && away_ == 0;
}

// Passing on --------------------------------------------------------------------------------------

bool Baton::wait(const agent::Condition& condition, Time deadline, const bool* closed,
                 const std::string& what) {
    join_unless_member();
    std::unique_lock lock(mutex_);
    Member& me = *current_;
    VIA_ASSERT(me.place == my_place);
    me.stage = Stage::waiting;
    me.condition = condition;
    me.deadline = deadline;
    me.closed = closed;
    me.what = what;
    current_ = nullptr;
    pass_on();
    run_as(me, lock);
    return me.result;
}

bool Baton::can_run(Member& member) {
    if (member.stage == Stage::enlisted) return true;
    member.result = member.condition.ready(member.condition.subject);
    return member.result || (member.closed != nullptr && *member.closed) ||
           clockwork_.now() >= member.deadline;
}

/// The next one that can run, in the order of places, behind the one that ran last.
Baton::Member* Baton::choose() {
    const auto begin = std::find_if(members_.begin(), members_.end(),
                                    [this](const Member& member) { return member.place > last_; });
    for (auto at = begin; at != members_.end(); ++at)
        if (can_run(*at)) return &*at;
    for (auto at = members_.begin(); at != begin; ++at)
        if (can_run(*at)) return &*at;
    return nullptr;
}

bool Baton::somebody_matters() const {
    return std::any_of(members_.begin(), members_.end(),
                       [](const Member& member) { return !member.service; });
}

/// Gives the baton to the next one, moving time on if it must. With nobody to give it to it rests.
void Baton::pass_on() {
    for (;;) {
        settling = true;
        clockwork_.settle();
        settling = false;
        if (Member* next = choose()) {
            current_ = next;
            last_ = next->place;
            next->changed.notify_one();
            return;
        }
        if (!somebody_matters()) return;
        Time moment = clockwork_.next();
        for (const Member& member : members_) moment = earlier(moment, member.deadline);
        if (clockwork_.advance(std::max(moment, clockwork_.now()))) continue;
        if (away_ != 0) return;
        deadlock();
    }
}

void Baton::deadlock() const {
    std::fprintf(stderr,
                 "openvia sim: deadlock at %lld ns: nothing can happen any more, and these wait "
                 "for ever:\n",
                 static_cast<long long>(clockwork_.now().ns));
    for (const Member& member : members_)
        if (!member.service)
            std::fprintf(stderr, "  %s, for %s\n", member.name.c_str(), member.what.c_str());
    std::abort();
}

}  // namespace via::sim
