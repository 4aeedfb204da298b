// A bit for each VI: a program sets its own, the firmware reads 32 at once. The NIC has to set bits
// by itself where several programs share a word.
#include <algorithm>
#include <vector>

#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"
#include "lab/host.hpp"

namespace via::lab::design {
namespace {

constexpr std::size_t bits = 32;

class Bitmap final : public Doorbell {
public:
    explicit Bitmap(const Load& load) : rung_(static_cast<std::size_t>(load.vis)) {}
    bool in_kernel() const override { return false; }
    Task<> ring(Host& host, ViId vi, MessageId message) override {
        co_await host.write_words(1, "set the bit", message);
        ++rung_[vi];
    }
    Task<std::optional<ViId>> look(Adapter& adapter) override {
        const Costs& costs = adapter.costs();
        const std::size_t words = (rung_.size() + bits - 1) / bits;
        for (std::size_t n = 0; n < words; ++n) {
            word_ = (word_ + 1) % words;
            co_await adapter.look(Duration{costs.firmware_step + costs.firmware_word},
                                  "read a word of bits");
            const std::size_t end = std::min(rung_.size(), (word_ + 1) * bits);
            for (std::size_t vi = word_ * bits; vi < end; ++vi) {
                if (rung_[vi] == 0) continue;
                --rung_[vi];
                co_return static_cast<ViId>(vi);
            }
        }
        co_return std::nullopt;
    }
    std::int64_t nic_memory(const Load& load) const override { return (load.vis + 31) / 32 * 4; }

private:
    std::vector<std::int64_t> rung_;  ///< descriptors behind a bit that is set
    std::size_t word_ = 0;
};

}  // namespace

std::unique_ptr<Doorbell> make_bitmap(const Costs&, const Numbers&, const Load& load) {
    return std::make_unique<Bitmap>(load);
}

}  // namespace via::lab::design
