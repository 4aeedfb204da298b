// Requests of peers, from their frame to their answer (VIPL 4.19, 4.20).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/limits.hpp"
#include "base/list.hpp"
#include "engine/frames.hpp"
#include "engine/listening.hpp"
#include "engine/news.hpp"
#include "engine/paths.hpp"
#include "engine/refusals.hpp"

namespace via::engine {

/// Owns who listens, and the requests that were not answered yet.
class Requests {
public:
    Requests(const NicLimits& limits, Paths& paths, News& news, Refusals& refusals)
        : limits_(limits), paths_(paths), news_(news), refusals_(refusals) {}
    ~Requests();
    Requests(const Requests&) = delete;
    Requests& operator=(const Requests&) = delete;

    void listen(Listener& listener);
    void unlisten(Listener& listener);
    /// Makes room for so many more requests that wait. False: there can be no more.
    bool make_room(std::uint32_t requests);
    /// Behind make_room(backlog.room).
    void listen(Backlog& backlog);
    /// Nobody listens there any more, and requests that wait are answered so.
    void unlisten(Backlog& backlog);
    /// The NIC closes: no backlog is there any more.
    void unlisten_all();
    /// Takes the oldest request. False: none.
    bool take(Backlog& backlog, Offer& offer);

    /// The request that the program has by that name, or nullptr.
    Connection* find(std::uint64_t name);
    /// It was withdrawn, and the program knows.
    void told(Connection& request);
    /// It has its answer.
    void end(Connection& request);
    /// The path went, and the requesters with it.
    void withdraw_all(PathId path);

    FrameVerdict on_request(Path& path, const wire::Header& header, const std::byte* payload,
                            std::size_t length);
    FrameVerdict on_withdraw(const Path& path, const wire::Header& header);

private:
    static constexpr std::uint32_t index_bits = 16;

    Connection& add();
    Connection* new_request();
    void give(Connection& request, Offer& offer);
    void uncount(Connection& request);
    void enter(Connection& request, Backlog& backlog);
    void leave_backlog(Connection& request);
    void set_waiting(Backlog& backlog, std::uint32_t waiting);
    void withdraw(Connection& request);

    const NicLimits& limits_;
    Paths& paths_;
    News& news_;
    Refusals& refusals_;
    List<Listener> listeners_;
    List<Backlog, StandingLink> backlogs_;
    std::uint32_t backlog_room_ = 0;  ///< of all of them
    std::deque<Connection> requests_;
    List<Connection> free_;
};

}  // namespace via::engine
