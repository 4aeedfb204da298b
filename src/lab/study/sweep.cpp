#include "lab/study/sweep.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "lab/design/handle_cache.hpp"

namespace via::lab::study {
namespace {

constexpr std::uint64_t page_bytes = 4096;

/// A cache, and beside it the lines that it dropped last.
class VictimCache {
public:
    explicit VictimCache(const CacheShape& shape)
        : cache_(shape.entries, shape.line, shape.ways),
          most_(static_cast<std::size_t>(shape.victims)) {}
    bool use(Handle handle) {
        if (cache_.use(handle).hit) return true;
        const auto victim = std::ranges::find(victims_, cache_.line_of(handle));
        if (victim == victims_.end()) return false;
        victims_.erase(victim);
        fill(handle);
        return true;
    }
    void fill(Handle handle) {
        const auto dropped = cache_.fill(handle);
        if (!dropped) return;
        victims_.push_front(*dropped);
        if (victims_.size() > most_) victims_.pop_back();
    }
    bool known(Handle handle) const { return cache_.known(handle); }

private:
    design::HandleCache cache_;
    std::size_t most_;
    std::deque<Handle> victims_;
};

class Misses {
public:
    Misses(const Trace& trace, const CacheShape& shape, std::uint32_t per_host)
        : trace_(trace), per_host_(per_host) {
        const std::uint32_t hosts = (trace.processes + per_host - 1) / per_host;
        for (std::uint32_t n = 0; n < hosts; ++n) caches_.emplace_back(shape);
    }

    Missed all(std::uint32_t passes) {
        for (std::uint32_t pass = 0; pass < passes; ++pass) {
            for (const TraceEvent& event : trace_.events) {
                if (event.kind == TraceKind::receive)
                    receives_[{event.connection, event.process}].push_back(&event);
                if (event.kind >= TraceKind::send) message(event);
            }
        }
        return found_;
    }

private:
    void message(const TraceEvent& event) {
        const std::uint32_t peer = trace_.peer_of(event);
        const std::vector<TracePiece> there = at_peer(event, peer);
        if (event.process / per_host_ == peer / per_host_) return;
        const bool reads = event.kind == TraceKind::rdma_read;
        for (const TracePiece& piece : event.pieces) look_up(event.process, piece, reads);
        for (const TracePiece& piece : there) look_up(peer, piece, !reads);
    }
    /// As much of the peer's memory as the message touches.
    std::vector<TracePiece> at_peer(const TraceEvent& event, std::uint32_t peer) {
        if (event.kind != TraceKind::send) return {{event.remote, event.length()}};
        auto& waiting = receives_[{event.connection, peer}];
        if (waiting.empty()) return {};
        std::vector<TracePiece> pieces = waiting.front()->pieces;
        waiting.pop_front();
        std::uint64_t left = event.length();
        for (TracePiece& piece : pieces) {
            piece.length = std::min(piece.length, left);
            left -= piece.length;
        }
        return pieces;
    }
    void look_up(std::uint32_t process, const TracePiece& piece, bool arriving) {
        if (piece.length == 0) return;
        VictimCache& cache = caches_[process / per_host_];
        const std::uint64_t last = (piece.address + piece.length - 1) / page_bytes;
        for (std::uint64_t page = piece.address / page_bytes; page <= last; ++page) {
            const Handle handle{process, static_cast<std::int64_t>(page)};
            ++found_.lookups;
            if (cache.use(handle)) continue;
            ++(arriving ? found_.receive : found_.send);
            if (!cache.known(handle)) ++(arriving ? found_.receive_cold : found_.send_cold);
            cache.fill(handle);
        }
    }

    const Trace& trace_;
    std::uint32_t per_host_;
    std::vector<VictimCache> caches_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<const TraceEvent*>> receives_;
    Missed found_;
};

}  // namespace

Missed missed(const Trace& trace, const CacheShape& shape, std::uint32_t per_host,
              std::uint32_t passes) {
    return Misses(trace, shape, per_host).all(passes);
}

std::vector<CacheShape> table_of_shapes(std::int64_t entries_divided, std::int64_t lines_divided) {
    std::vector<CacheShape> shapes;
    for (const std::int64_t entries : {8192, 16384, 32768}) {
        for (const std::int64_t line : {8, 16, 64, 128}) {
            for (const std::int64_t ways : {2, 4, 8}) {
                const CacheShape shape{entries / entries_divided, line / lines_divided, ways};
                const bool is_one = shape.line > 0 && shape.entries >= shape.line * ways;
                if (is_one) shapes.push_back(shape);
            }
        }
    }
    return shapes;
}

}  // namespace via::lab::study
