// How VIs meet and part (VIPL 3, 4.19 to 4.22). Frames of connecting go out before VIs' frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.hpp"
#include "base/status.hpp"
#include "base/time.hpp"
#include "engine/attempts.hpp"
#include "engine/completions.hpp"
#include "engine/connections.hpp"
#include "engine/frames.hpp"
#include "engine/paths.hpp"
#include "engine/refusals.hpp"
#include "engine/requests.hpp"
#include "engine/vi.hpp"
#include "engine/vi_table.hpp"

namespace via::engine {

/// Owns the attempts of our VIs to connect, from the program's call to their outcome.
class Connecting {
public:
    Connecting(const ViTable& vis, Paths& paths, Completions& completions, Connections& connections,
               Requests& requests, Refusals& refusals)
        : vis_(vis),
          paths_(paths),
          completions_(completions),
          connections_(connections),
          requests_(requests),
          refusals_(refusals) {}

    /// Who waits until when, and looks for whom.
    Attempts& attempts() { return attempts_; }
    const Attempts& attempts() const { return attempts_; }

    /// VI idle -> connect_pending until `deadline`; connect_on() or connect_failed() follows.
    Status begin_connect(Vi& vi, const NetAddress& local, const NetAddress& remote, Time deadline,
                         std::span<const std::byte> data = {});
    /// The request that was just begun waits for a listener where the devices find the name: it is
    /// looked for again, as a peer is, when nobody takes requests at that moment.
    static void insist(Vi& vi) { vi.insists = true; }
    /// The request that was just begun is made again for some milliseconds, within its time, where
    /// nobody takes requests: a server may be between two calls that wait.
    static void look_again(Vi& vi, Time now) {
        vi.looks_left = looks_again;
        vi.looks_until = now + looks_longest;
    }
    /// The peer was found: sends the request. Ignored unless the VI is still pending.
    void connect_on(Vi& vi, PathId path);
    /// connect_pending -> idle with that outcome. Ignored unless pending.
    void connect_failed(Vi& vi, Status status);
    /// `data`: at most wire::private_length_max bytes, also below.
    Status accept(std::uint64_t connection, Vi& vi, std::span<const std::byte> data);
    Status reject(std::uint64_t connection, std::span<const std::byte> data);

    // Peer to peer (VIPL 4.22): of two VIs that ask for each other one asks, the other one waits to
    // be found. Who asks looks for the other again and again until the deadline.
    /// VI idle -> connect_pending. `asks`: it is this one; attempts() tell when to look.
    Status begin_peer_connect(Vi& vi, const NetAddress& local, const NetAddress& remote,
                              Time deadline, bool asks, std::span<const std::byte> data = {});
    /// Does a VI of this NIC wait to be found by `local`, at `remote`?
    bool is_awaited(const NetAddress& local, const NetAddress& remote) const {
        return attempts_.awaiting(local, remote.discriminator) != nullptr;
    }
    /// The devices let others find the VI, which waits from now on; next_forgotten() tells when no
    /// more.
    static void set_listening(Vi& vi) {
        vi.listening = true;
        vi.asks = false;
    }
    /// The peer of a pending VI was not found: the attempt ends, or goes on if it is peer to peer
    /// or somebody is there who does not answer (timeout).
    void not_found(Vi& vi, Status status);

    /// Any state -> idle, both queues flushed (VIPL 3).
    void disconnect(Vi& vi);
    /// `answers_may_wait`: to be received; then who sent his request has not waited for nothing
    /// yet.
    void on_time(Time now, bool answers_may_wait) {
        attempts_.set_now(now);
        if (now >= attempts_.next()) expire(now, answers_may_wait);
    }

    FrameVerdict on_accept(const Path& path, const wire::Header& header, const std::byte* payload,
                           std::size_t length);
    FrameVerdict on_refuse(const Path& path, const wire::Header& header, const std::byte* payload,
                           std::size_t length);
    FrameVerdict on_peer_request(const Path& path, const wire::Header& header,
                                 const std::byte* payload, std::size_t length);

private:
    static constexpr std::uint32_t looks_again = 4;  ///< after 1, 2, 4 and 8 ms
    /// Not where it took so long to hear that nobody is there: on a network, whose host says so now
    /// and then only.
    static constexpr Duration looks_longest = milliseconds(100);

    Notice request_of(const Vi& vi);
    Notice acceptance_of(const Vi& vi, std::uint32_t remote_number,
                         std::span<const std::byte> data);
    void start_pending(Vi& vi, const NetAddress& local, const NetAddress& remote, Time deadline,
                       std::span<const std::byte> data);
    void pending_ended(Vi& vi, Status status);
    void expire(Time now, bool answers_may_wait);
    void search_later(Vi& vi);
    bool looks_once_more(Vi& vi);

    const ViTable& vis_;
    Paths& paths_;
    Completions& completions_;
    Connections& connections_;
    Requests& requests_;
    Refusals& refusals_;
    Attempts attempts_;
};

}  // namespace via::engine
