#include "engine/requests.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "engine/connect_message.hpp"

namespace via::engine {

Requests::~Requests() {
    while (listeners_.pop_front() != nullptr) {
    }
}

void Requests::listen(Listener& listener) {
    listener.given.store(false);
    listeners_.push_back(listener);
}

void Requests::unlisten(Listener& listener) { List<Listener>::remove_if_linked(listener); }

// Listeners that stand ----------------------------------------------------------------------------

bool Requests::make_room(std::uint32_t requests) {
    const std::size_t wanted = std::size_t{backlog_room_} + requests;
    if (wanted + limits_.connections_waiting_max > 1U << index_bits) return false;
    paths_.payloads().make_room(wanted);
    while (requests_.size() < wanted) free_.push_back(add());
    return true;
}

void Requests::listen(Backlog& backlog) {
    backlog_room_ += backlog.room;
    backlogs_.push_back(backlog);
}

void Requests::unlisten(Backlog& backlog) {
    if (!static_cast<StandingLink&>(backlog).linked()) return;
    while (Connection* request = backlog.requests.front()) {
        leave_backlog(*request);
        paths_.refuse(request->path, request->message.vi, wire::RefuseCode::no_match);
        end(*request);
    }
    backlog_room_ -= backlog.room;
    backlog.watched = false;
    List<Backlog, StandingLink>::remove(backlog);
    News::forget(backlog);
    news_.progressed();  // whoever waits there
}

void Requests::unlisten_all() {
    while (Backlog* backlog = backlogs_.front()) unlisten(*backlog);
}

bool Requests::take(Backlog& backlog, Offer& offer) {
    Connection* request = backlog.requests.front();
    if (request == nullptr) return false;
    leave_backlog(*request);
    give(*request, offer);
    return true;
}

void Requests::enter(Connection& request, Backlog& backlog) {
    request.backlog = &backlog;
    backlog.requests.push_back(request);
    set_waiting(backlog, backlog.waiting.load(std::memory_order_relaxed) + 1);
    // Of several listeners each gets its turn.
    List<Backlog, StandingLink>::remove(backlog);
    backlogs_.push_back(backlog);
}

void Requests::leave_backlog(Connection& request) {
    Backlog& backlog = *request.backlog;
    request.backlog = nullptr;
    List<Connection>::remove(request);
    set_waiting(backlog, backlog.waiting.load(std::memory_order_relaxed) - 1);
}

void Requests::set_waiting(Backlog& backlog, std::uint32_t waiting) {
    VIA_ASSERT(waiting <= backlog.room);
    backlog.waiting.store(waiting, std::memory_order_release);
    if (backlog.watched) news_.changed(backlog);
}

// Requests ----------------------------------------------------------------------------------------

Connection* Requests::find(std::uint64_t name) {
    const auto index = static_cast<std::uint32_t>(name & ((1U << index_bits) - 1));
    if (index >= requests_.size()) return nullptr;
    Connection& request = requests_[index];
    return request.stage != Connection::Stage::free && request.generation == name >> index_bits
               ? &request
               : nullptr;
}

Connection& Requests::add() {
    Connection& slot = requests_.emplace_back();
    slot.index = static_cast<std::uint32_t>(requests_.size() - 1);
    return slot;
}

Connection* Requests::new_request() {
    if (Connection* slot = free_.pop_front()) return slot;
    if (requests_.size() < std::size_t{backlog_room_} + limits_.connections_waiting_max)
        return &add();
    const auto given_up = std::ranges::find(requests_, Connection::Stage::told, &Connection::stage);
    return given_up == requests_.end() ? nullptr : &*given_up;
}

void Requests::told(Connection& request) {
    request.stage = Connection::Stage::told;
    uncount(request);  // whoever needs its place has it
}

void Requests::end(Connection& request) {
    uncount(request);
    request.stage = Connection::Stage::free;
    free_.push_back(request);
}

void Requests::uncount(Connection& request) {
    if (std::exchange(request.counted, false)) paths_.request_ended(request.peer);
}

/// It is the program's from here on.
void Requests::give(Connection& request, Offer& offer) {
    request.peer = paths_.request_came(paths_[request.path]);
    request.counted = true;
    offer.connection = (std::uint64_t{request.generation} << index_bits) | request.index;
    offer.path = request.path;
    offer.remote_host = request.host;
    offer.remote =
        discriminator_of(request.message.local_discriminator, request.message.local_length);
    offer.attributes = attributes_of(request.message);
    offer.data = request.data;
}

FrameVerdict Requests::on_request(Path& path, const wire::Header& header, const std::byte* payload,
                                  std::size_t length) {
    wire::ConnectMessage message;
    if (header.flags != 0 || !read_message(payload, length, message))
        return refusals_.hostile("a connection request that makes no sense");
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
    const bool is_heard = listener != nullptr ? paths_.may_have_requests(path) : backlog != nullptr;
    Connection* slot = is_heard ? new_request() : nullptr;
    if (slot == nullptr) {
        paths_.refuse(path.id, message.vi, wire::RefuseCode::no_match);
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
        give(*slot, *listener);
        listener->given.store(true, std::memory_order_release);
    } else {
        enter(*slot, *backlog);
    }
    news_.progressed();
    return FrameVerdict::taken;
}

/// The requester has given up, or its path went.
void Requests::withdraw(Connection& request) {
    if (request.backlog == nullptr) {
        request.stage = Connection::Stage::withdrawn;  // the program has it
        return;
    }
    leave_backlog(request);
    end(request);
}

void Requests::withdraw_all(PathId path) {
    for (Connection& request : requests_)
        if (request.stage == Connection::Stage::offered && request.path == path) withdraw(request);
}

FrameVerdict Requests::on_withdraw(const Path& path, const wire::Header& header) {
    for (Connection& request : requests_)
        if (request.stage == Connection::Stage::offered && request.path == path.id &&
            request.message.vi == header.message)
            withdraw(request);
    return FrameVerdict::taken;  // none: it was accepted or rejected meanwhile
}

}  // namespace via::engine
