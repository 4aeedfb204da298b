// As NICs of today have it: a send is written to the NIC by its program, as a whole, and the store
// is its doorbell; receives stay in the host's memory beside a record of how many there are, and
// the NIC, which holds `rqc` of a VI, fetches as many again when half of them are left.
#include <limits>
#include <map>

#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"
#include "lab/host.hpp"

namespace via::lab::design {
namespace {

class Record final : public Descriptors {
public:
    Record(const Costs& costs, const Numbers& numbers) : costs_(costs), numbers_(numbers) {}
    std::int64_t capacity(bool) const override { return std::numeric_limits<std::int64_t>::max(); }
    std::int64_t watermark() const override { return 0; }
    /// Of a receive nothing goes to the NIC: its descriptor and the record are plain memory, and
    /// making them is the library's time.
    Task<> post(Host& host, const PhysicalDescriptor& descriptor) override {
        if (descriptor.message == no_message) co_return;
        co_await host.write_descriptor(descriptor);
    }
    Task<> take(Adapter& adapter, const PhysicalDescriptor& descriptor, bool receive) override {
        const std::int64_t segment = descriptor.payload_inside ? 0 : costs_.words_take_segment;
        if (receive) co_await take_held(adapter, descriptor);
        co_await adapter.step(costs_.words_take_control + segment, "read the descriptor",
                              descriptor.message);
    }
    std::int64_t nic_memory(const Load& load) const override {
        return (load.vis * numbers_.rqc + numbers_.csqc) * bytes();
    }

private:
    /// Receive descriptors of a VI that the NIC has.
    struct Held {
        std::int64_t count;
        bool more_come = false;
    };
    Task<> take_held(Adapter& adapter, const PhysicalDescriptor& descriptor) {
        // Programs post receives before they connect, and the NIC fetches the first ones then.
        Held& held = held_.try_emplace(descriptor.vi, Held{numbers_.rqc}).first->second;
        while (held.count == 0)
            co_await adapter.look_at_dma("look for descriptors", descriptor.message);
        --held.count;
        const std::int64_t half = (numbers_.rqc + 1) / 2;
        if (held.count > numbers_.rqc - half || held.more_come) co_return;
        held.more_come = true;
        co_await adapter.step(costs_.words_start_lhs_send, "fetch receive descriptors");
        adapter.fetch_ahead([&held, half] {
            held.count += half;
            held.more_come = false;
        });
    }
    std::int64_t bytes() const { return (costs_.control_words + costs_.segment_words) * 4; }

    const Costs& costs_;
    Numbers numbers_;
    std::map<ViId, Held> held_;
};

}  // namespace

std::unique_ptr<Descriptors> make_record(const Costs& costs, const Numbers& numbers, const Load&) {
    return std::make_unique<Record>(costs, numbers);
}

}  // namespace via::lab::design
