// Descriptors stay in the host's memory, and the NIC fetches each by DMA when it needs it.
#include <limits>

#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"
#include "lab/host.hpp"

namespace via::lab::design {
namespace {

class Fetched final : public Descriptors {
public:
    explicit Fetched(const Costs& costs) : costs_(costs) {}
    std::int64_t capacity(bool) const override { return std::numeric_limits<std::int64_t>::max(); }
    std::int64_t watermark() const override { return 0; }
    /// A receive's token; a send's is the doorbell's affair.
    Task<> post(Host& host, const PhysicalDescriptor& descriptor) override {
        if (descriptor.message == no_message)
            co_await host.write_words(1, "name the descriptor", no_message);
    }
    Task<> take(Adapter& adapter, const PhysicalDescriptor& descriptor, bool) override {
        const bool inside = descriptor.payload_inside;
        const std::int64_t payload = inside ? descriptor.buffer.length : costs_.segment_words * 4;
        const MessageId message = descriptor.message;
        co_await adapter.translate(descriptor.place, message);
        co_await adapter.fetch(costs_.control_words * 4 + payload, Share::dma_start,
                               "fetch the descriptor", message);
        co_await adapter.step(costs_.words_take_control + (inside ? 0 : costs_.words_take_segment),
                              "read the descriptor", message);
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
