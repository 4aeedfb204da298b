// A small payload lies behind its descriptor in the host's memory, and is fetched with it by one
// DMA; it is sent from where that put it.
#include "lab/design/parts.hpp"

namespace via::lab::design {
namespace {

class Behind final : public Payload {
public:
    explicit Behind(std::int64_t most) : most_(most) {}
    bool inside(std::int64_t length) const override { return length <= most_; }
    bool copied() const override { return false; }
    std::int64_t nic_memory(const Load&) const override { return 0; }

private:
    std::int64_t most_;
};

}  // namespace

std::unique_ptr<Payload> make_merged(const Costs&, const Numbers& numbers, const Load&) {
    return std::make_unique<Behind>(numbers.pio);
}

}  // namespace via::lab::design
