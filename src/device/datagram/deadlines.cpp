#include "device/datagram/deadlines.hpp"

namespace via::device::datagram {

void Deadlines::put(std::size_t at, const Entry& entry) {
    heap_[at] = entry;
    places_[entry.id] = at;
}

void Deadlines::up(std::size_t at, const Entry& entry) {
    while (at != 0 && entry.moment < heap_[(at - 1) / 2].moment) {
        put(at, heap_[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(at, entry);
}

void Deadlines::down(std::size_t at, const Entry& entry) {
    for (std::size_t child; (child = 2 * at + 1) < heap_.size(); at = child) {
        if (child + 1 < heap_.size() && heap_[child + 1].moment < heap_[child].moment) ++child;
        if (entry.moment <= heap_[child].moment) break;
        put(at, heap_[child]);
    }
    put(at, entry);
}

void Deadlines::at_latest(Id id, Time moment) {
    if (moment.is_never()) return;
    if (id >= places_.size()) places_.resize(id + 1, nowhere);
    if (places_[id] == nowhere) {
        heap_.push_back({});
        up(heap_.size() - 1, {moment, id});
    } else if (moment < heap_[places_[id]].moment) {
        up(places_[id], {moment, id});
    }
}

void Deadlines::erase(std::size_t at) {
    places_[heap_[at].id] = nowhere;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (at == heap_.size()) return;
    if (at != 0 && last.moment < heap_[(at - 1) / 2].moment) {
        up(at, last);
    } else {
        down(at, last);
    }
}

bool Deadlines::take_due(Time now, Id& id) {
    if (next() > now || heap_.empty()) return false;
    id = heap_.front().id;
    erase(0);
    return true;
}

void Deadlines::remove(Id id) {
    if (id < places_.size() && places_[id] != nowhere) erase(places_[id]);
}

}  // namespace via::device::datagram
