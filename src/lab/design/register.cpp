// A doorbell register in hardware: every store to it goes into a queue of `slots` words, from which
// the NIC takes them without looking at any VI. When it is full, the store is done again.
#include <deque>

#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"
#include "lab/host.hpp"

namespace via::lab::design {
namespace {

class HardwareQueue final : public Doorbell {
public:
    explicit HardwareQueue(std::int64_t slots) : slots_(static_cast<std::size_t>(slots)) {}
    bool in_kernel() const override { return false; }
    Task<> ring(Host& host, ViId vi, MessageId message) override {
        do {
            co_await host.write_words(1, "store to the doorbell register", message);
        } while (queue_.size() >= slots_);
        queue_.push_back(vi);
    }
    Task<std::optional<ViId>> look(Adapter& adapter) override {
        co_await adapter.look_for_work("look at the register's queue");
        if (queue_.empty()) co_return std::nullopt;
        const ViId vi = queue_.front();
        queue_.pop_front();
        co_return vi;
    }
    /// The queue is no memory that VIA shares.
    std::int64_t nic_memory(const Load&) const override { return 0; }

private:
    std::size_t slots_;
    std::deque<ViId> queue_;
};

}  // namespace

std::unique_ptr<Doorbell> make_register(const Costs&, const Numbers& numbers, const Load&) {
    return std::make_unique<HardwareQueue>(numbers.slots);
}

}  // namespace via::lab::design
