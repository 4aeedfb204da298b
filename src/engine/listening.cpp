// Who listens, and what becomes of a request before it is answered (VIPL 4.19, 4.20).
#include <algorithm>
#include <utility>

#include "engine/connect_message.hpp"
#include "engine/engine.hpp"

namespace via::engine {

void Engine::listen(Listener& listener) {
    listener.given.store(false);
    listeners_.push_back(listener);
}

void Engine::unlisten(Listener& listener) { List<Listener>::remove_if_linked(listener); }

// Listeners that stand ----------------------------------------------------------------------------

bool Engine::make_room(std::uint32_t requests) {
    const std::size_t wanted = std::size_t{backlog_room_} + requests;
    if (wanted + limits_.connections_waiting_max > 1U << connection_index_bits) return false;
    payloads_.make_room(wanted);
    while (connections_.size() < wanted) free_connections_.push_back(add_connection());
    return true;
}

void Engine::listen(Backlog& backlog) {
    backlog_room_ += backlog.room;
    backlogs_.push_back(backlog);
}

void Engine::unlisten(Backlog& backlog) {
    if (!static_cast<StandingLink&>(backlog).linked()) return;
    while (Connection* request = backlog.requests.front()) {
        leave_backlog(*request);
        refuse(request->path, request->message.vi, wire::RefuseCode::no_match);
        free_connection(*request);
    }
    backlog_room_ -= backlog.room;
    backlog.watched = false;
    List<Backlog, StandingLink>::remove(backlog);
    List<Backlog, ChangedLink>::remove_if_linked(backlog);
    progressed();  // whoever waits there
}

bool Engine::take(Backlog& backlog, Offer& offer) {
    Connection* request = backlog.requests.front();
    if (request == nullptr) return false;
    leave_backlog(*request);
    tell(*request, offer);
    return true;
}

void Engine::enter_backlog(Connection& request, Backlog& backlog) {
    request.backlog = &backlog;
    backlog.requests.push_back(request);
    set_waiting(backlog, backlog.waiting.load(std::memory_order_relaxed) + 1);
    // Of several listeners each gets its turn.
    List<Backlog, StandingLink>::remove(backlog);
    backlogs_.push_back(backlog);
}

void Engine::leave_backlog(Connection& request) {
    Backlog& backlog = *request.backlog;
    request.backlog = nullptr;
    List<Connection>::remove(request);
    set_waiting(backlog, backlog.waiting.load(std::memory_order_relaxed) - 1);
}

void Engine::set_waiting(Backlog& backlog, std::uint32_t waiting) {
    VIA_ASSERT(waiting <= backlog.room);
    backlog.waiting.store(waiting, std::memory_order_release);
    if (!backlog.watched || static_cast<ChangedLink&>(backlog).linked()) return;
    changed_.push_back(backlog);
    news_ = true;
}

// Requests ----------------------------------------------------------------------------------------

Connection& Engine::add_connection() {
    Connection& slot = connections_.emplace_back();
    slot.index = static_cast<std::uint32_t>(connections_.size() - 1);
    return slot;
}

Connection* Engine::new_connection() {
    if (Connection* slot = free_connections_.pop_front()) return slot;
    if (connections_.size() < std::size_t{backlog_room_} + limits_.connections_waiting_max)
        return &add_connection();
    const auto told = std::ranges::find(connections_, Connection::Stage::told, &Connection::stage);
    return told == connections_.end() ? nullptr : &*told;
}

void Engine::free_connection(Connection& connection) {
    uncount(connection);
    connection.stage = Connection::Stage::free;
    free_connections_.push_back(connection);
}

void Engine::uncount(Connection& request) {
    if (!std::exchange(request.counted, false)) return;
    --requests_;
    --request.peer->second.requests;
    forget_if_nothing(request.peer);
}

/// It is the program's from here on.
void Engine::tell(Connection& request, Offer& offer) {
    request.peer = path_at(request.path).share;
    request.counted = true;
    ++requests_;
    ++request.peer->second.requests;
    offer.connection = (std::uint64_t{request.generation} << connection_index_bits) | request.index;
    offer.path = request.path;
    offer.remote_host = request.host;
    offer.remote =
        discriminator_of(request.message.local_discriminator, request.message.local_length);
    offer.attributes = attributes_of(request.message);
    offer.data = request.data;
}

FrameVerdict Engine::on_request(Path& path, const wire::Header& header, const std::byte* payload,
                                std::size_t length) {
    wire::ConnectMessage message;
    if (header.flags != 0 || !read_message(payload, length, message))
        return hostile("a connection request that makes no sense");
    const Discriminator wanted =
        discriminator_of(message.remote_discriminator, message.remote_length);
    Listener* listener = listeners_.front();
    while (listener != nullptr && !(listener->discriminator == wanted))
        listener = listeners_.next(*listener);
    Backlog* backlog = listener != nullptr ? nullptr : backlogs_.front();
    while (backlog != nullptr &&
           (!(backlog->discriminator == wanted) ||
            backlog->waiting.load(std::memory_order_relaxed) == backlog->room))
        backlog = backlogs_.next(*backlog);
    const bool is_heard = listener != nullptr ? may_have_requests(path) : backlog != nullptr;
    Connection* slot = is_heard ? new_connection() : nullptr;
    if (slot == nullptr) {
        refuse(path.id, message.vi, wire::RefuseCode::no_match);
        return FrameVerdict::taken;
    }
    slot->stage = Connection::Stage::offered;
    ++slot->generation;
    slot->path = path.id;
    slot->host = path.peer;
    slot->message = message;
    slot->understood = header.immediate_or_code;
    read_data(payload + sizeof message, message.private_length, slot->data);
    if (listener != nullptr) {
        unlisten(*listener);
        tell(*slot, *listener);
        listener->given.store(true, std::memory_order_release);
    } else {
        enter_backlog(*slot, *backlog);
    }
    progressed();
    return FrameVerdict::taken;
}

/// The requester has given up, or its path went.
void Engine::withdraw(Connection& request) {
    if (request.backlog == nullptr) {
        request.stage = Connection::Stage::withdrawn;  // the program has it
        return;
    }
    leave_backlog(request);
    free_connection(request);
}

FrameVerdict Engine::on_withdraw(Path& path, const wire::Header& header) {
    for (Connection& connection : connections_)
        if (connection.stage == Connection::Stage::offered && connection.path == path.id &&
            connection.message.vi == header.message)
            withdraw(connection);
    return FrameVerdict::taken;  // none: it was accepted or rejected meanwhile
}

}  // namespace via::engine
