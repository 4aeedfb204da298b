// Small payloads are written into the descriptor instead of their address.
#include "lab/design/parts.hpp"

namespace via::lab::design {
namespace {

class Inside final : public Payload {
public:
    Inside(const Costs& costs, const Numbers& numbers)
        : most_(numbers.pio),
          extra_((numbers.pio + 3) / 4 - costs.segment_words),
          csqc_(numbers.csqc) {}
    bool inside(std::int64_t length) const override { return length <= most_; }
    bool copied() const override { return true; }
    /// What the payload takes more than the address in whose place it stands.
    std::int64_t nic_memory(const Load&) const override {
        return extra_ > 0 ? csqc_ * extra_ * 4 : 0;
    }

private:
    std::int64_t most_;
    std::int64_t extra_;
    std::int64_t csqc_;
};

}  // namespace

std::unique_ptr<Payload> make_pio(const Costs& costs, const Numbers& numbers, const Load&) {
    return std::make_unique<Inside>(costs, numbers);
}

}  // namespace via::lab::design
