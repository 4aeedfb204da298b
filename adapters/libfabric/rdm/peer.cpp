// SPDX-License-Identifier: Apache-2.0
#include "rdm/peer.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace via::fabric::rdm {

// The mailbox -----------------------------------------------------------------------------------

void Mailbox::put_request(std::unique_ptr<ConnectRequest> request, const std::uint8_t* data,
                          std::size_t length) {
    Hello hello;
    if (length != sizeof hello) return;
    std::memcpy(&hello, data, sizeof hello);
    if (hello.magic != Hello::magic_word || hello.version != Hello::version_now ||
        hello.packet != packet_max || hello.port == 0 || hello.incarnation == 0)
        return;
    const std::lock_guard guard(lock_);
    requests_.push_back({std::move(request), hello});
    mail_came();
}

void Mailbox::put_answer(Attempt& attempt) noexcept {
    const std::lock_guard guard(lock_);
    attempt.next = std::exchange(answered_, &attempt);
    mail_came();
}

void Mailbox::mail_came() noexcept {
    has_mail_.store(true, std::memory_order_release);
    for (WaitObject* waiting : waiting_) waiting->show(true);
}

void Mailbox::take(std::vector<Request>& requests, std::vector<Attempt*>& answered) {
    const std::lock_guard guard(lock_);
    std::size_t count = 0;
    for (const Attempt* at = answered_; at != nullptr; at = at->next) ++count;
    answered.reserve(count);
    for (; answered_ != nullptr; answered_ = answered_->next) answered.push_back(answered_);
    requests.swap(requests_);
    has_mail_.store(false, std::memory_order_relaxed);
}

// Asking ----------------------------------------------------------------------------------------

/// Asks again where the peer wants to be the one that asks: its request may come, or it may have
/// died, which the next answer tells.
void Attempt::connect_now() {
    const Address own = nic_.listener(nic_.address(0));
    const Address at = nic_.listener(address_);
    for (int pause_ms = 1;; pause_ms = std::min(2 * pause_ms, 16)) {
        VIP_VI_ATTRIBUTES theirs;
        code = ViaConnectRequest(connection->vi(), own.raw(), at.raw(), VIP_INFINITE, &theirs,
                                 &hello_, sizeof hello_);
        VIP_UINT32 length = sizeof reply;
        if ((code != VIP_SUCCESS && code != VIP_REJECT) ||
            ViaQueryPrivateData(connection->vi(), &reply, &length) != VIP_SUCCESS ||
            length != sizeof reply || reply.magic != Hello::magic_word)
            reply = {.magic = 0};
        if (code != VIP_REJECT || reply.magic == 0 || reply.crossed == 0 || interrupted_) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
        if (interrupted_) break;
    }
    if (code == VIP_SUCCESS && reply.magic != 0) connection->attach_lines(reply);
}

void Attempt::finished() noexcept { mailbox_.put_answer(*this); }

void Attempt::interrupt() {
    interrupted_ = true;
    VipDisconnect(connection->vi());
}

}  // namespace via::fabric::rdm
