// Descriptors stay in the host's memory, and the NIC fetches each by DMA when it needs it.
#include <limits>

#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"

namespace via::lab::design {
namespace {

class Fetched final : public Descriptors {
public:
    explicit Fetched(const Costs& costs) : costs_(costs) {}
    std::int64_t capacity(bool) const override { return std::numeric_limits<std::int64_t>::max(); }
    std::int64_t watermark() const override { return 0; }
    Task<> post(Host&, const PhysicalDescriptor&) override { co_return; }
    Task<> take(Adapter& adapter, const PhysicalDescriptor& descriptor, bool) override {
        const std::int64_t bytes = (costs_.control_words + costs_.segment_words) * 4;
        co_await adapter.fetch(bytes, Share::dma_start, "fetch the descriptor", descriptor.message);
        co_await adapter.step(costs_.words_take_control + costs_.words_take_segment,
                              "read the descriptor", descriptor.message);
    }
    std::int64_t nic_memory(const Load&) const override { return 0; }

private:
    const Costs& costs_;
};

}  // namespace

std::unique_ptr<Descriptors> make_fetched(const Costs& costs, const Numbers&, const Load&) {
    return std::make_unique<Fetched>(costs);
}

}  // namespace via::lab::design
