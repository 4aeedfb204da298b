// All paths: thousands of idle ones cost nothing but memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/address.hpp"
#include "device/datagram/deadlines.hpp"
#include "device/datagram/identifier_table.hpp"
#include "device/datagram/options.hpp"
#include "device/datagram/path.hpp"
#include "device/datagram/port.hpp"
#include "device/datagram/shares.hpp"
#include "device/datagram/siphash.hpp"
#include "device/datagram/statistics.hpp"
#include "device/datagram/whom.hpp"

namespace via::device::datagram {

/// Owns the paths: which there are, how each is found, and when it wants to be looked at.
class Paths {
public:
    Paths(Port& port, const DatagramOptions& options, Totals& totals);

    Path* at(PathId id) const { return id < paths_.size() ? paths_[id].get() : nullptr; }
    Path& operator[](PathId id) const { return *paths_[id]; }
    /// By the identifier in packets to us.
    Path* by_ours(std::uint64_t ours) const { return at(identifiers_.find(ours)); }
    /// One that came up, by the identifier in packets to it.
    Path* by_theirs(std::uint64_t theirs, const HostAddress& peer) const;
    /// One that is not over. A path to ourselves has two ends here: the one that asked, and the
    /// other.
    Path* find(std::uint64_t instance, const HostAddress& peer, bool asked_by_us) const;
    /// `call` may end the path that it is given.
    template <class Call>
    void for_each(Call call) const {
        for (std::size_t n = 0; n < paths_.size(); ++n)
            if (paths_[n]) call(*paths_[n]);
    }

    /// Nobody who sees one can tell the next.
    std::uint64_t new_identifier();
    /// nullptr: there are too many.
    Path* make(std::uint64_t instance, const HostAddress& peer, bool asked_by_us);
    /// For another network of a path that is up. nullptr: it has as many as it may, or there are
    /// too many paths.
    Path* make_rail(Path& first, const HostAddress& peer);
    void come_up(Path& path);
    /// It is over: nobody finds it any more.
    void end(const Path& path);
    /// With all its rails.
    void free(Path& path);
    /// Which path gives way to a newcomer whom there is none left for: of the peer that has most
    /// the oldest over which we never had a connection. nullptr: none.
    Path* least_needed(const HostAddress& newcomer) const;

    Shares& shares() { return shares_; }
    /// Its tables hold what the peer does not acknowledge, for which each peer has a share.
    bool widen(Path& path, std::size_t bytes);

    // When they want to be looked at --------------------------------------------------------------
    const Patience& patience() const { return patience_; }
    Time next_deadline() const { return deadlines_.next(); }
    void look_at_latest(const Path& path, Time moment) { deadlines_.at_latest(path.id, moment); }
    void reschedule(const Path& path, Time now) {
        look_at_latest(path, path.deadline(now, patience_));
    }
    /// Calls `on_deadline(path)`, which may end it, for each path whose moment has come. Each once:
    /// what cannot be done now is not tried again before the next turn.
    template <class OnDeadline>
    void run_due(Time now, OnDeadline on_deadline) {
        PathId id;
        for (std::size_t left = paths_.size(); left != 0 && deadlines_.take_due(now, id); --left) {
            on_deadline(*paths_[id]);
            if (const Path* path = at(id)) reschedule(*path, now);
        }
    }

private:
    void free_one(Path& path);
    Whom whom(std::uint64_t instance, const HostAddress& peer, bool asked_by_us) const {
        return {peer, instance, asked_by_us && instance == instance_};
    }

    Port& port_;
    Totals& totals_;
    const std::uint64_t instance_;  ///< ours
    const HashKey identifier_key_;
    const Patience patience_;
    Shares shares_;
    std::vector<std::unique_ptr<Path>> paths_;
    std::vector<PathId> free_ids_;
    IdentifierTable identifiers_;
    std::uint64_t identifiers_made_ = 0;
    PathsByWhom by_instance_;
    PathsByWhom by_theirs_;
    Deadlines deadlines_;
};

}  // namespace via::device::datagram
