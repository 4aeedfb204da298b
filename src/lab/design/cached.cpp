// Descriptors are written into the NIC's memory when they are posted: sends into one cache for all
// VIs, receives into one for each.
#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"
#include "lab/host.hpp"

namespace via::lab::design {
namespace {

class Cached final : public Descriptors {
public:
    Cached(const Costs& costs, const Numbers& numbers) : costs_(costs), numbers_(numbers) {}
    std::int64_t capacity(bool receive) const override {
        return receive ? numbers_.rqc : numbers_.csqc;
    }
    std::int64_t watermark() const override { return numbers_.watermark; }
    Task<> post(Host& host, const PhysicalDescriptor& descriptor) override {
        return host.write_descriptor(descriptor);
    }
    Task<> take(Adapter& adapter, const PhysicalDescriptor& descriptor, bool) override {
        const std::int64_t segment = descriptor.payload_inside ? 0 : costs_.words_take_segment;
        co_await adapter.step(costs_.words_take_control + segment, "read the descriptor",
                              descriptor.message);
    }
    std::int64_t nic_memory(const Load& load) const override {
        const std::int64_t bytes = (costs_.control_words + costs_.segment_words) * 4;
        return (load.vis * numbers_.rqc + numbers_.csqc) * bytes;
    }

private:
    const Costs& costs_;
    Numbers numbers_;
};

}  // namespace

std::unique_ptr<Descriptors> make_cached(const Costs& costs, const Numbers& numbers, const Load&) {
    return std::make_unique<Cached>(costs, numbers);
}

}  // namespace via::lab::design
