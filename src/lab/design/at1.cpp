// AT1: tables in the host's memory, looked into by the host, in the kernel; the NIC gets physical
// addresses, one for each page.
#include "lab/design/parts.hpp"

namespace via::lab::design {
namespace {

class HostTranslation final : public Translation {
public:
    bool in_kernel() const override { return true; }
    bool piece_per_page() const override { return true; }
    Task<> on_nic(Adapter&, std::int64_t, MessageId) override { co_return; }
    std::int64_t nic_memory(const Load&) const override { return 0; }
};

}  // namespace

std::unique_ptr<Translation> make_at1(const Costs&, const Numbers&, const Load&) {
    return std::make_unique<HostTranslation>();
}

}  // namespace via::lab::design
