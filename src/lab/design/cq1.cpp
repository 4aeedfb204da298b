// CQ1: behind the status the NIC writes an entry into the completion queue, by one more DMA; the
// program looks at one place.
#include <utility>

#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"
#include "lab/host.hpp"

namespace via::lab::design {
namespace {

class Entries final : public Completions {
public:
    Task<> on_nic(Adapter& adapter, MessageId message, std::function<void()> landed) override {
        co_await adapter.deliver(8, "write the status", message, {});
        co_await adapter.deliver(8, "write the completion entry", message, std::move(landed));
    }
    Task<> on_host(Host& host, std::int64_t, MessageId message) override {
        co_await host.spend(Duration{host.costs().user_poll},
                            {Share::user, "look at the completion queue", message});
    }
    std::int64_t nic_memory(const Load&) const override { return 0; }
};

}  // namespace

std::unique_ptr<Completions> make_cq1(const Costs&, const Numbers&, const Load&) {
    return std::make_unique<Entries>();
}

}  // namespace via::lab::design
