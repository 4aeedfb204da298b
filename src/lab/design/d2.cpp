// D2: one central queue for all VIs, written by the kernel; the firmware looks at its tail alone.
#include <deque>

#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"
#include "lab/host.hpp"

namespace via::lab::design {
namespace {

class CentralQueue final : public Doorbell {
public:
    bool in_kernel() const override { return true; }
    /// The tail is advanced with the descriptor: its time is in the driver's.
    Task<> ring(Host&, ViId vi, MessageId) override {
        queue_.push_back(vi);
        co_return;
    }
    Task<std::optional<ViId>> look(Adapter& adapter) override {
        co_await adapter.look_for_work("look at the queue's tail");
        if (queue_.empty()) co_return std::nullopt;
        const ViId vi = queue_.front();
        queue_.pop_front();
        co_return vi;
    }
    std::int64_t nic_memory(const Load&) const override { return 8; }

private:
    std::deque<ViId> queue_;
};

}  // namespace

std::unique_ptr<Doorbell> make_d2(const Costs&, const Numbers&, const Load&) {
    return std::make_unique<CentralQueue>();
}

}  // namespace via::lab::design
