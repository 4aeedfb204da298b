// D1: a doorbell for each VI in the NIC's memory, rung by the program itself; the firmware polls
// them, one after the other. With one slot a program waits until its last ring was seen; with more
// they are a small circular buffer.
#include <algorithm>
#include <vector>

#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"
#include "lab/host.hpp"

namespace via::lab::design {
namespace {

class PolledDoorbells final : public Doorbell {
public:
    PolledDoorbells(const Costs& costs, const Numbers& numbers, const Load& load)
        : page_(costs.page),
          slots_(numbers.slots),
          pairs_(numbers.pairs),
          rung_(static_cast<std::size_t>(load.vis)) {}
    bool in_kernel() const override { return false; }
    Task<> ring(Host& host, ViId vi, MessageId message) override {
        while (rung_[vi] == slots_) co_await host.read_word("doorbell not seen yet", message);
        co_await host.write_words(1, "ring the doorbell", message);
        ++rung_[vi];
    }
    Task<std::optional<ViId>> look(Adapter& adapter) override {
        for (std::size_t n = 0; n < rung_.size(); ++n) {
            next_ = (next_ + 1) % rung_.size();
            co_await adapter.look(Duration{adapter.costs().doorbell_poll}, "poll a doorbell");
            if (rung_[next_] == 0) continue;
            --rung_[next_];
            co_return static_cast<ViId>(next_);
        }
        co_return std::nullopt;
    }
    /// Doorbells of a process share no page with those of another; here there is one process.
    std::int64_t nic_memory(const Load& load) const override {
        const std::int64_t filled = (load.vis * slots_ * 4 + page_ - 1) / page_;
        return std::max(filled, (load.vis + pairs_ - 1) / pairs_) * page_;
    }

private:
    std::int64_t page_;
    std::int64_t slots_;
    std::int64_t pairs_;
    std::vector<std::int64_t> rung_;
    std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Doorbell> make_d1(const Costs& costs, const Numbers& numbers, const Load& load) {
    return std::make_unique<PolledDoorbells>(costs, numbers, load);
}

}  // namespace via::lab::design
