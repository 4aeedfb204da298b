#include "lab/adapter.hpp"

#include <utility>

namespace via::lab {
namespace {

std::string named(NodeId node, const char* what) {
    return "host " + std::to_string(node) + " " + what;
}

}  // namespace

Adapter::Adapter(Schedule& schedule, Ledger& ledger, const Costs& costs, Design& design,
                 Network& network, Resource& bus, const Without& without, std::uint64_t seed,
                 Events events)
    : schedule_(schedule),
      costs_(costs),
      design_(design),
      network_(network),
      without_(without),
      events_(std::move(events)),
      node_(network.join([this](const Packet& packet) { arrived_.push_back(packet); })),
      firmware_(schedule, ledger, named(node_, "firmware")),
      rhs_(schedule, ledger, named(node_, "RHS engine")),
      send_fifo_(schedule, without.fifo_end ? std::int64_t{1} << 40 : costs.send_fifo),
      receive_fifo_(schedule, costs.receive_fifo),
      lhs_(schedule, ledger, costs, bus, named(node_, "LHS engine")),
      random_(seed) {
    schedule_.spawn(run());
}

Task<> Adapter::run() {
    for (;;) {
        co_await send_step();
        co_await receive_step();
        co_await housekeeping();
    }
}

Resource::Use Adapter::spend(Duration span, const Work& work) {
    const std::int64_t part = span.ns * costs_.firmware_jitter / 100;
    const auto more =
        static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(2 * part + 1)));
    return firmware_.use(Duration{span.ns - part + more}, work);
}

Resource::Use Adapter::step(std::int64_t words, const char* what, MessageId message) {
    const Duration span{costs_.firmware_step + words * costs_.firmware_word};
    return spend(span, {Share::firmware, what, message});
}

Resource::Use Adapter::look(Duration span, const char* what, MessageId message) {
    return spend(span, {Share::firmware, what, message, true});
}

Resource::Use Adapter::look_for_work(const char* what) {
    return look(Duration{costs_.firmware_step + costs_.words_look * costs_.firmware_word}, what);
}

Resource::Use Adapter::look_at_dma(const char* what, MessageId message) {
    return look(Duration{costs_.firmware_step + costs_.words_look_dma * costs_.firmware_word}, what,
                message);
}

Task<> Adapter::fetch(std::int64_t bytes, Share share, const char* what, MessageId message) {
    const auto transfer = std::make_shared<Transfer>(schedule_);
    co_await step(costs_.words_start_lhs_send, "start a fetch", message);
    lhs_.push({false, bytes, share, what, message, nullptr, [transfer] { transfer->end(); }});
    do {
        co_await look_at_dma("look whether the fetch is done", no_message);
    } while (!transfer->done);
}

Task<> Adapter::deliver(std::int64_t bytes, const char* what, MessageId message,
                        std::function<void()> landed) {
    co_await step(costs_.words_status, what, message);
    lhs_.push({true, bytes, Share::completion, what, message, nullptr, std::move(landed)});
}

/// Time to know where the page of that address lies, once per page.
Task<> Adapter::locate(std::int64_t address, std::int64_t& page, MessageId message) {
    if (address / costs_.page == page) co_return;
    const bool another = page >= 0;
    page = address / costs_.page;
    if (another && design_.translation->piece_per_page())
        co_await step(costs_.words_take_segment, "read the next piece", message);
    co_await design_.translation->on_nic(*this, address, message);
}

/// In rounds that have nothing else to do, or when the host is to be asked for descriptors.
Task<> Adapter::housekeeping() {
    const bool idle = !sending_ && !entering_ && arrived_.empty();
    if (!idle && !refill_) co_return;
    co_await look_for_work("housekeeping");
    if (!refill_) co_return;
    const auto [receive, vi] = *refill_;
    refill_.reset();
    co_await step(costs_.words_start_rhs, "raise the refill interrupt");
    ++counts_.refill_interrupts;
    events_.refill(receive, vi);
}

/// Below the watermark the host has to be asked for more.
void Adapter::look_at(Queue& queue, bool receive, ViId vi) {
    const auto left = static_cast<std::int64_t>(queue.on_nic.size()) + queue.coming;
    const bool low = left < design_.descriptors->watermark();
    if (!low || !queue.more_in_host || queue.refilling || refill_ || without_.refills) return;
    queue.refilling = true;
    refill_ = {receive, vi};
}

}  // namespace via::lab
