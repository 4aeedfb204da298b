// VIs that wait for a connection: until when, and which of them look for their peers, when.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/address.hpp"
#include "base/time.hpp"
#include "engine/moments.hpp"
#include "engine/vi.hpp"

namespace via::engine {

/// Owns the moments of all attempts to connect, and the engine's present moment with them.
class Attempts {
public:
    /// Room for so many VIs: one that begins to wait, or ends, needs no memory.
    void make_room(std::uint32_t vis);

    /// The VI waits from now on, and looks for nobody.
    void begin(Vi& vi, Time deadline);
    /// It waits no more; next_forgotten() tells if others were to find it.
    void end(Vi& vi);
    /// It looks for its peer at that moment, or again then; never(): no more.
    void look_at(Vi& vi, Time due);

    /// When there is something to do; never(): nobody waits.
    Time next() const { return next_; }
    /// Those whose time is up, by index; stands until the next call. `answers_may_wait`: but those
    /// that have asked.
    const std::vector<Vi*>& due(Time now, bool answers_may_wait);
    /// The next VI whose peer is to be looked for now, or nullptr.
    Vi* next_search(Time now);
    /// A discriminator that needs no listening any more. False: none.
    bool next_forgotten(Discriminator& discriminator);
    bool has_forgotten() const { return !forgotten_.empty(); }
    /// The VI that waits to be found by `asker`, who wants `wanted`; the one of the lowest index.
    Vi* awaiting(const NetAddress& asker, const Discriminator& wanted) const;

    /// Stale unless somebody waits.
    Time now() const { return now_; }
    void set_now(Time now) { now_ = now; }
    /// Comparisons of VIs so far: what attempts cost those that go on.
    std::uint64_t comparisons() const { return deadlines_.comparisons() + searches_.comparisons(); }

private:
    void find_next() { next_ = earlier(deadlines_.earliest(), searches_.earliest()); }

    Time now_{};
    Time next_ = Time::never();
    // All that are pending; a search that is not due is so never.
    Moments<&Vi::connect_deadline, &Vi::deadline_place> deadlines_;
    Moments<&Vi::search_due, &Vi::search_place> searches_;
    std::vector<Vi*> due_;
    std::deque<Discriminator> forgotten_;  ///< peers' that need no listening any more
};

}  // namespace via::engine
