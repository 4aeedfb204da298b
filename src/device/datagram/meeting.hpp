// How two instances find each other, make a path and part: queries, cookies, hellos, closes.
#pragma once

#include <cstdint>

#include "base/address.hpp"
#include "base/status.hpp"
#include "base/time.hpp"
#include "device/datagram/allowance.hpp"
#include "device/datagram/attempts.hpp"
#include "device/datagram/options.hpp"
#include "device/datagram/outbox.hpp"
#include "device/datagram/parts_out.hpp"
#include "device/datagram/paths.hpp"
#include "device/datagram/port.hpp"
#include "device/datagram/recovery.hpp"
#include "device/datagram/searches.hpp"
#include "device/datagram/statistics.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram {

/// Owns the questions where somebody listens, and what bounds the answers to those of strangers.
class Meeting {
public:
    Meeting(Port& port, const DatagramOptions& options, Paths& paths, Outbox& outbox,
            PartsOut& parts, Recovery& recovery, PathEvents& events, Totals& totals)
        : port_(port),
          options_(options),
          paths_(paths),
          outbox_(outbox),
          parts_(parts),
          recovery_(recovery),
          events_(events),
          totals_(totals),
          searches_(events) {}
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

    /// As in device.hpp.
    void resolve(const NetAddress& remote, std::uint64_t cookie, Time now);
    /// A packet that is no data.
    void take(const Incoming& in, const wire::PacketPrefix& prefix, Time now);
    /// A packet that belongs to nothing here: `kind` answers it, unless too many of them came.
    void answer_stranger(const Incoming& in, std::uint64_t connection, wire::PacketKind kind,
                         Time now);

    // Time ----------------------------------------------------------------------------------------
    Searches& searches() { return searches_; }
    const Searches& searches() const { return searches_; }
    void run_searches(Time now) {
        searches_.run(now, [&](Search& search) { ask_where(search, now); });
    }
    /// Of a path that we ask for.
    void on_deadline(Path& path, Time now);
    /// Asks the peer of a path that is up in which other networks it is, if it is time.
    void ask_for_rails(Path& path, Time now);

    // Ends of paths -------------------------------------------------------------------------------
    /// Nobody is at that address any more; another one may be found.
    void search_again(Path& path, Time now);
    /// Asks it for a sign of life, as if it had answered until now; unless one comes soon, it is
    /// down.
    void doubt(Path& path, Time now);
    /// Nothing is heard by one of the rails of `path`. True: another one goes on for all.
    bool goes_on_without(Path& rail, Time now);
    /// Ends a path that is up, and says so: a peer whom we do not hear may hear us.
    void leave(Path& path, wire::CloseReason why);

private:
    wire::PathOffer our_offer() const;
    void ask_where(Search& search, Time now);
    bool meet_at_home(Search& search, Time now);
    void meet(Search& search, const HostAddress& data, std::uint64_t instance, Time now);
    bool make_way(const HostAddress& newcomer);
    void say_hello(Path& path, Time now);
    void welcome(const Path& path);
    void refuse(const Incoming& in, std::uint64_t connection, wire::PathRefusal why);
    void come_up(Path& path, const wire::PathOffer& offer, std::uint64_t theirs, Time now);
    void give_up(Path& path, Status status);
    void go_down(Path& path);
    void end(Path& path);
    static void wait_after_refusal(Path& rail, Time now);
    void expect_rails(Path& path, Time now);
    void say_rails(const Path& path, bool asks);
    void join(Path& path, const wire::Rails& rails, Time now);
    bool is_ours(const HostAddress& address) const;
    std::uint64_t hash_of(const HostAddress& asker) const;
    bool may_look_up(const HostAddress& asker, Time now);
    void on_query(const Incoming& in, std::uint64_t connection, Time now);
    void on_answer(const Incoming& in, std::uint64_t connection, Time now);
    void on_hello(const Incoming& in, std::uint64_t connection, Time now);
    /// Apart from on_hello(), so that a hello without a cookie, which anybody may send, costs less.
    [[gnu::noinline]] void on_good_hello(const Incoming& in, std::uint64_t connection,
                                         const wire::Hello& hello, Time now);
    void on_retry(const Incoming& in, std::uint64_t connection, Time now);
    void on_welcome(const Incoming& in, std::uint64_t connection, Time now);
    void on_refuse(const Incoming& in, std::uint64_t connection, Time now);
    void on_unsupported(const Incoming& in, std::uint64_t connection);
    void on_joining_hello(const Incoming& in, std::uint64_t connection, const wire::Hello& hello,
                          Time now);
    void on_rails(const Incoming& in, std::uint64_t connection, Time now);
    void on_close(const Incoming& in, std::uint64_t connection, Time now);
    Path* asking_path(const Incoming& in, std::uint64_t connection) const;

    Port& port_;
    const DatagramOptions& options_;
    Paths& paths_;
    Outbox& outbox_;
    PartsOut& parts_;
    Recovery& recovery_;
    PathEvents& events_;
    Totals& totals_;
    Searches searches_;
    Attempts attempts_;
    std::uint64_t attempts_made_ = 0;
    Time strangers_since_{};
    std::uint32_t strangers_answered_ = 0;
    Allowance strangers_queries_{strangers_queries, strangers_queries_at_once};
    Allowance peers_queries_{peers_queries, peers_queries_at_once};
    Allowance strangers_hellos_{strangers_hellos, strangers_hellos_at_once};
    Allowance ways_made_{ways_made, ways_made_at_once};
};

}  // namespace via::device::datagram
