#include "sim/check_state.hpp"

namespace via::sim {

namespace {

/// VIPL 3. One look may see two steps of the NIC at once: a request that was accepted and whose
/// connection broke in the same turn.
bool is_legal(ViState from, ViState to, Cause cause) {
    switch (cause) {
        case Cause::turn:
            return (from == ViState::connect_pending && to != ViState::connect_pending) ||
                   (from == ViState::connected && to == ViState::error);
        case Cause::connect:
            return from == ViState::idle && to == ViState::connect_pending;
        case Cause::accept:
            return from == ViState::idle && (to == ViState::connected || to == ViState::error);
        case Cause::disconnect:
            return to == ViState::idle;
    }
    return false;
}

}  // namespace

void CheckState::observe(const Event& event) {
    if (!to_be_flushed_.empty() && to_be_flushed_.begin()->second < event.time)
        violate("work %u was posted where nothing can be sent, and not flushed at once",
                to_be_flushed_.begin()->first);
    std::visit(Overloaded{
                   [this](const ViMade& e) { vis_[e.vi]; },
                   [this](const StateChanged& e) { on_changed(e); },
                   [this](const Lost& e) { on_lost(e); },
                   [this](const Called& e) {
                       if (e.got != e.expected)
                           violate("%s answered \"%s\" instead of \"%s\"", e.what, to_string(e.got),
                                   to_string(e.expected));
                   },
                   [this, &event](const Posted& e) { on_posted(event, e); },
                   [this](const Completed& e) { on_completed(e); },
                   ignore,
               },
               event.what);
}

void CheckState::on_changed(const StateChanged& changed) {
    Vi& vi = vis_[changed.vi];
    if (vi.state != changed.from || !is_legal(changed.from, changed.to, changed.cause))
        violate("VI %u went from %s to %s (known as %s)", changed.vi, to_text(changed.from),
                to_text(changed.to), to_text(vi.state));
    vi.state = changed.to;
    if ((changed.to == ViState::error || changed.cause == Cause::disconnect) &&
        !vi.outstanding.empty())
        violate("VI %u is in state %s, and work %u was not flushed", changed.vi,
                to_text(changed.to), *vi.outstanding.begin());
    if (changed.to == ViState::connected || changed.from == ViState::connect_pending)
        vi.lost_told = false;
}

void CheckState::on_lost(const Lost& lost) {
    Vi& vi = vis_[lost.vi];
    if (vi.state != ViState::error || vi.lost_told)
        violate("VI %u: CONN_LOST was told in state %s%s", lost.vi, to_text(vi.state),
                vi.lost_told ? ", again" : "");
    vi.lost_told = true;
}

void CheckState::on_posted(const Event& event, const Posted& posted) {
    vis_[posted.vi].outstanding.insert(posted.work);
    works_[posted.work] = posted.vi;
    const bool nowhere_to_go =
        posted.receive ? posted.state == ViState::error : posted.state != ViState::connected;
    if (nowhere_to_go) to_be_flushed_.emplace(posted.work, event.time);
}

void CheckState::on_completed(const Completed& completed) {
    if (const auto work = works_.find(completed.work); work != works_.end()) {
        vis_[work->second].outstanding.erase(completed.work);
        works_.erase(work);
    }
    if (to_be_flushed_.erase(completed.work) != 0 &&
        (completed.status & queue::status::error_mask) != queue::status::flushed)
        violate("work %u was posted where nothing can be sent, and completed with status %x",
                completed.work, completed.status);
}

}  // namespace via::sim
