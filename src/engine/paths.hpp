// The ways to peer NICs: what is to be sent on each, and what their peers have of what all share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/address.hpp"
#include "base/counters.hpp"
#include "base/list.hpp"
#include "base/numbered_queue.hpp"
#include "engine/payloads.hpp"
#include "engine/under_way.hpp"
#include "engine/vi.hpp"
#include "wire/frame.hpp"

namespace via::engine {

/// Who has several paths, or the processes of one host: what it has of what all peers share.
struct Peer {
    std::uint32_t paths = 0;
    std::uint32_t answers = 0;   ///< it causes, and takes none so far
    std::uint32_t requests = 0;  ///< of it that the program has, and does not answer
};
using Peers = std::map<PeerKey, Peer>;

/// A frame of connecting and parting.
struct Notice {
    wire::Header header;
    bool answer = false;  ///< a frame of the peer brought it about, not our program
    std::vector<std::byte> payload;
    std::uint32_t payload_length() const { return static_cast<std::uint32_t>(payload.size()); }
    void set(wire::ConnectMessage message, std::span<const std::byte> private_data);
};

struct Path : ListLink {
    bool up = false;
    HostAddress peer;
    std::uint32_t payload_max = 0;
    PathId id = no_path;
    List<Vi, ActiveLink> active;    ///< VIs with frames to send, in turn
    NumberedQueue<Notice> notices;  ///< frames of connecting and parting; sent before VIs'
    std::uint32_t answers = 0;      ///< of these and of what is under way
    Peers::iterator share;          ///< while it is up
    bool retransmits = false;
    UnderWay under_way;  ///< of a path that retransmits: frames that must arrive
    /// Of these, to be emitted again, the oldest first. Sent before notices.
    NumberedQueue<std::uint32_t> lost;
};

/// Owns the paths, the notices that wait there, and which of them have something to send.
class Paths {
public:
    Paths(std::uint32_t requests_max, Counters& counters)
        : requests_max_(requests_max), counters_(counters) {}
    ~Paths();
    Paths(const Paths&) = delete;
    Paths& operator=(const Paths&) = delete;

    Path& operator[](PathId path) const { return *paths_[path]; }
    bool is_up(PathId path) const { return path < paths_.size() && paths_[path]->up; }
    void begin(PathId path, std::uint32_t payload_max, const HostAddress& peer, bool retransmits);
    /// No VI and no request is of the path any more, which is not up.
    void end(Path& path);

    // What is to be sent --------------------------------------------------------------------------
    /// Nothing, if the path is not up.
    void notify(PathId path, Notice&& notice);
    void notify(PathId path, wire::FrameKind kind, std::uint32_t vi, std::uint32_t message = 0,
                std::uint32_t code = 0);
    void refuse(PathId path, std::uint32_t number, wire::RefuseCode code,
                std::span<const std::byte> data = {});
    /// The peer asks without end and reads nothing.
    static bool is_flooded(const Path& path) { return path.notices.size() >= notices_max; }
    /// The oldest notice was emitted, in frame `number` where it may be lost.
    void notice_emitted(Path& path, std::uint32_t number);
    /// The VI has frames to send.
    void activate(Vi& vi);
    void wants_to_send(Path& path) {
        if (!path.linked()) sending_.push_back(path);
    }
    static void has_nothing_to_send(Path& path) { List<Path>::remove_if_linked(path); }
    /// First path with something to send, or no_path; next_sending() goes on from there.
    PathId first_sending();
    PathId next_sending(PathId path);
    /// The first one is the last.
    void rotate_sending() { sending_.rotate(); }
    /// Any path with something to send?
    bool sending() { return !sending_.empty(); }

    /// Storage for payloads of connecting.
    Payloads& payloads() { return payloads_; }

    // What peers share ----------------------------------------------------------------------------
    bool may_have_answers(const Path& path) const {
        const std::uint32_t left = answers_ < answers_max ? answers_max - answers_ : 0;
        return path.answers < answers_of_path_least ||
               (path.answers < answers_of_path_max && path.share->second.answers < left);
    }
    /// The last notice of the path is one.
    void answer_came(Path& path) {
        path.notices.back().answer = true;
        ++path.answers;
        ++path.share->second.answers;
        ++answers_;
    }
    void answer_taken(Path& path) {
        --path.answers;
        --path.share->second.answers;
        --answers_;
    }
    /// Requests that the program has and does not answer: the paths of an address have no more than
    /// they leave free of all that there may be. Who shares our memory is our own user.
    bool may_have_requests(const Path& path) const {
        return !path.retransmits || path.share->second.requests <
                                        (requests_ < requests_max_ ? requests_max_ - requests_ : 0);
    }
    /// Whose it is: for request_ended().
    Peers::iterator request_came(const Path& path) {
        ++requests_;
        ++path.share->second.requests;
        return path.share;
    }
    void request_ended(Peers::iterator peer) {
        --requests_;
        --peer->second.requests;
        forget_if_nothing(peer);
    }

private:
    static constexpr std::uint32_t notices_max = 65536;
    static constexpr std::uint64_t notices_kept = 64;  ///< storage that stays with a path
    /// Answers that a peer causes and does not take: of a path in any case, at most, and of all
    /// beyond what each has in any case, of which the paths of an address have no more than they
    /// leave free. Honest peers take them as fast as they ask.
    static constexpr std::uint32_t answers_of_path_least = 64;
    static constexpr std::uint32_t answers_of_path_max = 16384;
    static constexpr std::uint32_t answers_max = 131072;

    void forget_if_nothing(Peers::iterator peer) {
        if (peer->second.paths == 0 && peer->second.requests == 0) peers_.erase(peer);
    }

    std::uint32_t requests_max_;
    Counters& counters_;
    std::vector<std::unique_ptr<Path>> paths_;
    List<Path> sending_;
    Payloads payloads_;           ///< of answers, as many as may wait there
    Peers peers_;                 ///< that have anything
    std::uint32_t requests_ = 0;  ///< of all of them
    std::uint32_t answers_ = 0;   ///< of all paths
};

}  // namespace via::engine
