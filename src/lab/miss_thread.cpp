#include "lab/miss_thread.hpp"

#include <utility>

#include "lab/host.hpp"

namespace via::lab {

void MissThread::ask(MissingLine line) {
    asked_.push_back(std::move(line));
    if (std::exchange(running_, true)) return;
    host_.schedule().spawn(run());
}

/// Woken once for all that are there, and that come while it works.
Task<> MissThread::run() {
    const Costs& costs = host_.costs();
    co_await host_.schedule().sleep(Duration{costs.interrupt});
    co_await host_.spend(Duration{costs.kernel_post}, {Share::interrupt, "miss handler"});
    const auto most = static_cast<std::uint64_t>(2 * costs.miss_delay + 1);
    co_await host_.schedule().sleep(Duration{static_cast<std::int64_t>(random_.below(most))});
    while (!asked_.empty()) {
        const MissingLine line = std::move(asked_.front());
        asked_.pop_front();
        co_await serve(line);
    }
    running_ = false;
}

Task<> MissThread::serve(const MissingLine& line) {
    const Costs& costs = host_.costs();
    const Time begin = host_.schedule().now();
    const std::int64_t more = pin(line);
    host_.adapter().counts().pinned += static_cast<std::uint64_t>(more);
    co_await host_.spend(Duration{costs.miss_serve + more * costs.miss_pin},
                         {Share::translation, "look into the tables, pin"});
    constexpr std::int64_t tag_words = 4;
    co_await host_.write_words(line.entries + tag_words, "write the line", no_message);
    line.fill();
    AdapterCounts& counts = host_.adapter().counts();
    const std::int64_t span = (host_.schedule().now() - begin).ns;
    counts.serving_ns += span;
    counts.serving_most_ns = std::max(counts.serving_most_ns, span);
    co_await sweep(line);
}

/// How many pages of the line were not pinned; they are now. Buffers and processes have none.
std::int64_t MissThread::pin(const MissingLine& line) {
    if (line.kind != HandleKind::page) return 0;
    std::int64_t more = 0;
    for (std::int64_t n = 0; n < line.entries; ++n) {
        const Handle page{line.first.process, line.first.key + n};
        const auto found = pinned_.find(page);
        if (found == pinned_.end()) {
            pinned_[page] = order_.insert(order_.end(), page);
            ++more;
        } else {
            order_.splice(order_.end(), order_, found->second);
        }
    }
    return more;
}

/// Rarely, and only above the mark: what the NIC does not have any more is let go, down to it.
Task<> MissThread::sweep(const MissingLine& line) {
    const Costs& costs = host_.costs();
    const Time now = host_.schedule().now();
    const std::int64_t mark = host_.design().high_water;
    if (line.kind != HandleKind::page || (now - swept_).ns < costs.miss_sweep) co_return;
    swept_ = now;
    std::int64_t let_go = 0;
    for (auto at = order_.begin(); at != order_.end() && pinned() > mark;) {
        if (line.on_nic(*at)) {
            ++at;
            continue;
        }
        pinned_.erase(*at);
        at = order_.erase(at);
        ++let_go;
    }
    host_.adapter().counts().unpinned += static_cast<std::uint64_t>(let_go);
    if (let_go == 0) co_return;
    co_await host_.spend(Duration{let_go * costs.miss_unpin}, {Share::translation, "unpin"});
}

}  // namespace via::lab
