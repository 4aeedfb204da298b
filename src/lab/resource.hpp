// Something that serves one at a time, in the order of asking: a processor, a bus, an engine, a
// link. How long it is busy is known when it is asked, so its queue is a moment: when it is free.
#pragma once

#include <string>
#include <utility>

#include "lab/ledger.hpp"
#include "lab/schedule.hpp"

namespace via::lab {

class Resource {
public:
    Resource(Schedule& schedule, Ledger& ledger, std::string name)
        : schedule_(schedule), ledger_(ledger), id_(ledger.add_resource(std::move(name))) {}
    Resource(const Resource&) = delete;
    Resource& operator=(const Resource&) = delete;

    struct Use {
        Resource& resource;
        Duration span;
        Work work;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiting) {
            resource.schedule_.resume_at(resource.occupy(span, work), waiting);
        }
        void await_resume() const noexcept {}
    };
    /// Waits for its turn, and while it is served.
    Use use(Duration span, const Work& work) { return {*this, span, work}; }

    /// Its turn is taken, and the caller goes on; until when it is served.
    Time take(Duration span, const Work& work) { return occupy(span, work); }

    ResourceId id() const { return id_; }
    bool idle() const { return free_ <= schedule_.now(); }
    /// When all that was asked of it is done.
    Time free() const { return free_; }

private:
    Time occupy(Duration span, const Work& work) {
        VIA_ASSERT(span.ns >= 0);
        const Time start = free_ > schedule_.now() ? free_ : schedule_.now();
        free_ = start + span;
        ledger_.add(id_, work, start, free_);
        return free_;
    }

    Schedule& schedule_;
    Ledger& ledger_;
    ResourceId id_;
    Time free_{};
};

}  // namespace via::lab
