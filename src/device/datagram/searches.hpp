// Questions of the program where somebody listens, until each is answered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <list>
#include <map>

#include "base/address.hpp"
#include "base/time.hpp"
#include "device/datagram/constants.hpp"
#include "device/datagram/port.hpp"
#include "device/datagram/refused_hosts.hpp"
#include "device/device.hpp"

namespace via::device::datagram {

/// What next_event() tells, in order.
using PathEvents = std::deque<PathEvent>;

/// One resolve() under way. First the host is asked where the listener is (path: none); then a path
/// is waited for.
struct Search {
    static constexpr PathId no_path = ~PathId{0};

    std::uint64_t cookie = 0;
    NetAddress remote;
    std::uint64_t question = 0;  ///< identifier of the query
    PathId path = no_path;
    Time asked{};  ///< the last time
    Time next_try{};
    Time give_up{};
    /// Its host has said that nobody is at its port: who is silent until then has no NIC.
    Time refused_until = Time::never();
    Duration interval = try_first;
    /// Queries that met a port where nobody is, or found no way there. The one that answers for the
    /// host may just have ended, and another take its place, or a way may just be changed: a few in
    /// a row mean that nobody does.
    int refusals = 0;
    bool refused = false;  ///< the last one

    bool is_asking() const { return path == no_path; }
    Time deadline() const { return earlier(refused_until, earlier(next_try, give_up)); }
};

/// Owns the searches, and when the next of them is to be asked again or given up.
class Searches {
public:
    explicit Searches(PathEvents& events) : events_(events) {}
    Searches(const Searches&) = delete;
    Searches& operator=(const Searches&) = delete;

    Search& add(const NetAddress& remote, std::uint64_t cookie, std::uint64_t question, Time now,
                Duration patience);
    /// nullptr: it is over, or was never asked.
    Search* find(std::uint64_t question);
    /// `event` is its answer, with its cookie.
    void end(Search& search, const PathEvent& event);
    /// The answer of all that wait for the path. Returns whether any did.
    bool end_all_of(PathId path, const PathEvent& event);
    /// Nobody is at that address any more: they ask again.
    void ask_again_all_of(PathId path, Time now);

    Time deadline() const { return deadline_; }
    /// Ends those that nobody answers, and calls `ask(search)`, which may end it, for those that
    /// are to be asked again.
    template <class Ask>
    void run(Time now, Ask ask) {
        end_unanswered(now);
        for (auto next = searches_.begin(); next != searches_.end();) {
            Search& search = *next++;
            if (search.is_asking() && now >= search.next_try) ask(search);
        }
        find_deadline();
    }
    /// It is asked now.
    void asked(Search& search, Time now);
    /// Its host answers.
    void answered(Search& search);
    /// Our own host says so of `to`, or the network of the datagram with that question.
    void on_network_error(const NetworkError& error, Time now);
    /// So long nobody asked or looked for answers.
    void extend_deadlines(Duration stood_still) {
        for (Search& search : searches_) search.give_up = search.give_up + stood_still;
    }

private:
    template <class Which>
    bool end_those(Which which, PathEvent event);
    void end_unanswered(Time now);
    void find_deadline();
    void expect_silence(Search& search, Duration delay, Time now);
    void refuse(Search& search, const NetworkError& error, Time now);

    PathEvents& events_;
    std::list<Search> searches_;
    std::map<std::uint64_t, std::list<Search>::iterator> questions_;
    Time deadline_ = Time::never();
    RefusedHosts refused_;
};

}  // namespace via::device::datagram
