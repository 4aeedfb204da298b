// No descriptors: what is written to the NIC at the post is where the buffer lies and how long it
// is, and the NIC fetches nothing before the payload.
#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"
#include "lab/host.hpp"

namespace via::lab::design {
namespace {

class Token final : public Descriptors {
public:
    Token(const Costs& costs, const Numbers& numbers) : costs_(costs), numbers_(numbers) {}
    std::int64_t capacity(bool receive) const override {
        return receive ? numbers_.rqc : numbers_.csqc;
    }
    std::int64_t watermark() const override { return numbers_.watermark; }
    Task<> post(Host& host, const PhysicalDescriptor& descriptor) override {
        co_await host.write_words(costs_.segment_words, "name the buffer", descriptor.message);
    }
    Task<> take(Adapter& adapter, const PhysicalDescriptor& descriptor, bool) override {
        co_await adapter.step(costs_.words_take_segment, "read the token", descriptor.message);
    }
    std::int64_t nic_memory(const Load& load) const override {
        return (load.vis * numbers_.rqc + numbers_.csqc) * costs_.segment_words * 4;
    }

private:
    const Costs& costs_;
    Numbers numbers_;
};

}  // namespace

std::unique_ptr<Descriptors> make_token(const Costs& costs, const Numbers& numbers, const Load&) {
    return std::make_unique<Token>(costs, numbers);
}

}  // namespace via::lab::design
