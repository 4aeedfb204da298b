#include "device/datagram/paths.hpp"

#include <span>

namespace via::device::datagram {

Paths::Paths(Port& port, const DatagramOptions& options, Totals& totals)
    : port_(port),
      totals_(totals),
      instance_(options.instance),
      identifier_key_(options.identifier_key),
      patience_(options.silence),
      shares_(port, options.paths_max, options.early_copies_max, options.tables_max) {}

Path* Paths::find(std::uint64_t instance, const HostAddress& peer, bool asked_by_us) const {
    const auto found = by_instance_.find(whom(instance, peer, asked_by_us));
    return found == by_instance_.end() ? nullptr : at(found->second);
}

Path* Paths::by_theirs(std::uint64_t theirs, const HostAddress& peer) const {
    const auto found = by_theirs_.find({peer, theirs});
    return found == by_theirs_.end() ? nullptr : at(found->second);
}

std::uint64_t Paths::new_identifier() {
    for (;;) {
        const std::uint64_t number = ++identifiers_made_;
        const std::uint64_t identifier =
            siphash(identifier_key_, std::as_bytes(std::span(&number, 1)));
        if (identifier != 0 && identifiers_.find(identifier) == IdentifierTable::none)
            return identifier;
    }
}

Path* Paths::make(std::uint64_t instance, const HostAddress& peer, bool asked_by_us) {
    Share* share = shares_.add_path(peer, asked_by_us);
    if (share == nullptr) return nullptr;
    if (free_ids_.empty()) {
        free_ids_.push_back(static_cast<PathId>(paths_.size()));
        paths_.emplace_back();
    }
    const PathId id = free_ids_.back();
    free_ids_.pop_back();
    paths_[id] = std::make_unique<Path>();
    Path& path = *paths_[id];
    path.id = id;
    path.instance = instance;
    path.peer = peer;
    path.share = share;
    path.asked_by_us = asked_by_us;
    path.ours = new_identifier();
    identifiers_.add(path.ours, id);
    by_instance_.insert_or_assign(whom(instance, peer, asked_by_us), id);
    return &path;
}

Path* Paths::make_rail(Path& first, const HostAddress& peer) {
    if (first.rails.full()) return nullptr;
    Path* const rail = make(first.instance, peer, first.asked_by_us);
    if (rail == nullptr) return nullptr;
    constexpr unsigned number_bits = 56;
    rail->first = &first;
    rail->rail_bits = std::uint64_t{first.rails.count()} << number_bits;
    rail->attempt = first.theirs;
    first.rails.add(*rail);
    return rail;
}

void Paths::come_up(Path& path) {
    path.made = ++totals_.paths_made;
    by_theirs_.insert_or_assign(Whom{path.peer, path.theirs}, path.id);
}

void Paths::end(const Path& path) {
    identifiers_.remove(path.ours);
    port_.forget(path.ours);
    by_instance_.erase(whom(path.instance, path.peer, path.asked_by_us));
    // A peer may give several paths one identifier: its loss.
    const auto found = by_theirs_.find({path.peer, path.theirs});
    if (found != by_theirs_.end() && found->second == path.id) by_theirs_.erase(found);
    deadlines_.remove(path.id);
}

void Paths::free(Path& path) {
    for (Path* rail : path.rails)
        if (rail != &path) free_one(*rail);
    free_one(path);
}

void Paths::free_one(Path& path) {
    const PathId id = path.id;
    shares_.narrow(*path.share, path.tables);
    shares_.remove_path(*path.share);
    paths_[id].reset();
    free_ids_.push_back(id);
}

Path* Paths::least_needed(const HostAddress& newcomer) const {
    Path* least = nullptr;
    totals_.paths_looked_at += paths_.size();
    for_each([&](Path& path) {
        if (path.stage != Path::Stage::up || path.asked_by_us || path.carried ||
            path.is_rail_of_another())
            return;
        if (least == nullptr || path.share->paths > least->share->paths ||
            (path.share->paths == least->share->paths && path.made < least->made))
            least = &path;
    });
    // Who has as many gains nothing by it: nobody's paths take turns.
    const bool gains = least != nullptr && least->share->paths > shares_.paths_of(newcomer) + 1;
    return gains ? least : nullptr;
}

bool Paths::widen(Path& path, std::size_t bytes) {
    if (!shares_.widen(*path.share, bytes)) return false;
    path.tables += bytes;
    return true;
}

}  // namespace via::device::datagram
