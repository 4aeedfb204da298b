// The side that is asked: requests, and who takes them.
#pragma once

#include <cstdint>

#include "base/address.hpp"
#include "base/atomic.hpp"
#include "base/list.hpp"
#include "engine/paths.hpp"
#include "engine/vi.hpp"
#include "wire/frame.hpp"

namespace via::engine {

/// A request as its taker sees it.
struct Offer {
    std::uint64_t connection = 0;
    PathId path = no_path;
    Discriminator remote;         ///< the requester's own discriminator
    HostAddress remote_host;      ///< where its NIC is
    RemoteAttributes attributes;  ///< of the requester's VI
    PrivateData data;             ///< that came with the request
};

/// A call that waits for a connection request (ConnectWait). The caller owns it and takes it out
/// again with unlisten() before it ends.
struct Listener : ListLink, Offer {
    Discriminator discriminator;
    Atomic<bool> given{false};  ///< a request was given to this listener: the offer is set
};

struct Backlog;

/// A request that was not answered yet.
struct Connection : ListLink {
    /// told: withdrawn, and the program knows. It should reject it; if it does not, its place
    /// is taken when there is no other.
    enum class Stage : std::uint8_t { free, offered, withdrawn, told } stage = Stage::free;
    std::uint32_t index = 0;  ///< its place; constant
    std::uint32_t generation = 0;
    PathId path = no_path;
    Backlog* backlog = nullptr;  ///< it waits there; else the program has it
    HostAddress host;            ///< the requester's
    Peers::iterator peer;        ///< while `counted`
    bool counted = false;        ///< among its requests: the program has it
    wire::ConnectMessage message{};
    std::uint32_t understood = 0;  ///< by the requester: wire::understood bits
    PrivateData data;
};

struct StandingLink : ListLink {};
struct ChangedLink : ListLink {};

/// A listener that stands: requests wait here until they are taken. Its owner keeps it for the
/// engine's life.
struct Backlog : StandingLink, ChangedLink {
    Discriminator discriminator;
    std::uint32_t room = 0;               ///< so many may wait
    bool watched = false;                 ///< next_changed() tells when `waiting` changes
    Atomic<std::uint32_t> waiting{0};     ///< how many do; any thread
    Atomic<std::uint32_t> generation{0};  ///< of the listener's name; odd: it stands. Any thread
    List<Connection> requests;            ///< the oldest first
};

}  // namespace via::engine
