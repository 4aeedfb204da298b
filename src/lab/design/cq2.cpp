// CQ2: no entries; the program looks at each work queue of the completion queue.
#include <utility>

#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"
#include "lab/host.hpp"

namespace via::lab::design {
namespace {

class PolledQueues final : public Completions {
public:
    Task<> on_nic(Adapter& adapter, MessageId message, std::function<void()> landed) override {
        co_await adapter.deliver(8, "write the status", message, std::move(landed));
    }
    Task<> on_host(Host& host, std::int64_t queues, MessageId message) override {
        for (std::int64_t n = 0; n < queues; ++n) {
            co_await host.spend(Duration{host.costs().user_poll},
                                {Share::user, "look at a work queue", message});
        }
    }
    std::int64_t nic_memory(const Load&) const override { return 0; }
};

}  // namespace

std::unique_ptr<Completions> make_cq2(const Costs&, const Numbers&, const Load&) {
    return std::make_unique<PolledQueues>();
}

}  // namespace via::lab::design
