// SPDX-License-Identifier: Apache-2.0
// Who an endpoint talks to, and how a connection to it comes about.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "connect_request.hpp"
#include "connector.hpp"
#include "rdm/address_vector.hpp"
#include "rdm/connection.hpp"
#include "rdm/wire.hpp"
#include "wait_object.hpp"

namespace via::fabric::rdm {

class Attempt;

struct Peer {
    enum class State : std::uint8_t {
        unknown,  ///< nobody has asked yet
        asking,   ///< `attempt` does
        connected,
        refused,  ///< nobody was there: `error`, for who sends next; whoever sends then asks again
        ended,    ///< messages may have been lost, so there are no more
    };
    Name name = 0;
    sockaddr_in address{};
    fi_addr_t number = FI_ADDR_NOTAVAIL;  ///< in the address vector, if that is known
    State state = State::unknown;
    bool is_self = false;
    int error = 0;  ///< why it ended, FI_E...
    Connection* connection = nullptr;
    Attempt* attempt = nullptr;
    std::uint64_t incarnation = 0;  ///< of the endpoint that is or was connected; 0: none was
};

/// What the threads that connect leave for the program's, which alone touches peers.
class Mailbox {
public:
    struct Request {
        std::unique_ptr<ConnectRequest> request;
        Hello hello;
    };
    /// A request that is no endpoint's for datagrams is dropped, and so rejected.
    void put_request(std::unique_ptr<ConnectRequest> request, const std::uint8_t* data,
                     std::size_t length);
    void put_answer(Attempt& attempt) noexcept;

    /// These show that there is mail; before there is any.
    void shown_by(std::vector<WaitObject*> waiting) { waiting_ = std::move(waiting); }
    bool has_mail() const { return has_mail_.load(std::memory_order_acquire); }
    void take(std::vector<Request>& requests, std::vector<Attempt*>& answered);

private:
    void mail_came() noexcept;

    std::vector<WaitObject*> waiting_;
    std::mutex lock_;
    std::atomic<bool> has_mail_{false};
    std::vector<Request> requests_;
    Attempt* answered_ = nullptr;
};

/// One asks a peer for a connection.
class Attempt : public Asking {
public:
    Attempt(Nic& nic, Peer& asked, std::unique_ptr<Connection> made, const Hello& hello,
            Mailbox& mailbox)
        : peer(asked),
          connection(std::move(made)),
          nic_(nic),
          address_(asked.address),
          hello_(hello),
          mailbox_(mailbox) {}

    void connect_now() override;
    void interrupt() override;
    void finished() noexcept override;
    bool asks_for_lines() const { return hello_.wants_lines != 0; }

    Peer& peer;
    std::unique_ptr<Connection> connection;
    // When it is answered
    VIP_RETURN code = VIP_NOT_DONE;
    Hello reply{};
    Attempt* next = nullptr;

private:
    Nic& nic_;
    const sockaddr_in address_;
    const Hello hello_;
    Mailbox& mailbox_;
    std::atomic<bool> interrupted_{false};
};

}  // namespace via::fabric::rdm
