// SPDX-License-Identifier: Apache-2.0
// The connections of an endpoint for datagrams, and which of them wait for what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rdm/connection.hpp"
#include "rdm/lined_connections.hpp"

namespace via::fabric::rdm {

/// Owns the connections, and the lists of those that are looked at and of those that are to end.
/// Under the domain's guard.
class Connections {
public:
    /// Throws std::bad_alloc. Then nothing that is told of `more` others needs memory.
    void reserve(std::size_t more);
    std::size_t size() const { return all_.size(); }
    /// Nobody looks at it yet.
    void add(std::unique_ptr<Connection> connection) { all_.push_back(std::move(connection)); }
    /// The same, of one over which messages come.
    void add_open(std::unique_ptr<Connection> connection);
    template <class Visit>
    void for_each(const Visit& visit) {
        for (const auto& connection : all_) visit(*connection);
    }
    /// Those whose receives complete in no queue; the likeliest to have some first.
    std::vector<Connection*>& direct() { return direct_; }
    LinedConnections& lined() { return lined_; }
    /// So many have lines that processors are likely fewer than peers; it stays so.
    bool is_crowded() const { return crowded_; }

    /// Somebody waits for what is under way, so it is looked for.
    void watch(Connection& connection) {
        if (connection.is_watched) return;
        connection.is_watched = true;
        watched_.push_back(&connection);
    }
    /// `look` answers: somebody still waits for something.
    template <class Look>
    [[gnu::always_inline]] void look_at_watched(const Look& look) {
        for (std::size_t index = 0; index < watched_.size();) {
            Connection& connection = *watched_[index];
            if (look(connection)) {
                ++index;
                continue;
            }
            connection.is_watched = false;
            watched_[index] = watched_.back();
            watched_.pop_back();
        }
    }
    /// Asks the peer's NIC. The answer, or the connection's end, will tell. `now`:
    /// AddressVector::now().
    void ask_whether_there(Connection& connection, std::uint64_t now);

    // Ends --------------------------------------------------------------------------------------
    /// The connection broke, or the peer broke the rules: it is ended when nobody up the stack uses
    /// it.
    void fail(Connection& connection);
    /// What the peer said is no message.
    void fail_wrong(Connection& connection);
    bool any_failed() const { return !failed_.empty(); }
    /// One that is to be ended; nullptr: none is left. One that is still asked for waits for the
    /// answer.
    Connection* take_failed();
    /// It has ended: nobody looks at it any more.
    void forget(Connection& connection);
    /// A message or a receive names it no more.
    void let_go(Connection& connection) {
        if (--connection.held == 0 && connection.has_ended) free(connection);
    }
    /// It has ended, and nothing names it.
    void free(Connection& connection);
    /// The endpoint is closed.
    void clear() { all_.clear(); }

private:
    std::vector<std::unique_ptr<Connection>> all_;
    std::vector<Connection*> watched_;
    std::vector<Connection*> failed_;
    std::vector<Connection*> direct_;
    LinedConnections lined_;
    bool crowded_ = false;
};

}  // namespace via::fabric::rdm
