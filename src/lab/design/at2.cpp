// AT2: a table of all registered pages in the NIC's memory, looked into by the NIC: 4 bytes a page.
#include "lab/adapter.hpp"
#include "lab/design/parts.hpp"

namespace via::lab::design {
namespace {

class NicTable final : public Translation {
public:
    explicit NicTable(const Costs& costs) : page_(costs.page) {}
    bool in_kernel() const override { return false; }
    bool piece_per_page() const override { return false; }
    Task<> on_nic(Adapter& adapter, std::int64_t, MessageId message) override {
        ++adapter.counts().translations;
        co_await adapter.step(adapter.costs().words_translate, "look into the table", message);
    }
    std::int64_t nic_memory(const Load& load) const override {
        return (load.registered + page_ - 1) / page_ * 4;
    }

private:
    std::int64_t page_;
};

}  // namespace

std::unique_ptr<Translation> make_at2(const Costs& costs, const Numbers&, const Load&) {
    return std::make_unique<NicTable>(costs);
}

}  // namespace via::lab::design
