#include "lab/adapter.hpp"

#include <algorithm>
#include <utility>

namespace via::lab {

Adapter::Adapter(Schedule& schedule, Ledger& ledger, const Costs& costs, Design& design,
                 Network& network, Resource& bus, const Without& without, std::uint64_t seed,
                 Events events)
    : schedule_(schedule),
      costs_(costs),
      design_(design),
      network_(network),
      without_(without),
      events_(std::move(events)),
      node_(network.join([this](const Packet& packet) {
          wake();
          arrived_.push_back(packet);
      })),
      firmware_(schedule, ledger, named(node_, "firmware")),
      rhs_(schedule, ledger, named(node_, "RHS engine")),
      send_fifo_(schedule, without.fifo_end ? std::int64_t{1} << 40 : costs.send_fifo),
      receive_fifo_(schedule, costs.receive_fifo),
      lhs_(schedule, ledger, costs, bus, named(node_, "LHS engine")),
      dynamic_(design.dynamic()),
      random_(seed) {
    schedule_.spawn(run());
}

/// Housekeeping is done in rounds that have nothing else to do, or when the host is to be asked for
/// descriptors. A round that finds nothing makes no tasks but the doorbell's: idle firmware makes
/// up for many.
Task<> Adapter::run() {
    for (;;) {
        const std::uint64_t changes = changes_;
        const Time begin = schedule_.now();
        std::optional<ViId> rung;
        if (!sending_ && (own_.empty() ? again_.empty() : own_went_last_)) {
            rung = co_await design_.doorbell->look(*this);
            own_went_last_ = false;
        }
        if (sending_ || rung || !own_.empty() || !again_.empty()) co_await send_step(rung);
        bool ready = true;
        if (entering_) ready = co_await end_packet();
        if (ready) co_await look_for_work("look for packets");
        if (ready && !arrived_.empty() && !leaving_is_next()) co_await receive_step();
        const bool idle = !sending_ && !entering_ && arrived_.empty() && own_.empty();
        if (idle || refill_) co_await look_for_work("housekeeping");
        if (refill_) co_await raise_refill();
        if (!may_park(changes)) continue;
        round_ = schedule_.now() - begin;
        co_await Park{*this};
    }
}

/// The round that ends found nothing, and neither would the next ones.
bool Adapter::may_park(std::uint64_t changes) const {
    const bool nothing_to_send =
        sending_ ? sending_->blocked : sends_.on_nic.empty() && own_.empty() && again_.empty();
    return changes == changes_ && rings_ == 0 && !making_up_ && !without_.parking &&
           nothing_to_send && !entering_ && !refill_ && arrived_.empty();
}

/// Before something changes that the firmware looks at. After a long time its place in the loop is
/// drawn.
void Adapter::wake() {
    if (parked_) {
        constexpr std::int64_t rounds = 256;
        behind_ = schedule_.now() - parked_at_;
        if (behind_.ns > rounds * round_.ns)
            behind_ = Duration{round_.ns + static_cast<std::int64_t>(random_.below(
                                               static_cast<std::uint64_t>(round_.ns + 1)))};
        making_up_ = true;
        std::exchange(parked_, {}).resume();
        making_up_ = false;
        VIA_ASSERT(behind_ == Duration{});
    }
    ++changes_;
}

bool Adapter::Look::await_ready() {
    const bool over = adapter.making_up_ && use.span.ns != 0 && adapter.behind_ >= use.span;
    const Duration made_up = over ? use.span : std::min(adapter.behind_, use.span);
    adapter.behind_.ns -= made_up.ns;
    use.span.ns -= made_up.ns;
    return over;
}

Resource::Use Adapter::spend(Duration span, const Work& work) {
    const std::int64_t part = span.ns * costs_.firmware_jitter / 100;
    const auto more =
        static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(2 * part + 1)));
    return firmware_.use(Duration{span.ns - part + more}, work);
}

Resource::Use Adapter::step(std::int64_t words, const char* what, MessageId message) {
    ++changes_;  // a round with work in it is no measure of idle ones
    const Duration span{costs_.firmware_step + words * costs_.firmware_word};
    return spend(span, {Share::firmware, what, message});
}

Adapter::Look Adapter::look(Duration span, const char* what, MessageId message) {
    return {*this, spend(span, {Share::firmware, what, message, true})};
}

Adapter::Look Adapter::look_for_work(const char* what) {
    return look(Duration{costs_.firmware_step + costs_.words_look * costs_.firmware_word}, what);
}

Adapter::Look Adapter::look_at_dma(const char* what, MessageId message) {
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

namespace {

/// A read that nobody waits for: what is written to the host meanwhile overtakes it, so it is in no
/// engine's order. Its few bytes on the bus are not counted.
Task<> read_beside(Schedule& schedule, Duration latency, std::function<void()> landed) {
    co_await schedule.sleep(latency);
    landed();
}

}  // namespace

void Adapter::fetch_ahead(std::function<void()> landed) {
    schedule_.spawn(read_beside(schedule_, Duration{costs_.dma_start_to_nic}, std::move(landed)));
}

Task<> Adapter::deliver(std::int64_t bytes, const char* what, MessageId message,
                        std::function<void()> landed) {
    co_await step(costs_.words_status, what, message);
    lhs_.push({true, bytes, Share::completion, what, message, nullptr, std::move(landed)});
}

Task<> Adapter::translate(std::int64_t address, MessageId message) {
    co_await design_.translation->on_nic(*this, address, message);
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

Task<> Adapter::raise_refill() {
    const auto [receive, vi] = *refill_;
    refill_.reset();
    co_await step(costs_.words_start_rhs, "raise the refill interrupt");
    ++counts_.refill_interrupts;
    events_.refill(receive, vi);
}

/// Below the watermark the host has to be asked for more; without one, when nothing is left.
void Adapter::look_at(Queue& queue, bool receive, ViId vi) {
    const auto left = static_cast<std::int64_t>(queue.on_nic.size()) + queue.coming;
    const bool low = left == 0 || left < design_.descriptors->watermark();
    if (!low || !queue.more_in_host || queue.refilling || refill_ || without_.refills) return;
    queue.refilling = true;
    refill_ = {receive, vi};
}

}  // namespace via::lab
