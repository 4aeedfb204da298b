// SPDX-License-Identifier: Apache-2.0
// What a peer, or we, still have to do with: messages that are pulled, and answers to come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "nic.hpp"
#include "rdm/completions.hpp"
#include "rdm/connection.hpp"

namespace via::fabric::rdm {

/// A message that the peer pulls, or that we have for ourselves; or what an atomic operation of
/// the peer's answers.
struct Outgoing {
    Outgoing* next = nullptr;
    Connection* connection = nullptr;
    Region region{};
    void* context = nullptr;
    std::uint64_t flags = 0;
    bool told = false;
    bool is_used = false;
    bool is_atomic = false;
    std::byte* results = nullptr;
    std::size_t results_length = 0;
    std::uint32_t place = 0;
    std::uint32_t generation = 0;

    std::uint64_t cookie() const { return std::uint64_t{generation} << 32 | place; }
};

/// Owns them, and finds each by the name that the peer was told. Under the domain's guard.
class LongMessages {
public:
    /// Both outlive it.
    LongMessages(Nic& nic, Completions& completions) : nic_(nic), completions_(completions) {}

    /// nullptr: no memory.
    Outgoing* take(void* context, std::uint64_t flags, bool told);
    void put_back(Outgoing& outgoing);
    /// What the peer was sent by that name. nullptr: nothing of that kind.
    Outgoing* find(const Connection& connection, std::uint64_t cookie, bool is_atomic);
    /// The peer is done with what it was sent by that name. False: it was sent no such message.
    bool finish_named(const Connection& connection, std::uint64_t cookie);
    /// The program is told.
    void finish(Outgoing& outgoing, int error);
    /// All of a connection that ends.
    void finish_all(const Connection& connection, int error);
    /// Without a word, for the endpoint is closed.
    void discard_all();

private:
    void take_back(Outgoing& outgoing);

    Nic& nic_;
    Completions& completions_;
    std::deque<Outgoing> all_;
    Outgoing* free_ = nullptr;
};

}  // namespace via::fabric::rdm
