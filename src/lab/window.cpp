#include "lab/window.hpp"

#include <algorithm>
#include <utility>

namespace via::lab {
namespace {

constexpr std::int64_t word = 4;

}  // namespace

Window::Window(Schedule& schedule, Ledger& ledger, const Costs& costs, const Without& without,
               Resource& processor, Resource& bus, Network& network, NodeId node, Cards& cards)
    : schedule_(schedule),
      ledger_(ledger),
      costs_(costs),
      without_(without),
      processor_(processor),
      bus_(bus),
      network_(network),
      node_(node),
      card_(ledger.add_resource(named(node, "card"))),
      cards_(cards),
      combining_(schedule, costs.combining),
      streams_(schedule, costs.streams),
      burst_came_(schedule),
      answered_(schedule) {
    network_.open_window(node, [this](const Packet& packet) { take(packet); });
    if (cards_.size() <= node) cards_.resize(node + 1);
    cards_[node] = this;
    schedule_.spawn(bursts());
}

Resource::Use Window::bus(std::int64_t bytes, std::int64_t rate, const char* what,
                          MessageId message) {
    const Duration span{costs_.window_burst + time_of(bytes, rate).ns};
    return bus_.use(span, {Share::pio, what, message});
}

/// Of time in which the processor stood still for what others did: they say what that was.
void Window::account(Time begin, const char* what, MessageId message) {
    ledger_.add(processor_.id(), {Share::waiting, what, message}, begin, schedule_.now());
}

// The processor's side ----------------------------------------------------------------------------

/// A burst never crosses what is combined, nor a packet what the card gathers.
Task<> Window::store(NodeId to, Buffer where, MessageId message, std::function<void()> landed) {
    const std::int64_t most = without_.combining ? word : costs_.combine;
    const std::vector<Buffer> pieces = cut(where, most, most);
    for (std::size_t n = 0; n < pieces.size(); ++n) {
        const Buffer& piece = pieces[n];
        const bool last = n + 1 == pieces.size();
        co_await processor_.use(time_of(piece.length, costs_.fill),
                                {Share::pio, "fill a buffer of the processor", message});
        const Time begin = schedule_.now();
        co_await combining_.reserve(1);
        account(begin, "the processor's buffers are full", message);
        const std::int64_t end = piece.address + piece.length;
        ++under_way_;
        waiting_.push_back({to, piece.length, last || end % costs_.stream == 0, message,
                            last ? std::exchange(landed, nullptr) : std::function<void()>()});
        burst_came_.notify();
    }
    counts_.bytes_stored += where.length;
}

Task<> Window::barrier(MessageId message) {
    if (without_.barriers) co_return;
    const Time begin = schedule_.now();
    while (under_way_ > 0) co_await answered_.wait();
    account(begin, "barrier behind stores", message);
}

Task<> Window::load(NodeId from, std::int64_t bytes, MessageId message) {
    const Time begin = schedule_.now();
    for (std::int64_t done = 0; done < bytes; done += word) {
        bool there = false;
        co_await bus(word, costs_.bus_to_nic, "load from imported memory", message);
        co_await streams_.reserve(1);
        ++under_way_;
        Packet packet;
        packet.kind = PacketKind::load;
        packet.from = node_;
        packet.to = from;
        packet.message = message;
        packet.sequence = number([&there] { there = true; });
        schedule_.spawn(leave(packet));
        while (!there) co_await answered_.wait();
        ++counts_.loads;
    }
    account(begin, "load from imported memory", message);
}

// The card's side ---------------------------------------------------------------------------------

std::int64_t Window::number(std::function<void()> then) {
    landings_[next_] = std::move(then);
    return next_++;
}

/// From the processor's buffers to the card. What has no stream waits in front of the bus.
Task<> Window::bursts() {
    std::int64_t gathered = 0;
    std::int64_t of_packet = 0;
    for (;;) {
        while (waiting_.empty()) co_await burst_came_.wait();
        Burst burst = std::move(waiting_.front());
        waiting_.pop_front();
        if (of_packet == 0) co_await streams_.reserve(1);
        co_await bus(burst.bytes, costs_.bus_to_nic, "a burst of stores", burst.message);
        combining_.release(1);
        ++counts_.bursts;
        gathered += burst.bytes;
        ++of_packet;
        if (!burst.ends_packet) continue;
        Packet packet;
        packet.kind = PacketKind::store;
        packet.from = node_;
        packet.to = burst.to;
        packet.message = burst.message;
        packet.length = std::exchange(gathered, 0);
        packet.offset = std::exchange(of_packet, 0);
        packet.sequence = number(std::move(burst.landed));
        ++counts_.packets;
        schedule_.spawn(leave(packet));
    }
}

/// Through the card, by the table of imported pages, to the link.
Task<> Window::leave(Packet packet) {
    const Time begin = schedule_.now();
    co_await schedule_.sleep(Duration{costs_.card});
    ledger_.add(card_, {Share::firmware, "through the card", packet.message}, begin,
                schedule_.now());
    co_await network_.reserve(node_, packet);
    packet.tail = schedule_.now();
    network_.transmit(packet);
}

void Window::take(const Packet& packet) {
    if (packet.kind == PacketKind::answer) {
        network_.taken(packet);
        return end(packet);
    }
    schedule_.spawn(packet.kind == PacketKind::store ? land(packet) : serve(packet));
}

/// Until it is whole, and through the card by the table of exported pages.
Task<> Window::enter(const Packet& packet) {
    co_await schedule_.sleep(packet.tail - schedule_.now());
    const Time begin = schedule_.now();
    co_await schedule_.sleep(Duration{costs_.card});
    ledger_.add(card_, {Share::firmware, "through the card", packet.message}, begin,
                schedule_.now());
}

Task<> Window::land(Packet packet) {
    co_await enter(packet);
    co_await bus(packet.length, costs_.bus_to_host, "stores of another host", packet.message);
    network_.taken(packet);
    counts_.bytes_landed += packet.length;
    Window& sender = *cards_[packet.from];
    if (const auto& landed = sender.landings_[packet.sequence]) landed();
    Packet answer = packet;
    answer.kind = PacketKind::answer;
    std::swap(answer.from, answer.to);
    answer.length = 0;
    co_await leave(answer);
}

Task<> Window::serve(Packet packet) {
    co_await enter(packet);
    co_await bus(word, costs_.bus_to_nic, "a load of another host", packet.message);
    network_.taken(packet);
    Packet answer = packet;
    answer.kind = PacketKind::answer;
    std::swap(answer.from, answer.to);
    answer.length = word;
    answer.offset = 1;
    co_await leave(answer);
}

/// `offset`: how many bursts, or one load, it is the answer to.
void Window::end(const Packet& answer) {
    const auto found = landings_.find(answer.sequence);
    const bool load = answer.length > 0;
    if (load) found->second();
    landings_.erase(found);
    streams_.release(1);
    under_way_ -= answer.offset;
    answered_.notify();
}

}  // namespace via::lab
