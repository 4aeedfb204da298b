// SPDX-License-Identifier: Apache-2.0
#include "rdm/connections.hpp"

#include <algorithm>
#include <thread>

namespace via::fabric::rdm {

void Connections::reserve(std::size_t more) {
    const std::size_t all = all_.size() + more;
    all_.reserve(all);
    watched_.reserve(all);
    failed_.reserve(all);
    direct_.reserve(all);
    lined_.reserve(all);
}

void Connections::add_open(std::unique_ptr<Connection> connection) {
    if (connection->queue() == nullptr) direct_.push_back(connection.get());
    if (connection->lines.are_open()) {
        lined_.add(*connection);
        if (lined_.size() >= std::thread::hardware_concurrency()) {
            lined_.never_wait();
            crowded_ = true;
        }
    }
    add(std::move(connection));
}

void Connections::ask_whether_there(Connection& connection, std::uint64_t now) {
    if (connection.is_asked) return;
    Send* const send = connection.take();
    if (send == nullptr) return;  // the next one who wonders asks
    send->kind = Send::Kind::question;
    const VIP_RETURN code = connection.post_question(*send);
    if (code == VIP_SUCCESS) {
        connection.is_asked = true;
        connection.asked_at = now;
        ++connection.waited_for;
        watch(connection);
    } else if (code != VIP_ERROR_RESOURCE) {
        fail(connection);
    }
}

void Connections::fail(Connection& connection) {
    if (connection.has_ended || connection.has_failed) return;
    connection.has_failed = true;
    failed_.push_back(&connection);
}

void Connections::fail_wrong(Connection& connection) {
    FI_WARN(&provider, FI_LOG_EP_DATA, "a peer sent what is no message\n");
    fail(connection);
}

Connection* Connections::take_failed() {
    while (!failed_.empty()) {
        Connection* const connection = failed_.back();
        failed_.pop_back();
        if (!connection->is_asking) return connection;
        connection->has_failed = false;
        connection->is_broken = true;
    }
    return nullptr;
}

void Connections::forget(Connection& connection) {
    std::erase(failed_, &connection);
    std::erase(watched_, &connection);
    std::erase(direct_, &connection);
    lined_.remove(connection);
}

void Connections::free(Connection& connection) {
    const auto place = std::ranges::find(all_, &connection, &std::unique_ptr<Connection>::get);
    if (place != all_.end()) all_.erase(place);
}

}  // namespace via::fabric::rdm
