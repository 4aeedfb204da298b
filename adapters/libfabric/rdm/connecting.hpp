// SPDX-License-Identifier: Apache-2.0
// How connections of an endpoint for datagrams come about: asked for when they are first needed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "domain.hpp"
#include "listener.hpp"
#include "rdm/connections.hpp"
#include "rdm/peer.hpp"
#include "rdm/peers.hpp"
#include "rdm/receive_queues.hpp"
#include "rdm/receives.hpp"

namespace via::fabric::rdm {

/// Owns the endpoint's name, its requests to peers and those of peers to it, until each is a
/// connection or was refused. Under the domain's guard, but for what says otherwise.
class Connecting {
public:
    /// Ends a connection at once, delivering what has come; FI_E....
    using End = std::function<void(Connection&, int error)>;
    /// They outlive it.
    Connecting(Domain& domain, Peers& peers, Connections& connections,
               ReceiveQueues& receive_queues, Receives& receives, End end);

    // Our name; without the guard, by who makes and closes the endpoint --------------------------
    /// Port 0: any. `shown`: show that there is mail. `counts_moves`: peers are to say when they
    /// read or wrote the program's memory. 0, or an error of libfabric's.
    int listen(std::uint16_t port, std::vector<WaitObject*> shown, bool counts_moves);
    bool is_listening() const { return listener_->is_listening(); }
    const sockaddr_in& address() const { return listener_->address(); }
    Name own_name() const { return name_of(address()); }
    void stop_listening() { listener_.reset(); }
    /// Nobody asks any more when it returns.
    void cancel_all();
    void clear() { attempts_.clear(); }

    /// 0: it is asked for; or an error of libfabric's.
    int ask(Peer& peer);
    /// Somebody connects, or was answered. Any thread.
    bool has_mail() const { return mailbox_.has_mail(); }
    void read_mail() noexcept;

private:
    void answer(Mailbox::Request& request);
    void accept(Peer& peer, Mailbox::Request& request);
    void reject(Mailbox::Request& request, bool crossed);
    void answered(Attempt& attempt);
    int make_connection(Peer& peer, const VIP_VI_ATTRIBUTES* of_requester,
                        std::unique_ptr<Connection>& connection);
    void connected(Peer& peer, std::unique_ptr<Connection> connection, const Hello& theirs);
    Hello hello() const;
    /// Are lines of use, and some more worth looking at?
    bool wants_lines(const Peer& peer) const;

    Domain& domain_;
    Peers& peers_;
    Connections& connections_;
    ReceiveQueues& receive_queues_;
    Receives& receives_;
    const End end_;
    const std::uint64_t incarnation_;
    bool counts_moves_ = false;
    std::vector<std::unique_ptr<Attempt>> attempts_;
    Mailbox mailbox_;
    std::unique_ptr<Listener> listener_;  ///< last: its thread fills the mailbox
};

}  // namespace via::fabric::rdm
