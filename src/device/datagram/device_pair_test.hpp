// Two or more datagram devices on a network of virtual time, and engines that need no engine: they
// send what a test gives them, send again what is lost, and keep what they received.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/datagram/datagram_device.hpp"
#include "wire/frame.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram::test {

inline HostAddress address(std::uint8_t host, std::uint16_t port) {
    HostAddress address;
    address.length = 6;
    address.bytes = {
        10, 0, 0, host, static_cast<std::uint8_t>(port >> 8), static_cast<std::uint8_t>(port)};
    return address;
}
constexpr std::uint16_t host_port = 9741;

inline Discriminator named(const std::string& name) {
    Discriminator discriminator;
    discriminator.length = static_cast<std::uint16_t>(name.size());
    std::memcpy(discriminator.bytes.data(), name.data(), name.size());
    return discriminator;
}

struct Datagram {
    HostAddress from;
    HostAddress to;
    std::vector<std::byte> bytes;

    wire::PacketKind kind() const { return static_cast<wire::PacketKind>(bytes[5]); }
    /// As wire::print_packet(), of packets of connecting only the kind.
    std::string print() const {
        char text[1024];
        wire::print_packet(bytes, text, sizeof text);
        const std::string line = text;
        if (kind() == wire::PacketKind::data) return line;
        const bool proof =
            kind() == wire::PacketKind::hello && line.find(" cookie ") != std::string::npos;
        return line.substr(0, line.find(' ')) + (proof ? " with a cookie" : "");
    }
};

/// What becomes of a datagram: one delay for each copy that arrives.
using Fate = std::vector<Duration>;

class TestPort;

class Network {
public:
    Time now{};
    Duration delay = microseconds(10);
    /// Asked for each datagram; nothing: it takes `delay`.
    std::function<Fate(const Datagram&)> weather;
    /// What stands between a device and its port; nothing: the port itself does.
    std::function<std::unique_ptr<Port>(std::unique_ptr<Port>, const DatagramOptions&)> wrap;
    /// Who listens: port and instance, by host and name.
    std::map<std::pair<std::uint8_t, std::string>, std::pair<std::uint16_t, std::uint64_t>>
        listeners;
    std::vector<std::string> log;  ///< a line for each datagram sent: microseconds, hosts, packet
    std::size_t sent_by(std::uint8_t host) const {
        const std::string from = " " + std::to_string(host) + ">";
        return static_cast<std::size_t>(std::count_if(
            log.begin(), log.end(),
            [&](const std::string& line) { return line.find(from) != std::string::npos; }));
    }

    void attach(TestPort& port) { ports_.push_back(&port); }
    void detach(TestPort& port) { std::erase(ports_, &port); }
    void send(const Datagram& datagram);
    void deliver(Time arrival, const Datagram& datagram) {
        under_way_.emplace(std::pair{arrival, ++count_}, datagram);
    }
    Time next_arrival() const {
        return under_way_.empty() ? Time::never() : under_way_.begin()->first.first;
    }
    /// Hands over what arrives by now.
    void settle();

private:
    std::vector<TestPort*> ports_;
    std::map<std::pair<Time, std::uint64_t>, Datagram> under_way_;
    std::uint64_t count_ = 0;
};

class TestPort final : public Port {
public:
    TestPort(Network& network, std::uint8_t host, std::uint16_t data_port, std::uint64_t instance)
        : network_(network),
          nic_address_(address(host, host_port)),
          data_address_(address(host, data_port)),
          host_(host),
          instance_(instance) {
        network_.attach(*this);
    }
    ~TestPort() override {
        EXPECT_EQ(kept, 0U);
        network_.detach(*this);
    }

    std::uint32_t longest = 1472;
    std::uint32_t room = 128 * 1024;
    std::uint32_t keep_max = 512;
    std::uint32_t kept = 0;
    std::size_t send_max = ~std::size_t{0};  ///< datagrams that one send() takes
    bool takes_host_port = true;
    std::vector<NetworkError> network_errors;
    std::vector<std::pair<HostAddress, Time>> doubts;
    std::vector<Datagram> arrived;
    std::size_t looks = 0;    ///< calls of receive()
    std::size_t lookups = 0;  ///< calls of find_listener()

    const HostAddress& nic_address() const override { return nic_address_; }
    const HostAddress& data_address() const override { return data_address_; }
    std::uint32_t datagram_max() const override { return longest; }
    std::uint32_t receive_room() const override { return room; }
    Time now() override { return network_.now; }

    std::size_t send(std::span<const Outgoing> datagrams) override {
        std::size_t taken = 0;
        for (const Outgoing& out : datagrams) {
            if (taken == send_max) break;
            ++taken;
            if (out.length > longest) {
                ADD_FAILURE() << "a datagram of " << out.length << " bytes";
                continue;
            }
            newest_[text(out.to)] = quoted_connection({out.bytes, out.length});
            network_.send({out.from_host_port ? nic_address_ : data_address_, out.to, out.copy()});
        }
        return taken;
    }
    void doubt(const HostAddress& to, Time newest) override { doubts.emplace_back(to, newest); }
    bool has_room() override { return send_max != 0; }

    std::size_t receive(std::span<Incoming> datagrams) override {
        network_.settle();
        ++looks;
        std::size_t count = 0;
        while (count < datagrams.size() && !arrived.empty()) {
            const Datagram datagram = arrived.front();
            arrived.erase(arrived.begin());
            const std::uint32_t buffer = ++buffers_;
            Buffer& at = here_[buffer];
            at.bytes = std::make_unique<std::byte[]>(datagram.bytes.size());
            at.lent = true;
            std::copy(datagram.bytes.begin(), datagram.bytes.end(), at.bytes.get());
            datagrams[count++] = {datagram.from, at.bytes.get(),
                                  static_cast<std::uint32_t>(datagram.bytes.size()), buffer,
                                  datagram.to == nic_address_};
        }
        return count;
    }
    void release() override {
        for (auto& [number, buffer] : here_) buffer.lent = false;
        sweep();
    }
    bool keep(std::uint32_t buffer) override {
        Buffer& here = here_.at(buffer);
        if (here.kept == 0 && kept == keep_max) return false;
        if (here.kept++ == 0) ++kept;
        return true;
    }
    void let_go(std::uint32_t buffer) override {
        ASSERT_GT(here_.at(buffer).kept, 0);
        if (--here_[buffer].kept == 0) --kept;
        sweep();
    }
    std::uint32_t keeps_left() const override { return keep_max - kept; }
    bool has_work() override {
        network_.settle();
        return !arrived.empty();
    }
    /// The network says so of the newest datagram that went there, and quotes it.
    void hint(NetworkErrorKind kind, const HostAddress& to, std::uint32_t length = 0) {
        network_errors.push_back({kind, to, length, newest_[text(to)]});
    }
    bool next_network_error(NetworkError& error) override {
        if (network_errors.empty()) return false;
        error = network_errors.front();
        network_errors.erase(network_errors.begin());
        return true;
    }

    Status listen(const Discriminator& discriminator) override {
        network_.listeners[{host_, text(discriminator)}] = {port_of(data_address_), instance_};
        return Status::success;
    }
    void unlisten(const Discriminator& discriminator) override {
        network_.listeners.erase({host_, text(discriminator)});
    }
    bool find_listener(const Discriminator& discriminator, std::uint16_t& data_port,
                       std::uint64_t& instance) override {
        ++lookups;
        const auto found = network_.listeners.find({host_, text(discriminator)});
        if (found == network_.listeners.end()) return false;
        std::tie(data_port, instance) = found->second;
        return true;
    }
    void service(Time /*now*/) override {}
    void arm(Sleep /*sleep*/) override {}
    int wait_handle() const override { return -1; }
    Time next_deadline() const override { return Time::never(); }

private:
    struct Buffer {
        std::unique_ptr<std::byte[]> bytes;  ///< freed when nobody holds it: sanitizers see misuse
        bool lent = false;
        int kept = 0;
    };
    static std::string text(const Discriminator& discriminator) {
        return {reinterpret_cast<const char*>(discriminator.bytes.data()), discriminator.length};
    }
    static std::string text(const HostAddress& to) {
        return {reinterpret_cast<const char*>(to.bytes.data()), to.length};
    }
    void sweep() {
        std::erase_if(
            here_, [](const auto& entry) { return !entry.second.lent && entry.second.kept == 0; });
    }

    Network& network_;
    HostAddress nic_address_;
    HostAddress data_address_;
    std::uint8_t host_;
    std::uint64_t instance_;
    std::map<std::uint32_t, Buffer> here_;
    std::uint32_t buffers_ = 0;
    std::map<std::string, std::uint64_t> newest_;  ///< identifiers, by where they went
};

inline void Network::send(const Datagram& datagram) {
    log.push_back(std::to_string(now.ns / 1000) + " " + std::to_string(datagram.from.bytes[3]) +
                  ">" + std::to_string(datagram.to.bytes[3]) + " " + datagram.print());
    const Fate fate = weather ? weather(datagram) : Fate{delay};
    for (const Duration wait : fate) deliver(now + wait, datagram);
}

inline void Network::settle() {
    while (next_arrival() <= now && !under_way_.empty()) {
        const Datagram datagram = under_way_.begin()->second;
        under_way_.erase(under_way_.begin());
        for (TestPort* port : ports_)
            if (port->data_address() == datagram.to ||
                (port->nic_address() == datagram.to && port->takes_host_port)) {
                port->arrived.push_back(datagram);
                break;
            }
    }
}

/// A device with what an engine would do.
class End {
public:
    End(Network& network, std::uint8_t host, std::uint64_t instance, std::uint16_t port = 40000)
        : network_(network), host_(host), data_port_(port) {
        open(instance);
    }
    /// Closes what is open; a process of another life begins.
    void open(std::uint64_t instance, std::uint32_t paths_max = 4096,
              std::size_t early_copies_max = 16 << 20, std::size_t tables_max = 64 << 20) {
        device.reset();
        auto owned = std::make_unique<TestPort>(network_, host_, data_port_, instance);
        port_ = owned.get();
        DatagramOptions options;
        options.instance = instance;
        options.cookie_key = {instance, 77};
        options.identifier_key = {instance, 99};
        options.paths_max = paths_max;
        options.early_copies_max = early_copies_max;
        options.tables_max = tables_max;
        std::unique_ptr<Port> port = std::move(owned);
        if (network_.wrap) port = network_.wrap(std::move(port), options);
        device = std::make_unique<DatagramDevice>(std::move(port), options);
        device->arm(Sleep::on_handle);  // what a test sends leaves at once
        events.clear();
        received.clear();
        several.clear();
        arrived.clear();
        lost.clear();
        outbox_.clear();
        frames_.clear();
        again_.clear();
        is_up = false;
    }

    std::unique_ptr<DatagramDevice> device;
    std::vector<PathEvent> events;
    std::vector<std::string> received;   ///< payloads, of all paths
    std::vector<std::uint32_t> several;  ///< frames that were handed up at once
    std::vector<std::uint32_t> arrived;  ///< numbers of frames that the peer has
    std::vector<std::uint32_t> lost;
    std::map<PathId, std::uint32_t> payload_max;
    static constexpr std::uint32_t header_length = wire::header_length_base;
    std::size_t frames_wanted = 16;  ///< of one look
    bool lends = false;              ///< payloads stay where they lie, if the device wants that
    std::deque<std::string> lent;    ///< those
    /// What the program does with a message, before the turn sends.
    std::function<void(const std::string&)> on_message;

    TestPort& port() { return *port_; }
    PathId path = 0;  ///< of the last up or resolved event
    bool is_up = false;
    std::size_t waiting() const { return outbox_.size(); }
    std::size_t under_way() const { return frames_.size(); }

    /// Sends it as soon as there is room; the sanctity of order is the test's to check.
    void send(const std::string& payload, bool must_arrive = true) {
        outbox_.push_back({payload, must_arrive});
        if (!in_turn_) push();
    }
    /// Lends it in pieces of `each` bytes, as one run. How many the device took at once; 0: none.
    std::uint32_t send_run(const std::string& payload, std::uint32_t each) {
        FrameSlot slot;
        slot.wanted = static_cast<std::uint32_t>(payload.size() / each);
        if (!device->reserve(path, header_length, each, slot)) return 0;
        lent.push_back(payload);
        *slot.reference = reinterpret_cast<const std::byte*>(lent.back().data());
        for (std::uint32_t n = 0; n < slot.count; ++n)
            wire::emit({.kind = wire::FrameKind::send}, slot.header + std::size_t{n} * slot.stride);
        note_run(slot.number, slot.count, each);
        return slot.count;
    }
    /// The test has emitted `count` frames of the last of `lent`, from `number` on.
    void note_run(std::uint32_t number, std::uint32_t count, std::uint32_t each) {
        for (std::uint32_t n = 0; n < count; ++n)
            frames_[number + n] = lent.back().substr(std::size_t{n} * each, each);
    }
    /// Hands to the device what it takes.
    void push() {
        if (!is_up) return;
        bool any = false;
        while (!again_.empty()) {
            const auto found = frames_.find(again_.front());
            if (found != frames_.end()) {
                FrameSlot slot;
                slot.again = true;
                slot.number = found->first;
                if (!emit(found->second, slot)) break;
                any = true;
            }
            again_.erase(again_.begin());
        }
        while (again_.empty() && !outbox_.empty()) {
            FrameSlot slot;
            slot.must_arrive = outbox_.front().must_arrive;
            if (!emit(outbox_.front().payload, slot)) break;
            if (slot.must_arrive) frames_[slot.number] = outbox_.front().payload;
            outbox_.erase(outbox_.begin());
            any = true;
        }
        if (!any) return;
        device->transmit(path);
        device->notify();
    }
    /// As Nic::turn.
    std::size_t turn() {
        in_turn_ = true;
        PathEvent event;
        while (device->next_event(event)) on_event(event);
        Reaped reaped[16];
        while (const std::size_t count = device->reap(reaped))
            for (std::size_t n = 0; n < count; ++n) on_reaped(reaped[n]);
        std::size_t all = 0;
        bool notify = false;
        for (;;) {
            Frame frames[16];
            const std::size_t count = device->receive(std::span(frames).first(frames_wanted));
            if (count == 0) break;
            std::size_t taken = 0;
            for (std::size_t n = 0; n < count; ++n) {
                on_frame(frames[n]);
                taken += frames[n].count;
            }
            if (device->release()) notify = true;
            all += count;
            if (taken < frames_wanted) break;
        }
        in_turn_ = false;
        push();
        if (notify) device->notify();
        return all;
    }

private:
    struct Waiting {
        std::string payload;
        bool must_arrive;
    };
    bool emit(const std::string& payload, FrameSlot& slot) {
        if (!device->reserve(path, header_length, static_cast<std::uint32_t>(payload.size()),
                             slot)) {
            device->set_waiting_for_room(path);
            return false;
        }
        wire::emit_whole_send(0, 0, slot.header);
        if (lends && slot.reference != nullptr) {
            lent.push_back(payload);
            *slot.reference = reinterpret_cast<const std::byte*>(lent.back().data());
            return true;
        }
        std::memcpy(slot.payload, payload.data(), payload.size());
        return true;
    }
    void on_event(const PathEvent& event) {
        events.push_back(event);
        if (event.payload_max != 0) payload_max[event.path] = event.payload_max;
        if (event.kind == PathEventKind::resolved || event.kind == PathEventKind::up) {
            path = event.path;
            is_up = true;
        }
        if (event.kind == PathEventKind::down && event.path == path) {
            is_up = false;
            frames_.clear();
            again_.clear();
        }
    }
    void on_reaped(const Reaped& reaped) {
        if (reaped.lost) {
            lost.push_back(reaped.number);
            again_.insert(std::upper_bound(again_.begin(), again_.end(), reaped.number),
                          reaped.number);  // the oldest first, as an engine
            return;
        }
        EXPECT_EQ(frames_.erase(reaped.number), 1U) << "frame " << reaped.number;
        arrived.push_back(reaped.number);
    }
    void on_frame(const Frame& frame) {
        const std::uint32_t header =  // of liars, less
            std::min(wire::header_length(std::to_integer<std::uint8_t>(frame.bytes[1])),
                     frame.length);
        several.push_back(frame.count);
        std::string payload(reinterpret_cast<const char*>(frame.bytes) + header,
                            frame.length - header);
        if (frame.payload_length != 0)
            payload.append(reinterpret_cast<const char*>(frame.payload), frame.payload_length);
        for (std::uint32_t n = 0;;) {
            received.push_back(payload);
            if (on_message) on_message(payload);
            if (++n >= frame.count) break;
            payload.assign(reinterpret_cast<const char*>(frame.payloads[n]), frame.payload_length);
        }
    }

    Network& network_;
    std::uint8_t host_;
    std::uint16_t data_port_;
    TestPort* port_ = nullptr;
    std::vector<Waiting> outbox_;
    std::map<std::uint32_t, std::string> frames_;  ///< under way
    std::vector<std::uint32_t> again_;
    bool in_turn_ = false;
};

/// Two hosts, and time that goes on to whatever comes next.
struct Scene {
    Scene() = default;
    ~Scene() { network.weather = nullptr; }  // it speaks of what the test had

    Network network;
    End a{network, 1, 1001};
    End b{network, 2, 1002};
    std::vector<End*> ends{&a, &b};

    /// What was sent since the last call, a line each.
    std::string transcript() {
        std::string text = "\n";
        for (const std::string& line : network.log) text += line + "\n";
        network.log.clear();
        return text;
    }
    void ask_b() { a.device->resolve({address(2, host_port), named("b")}, 7); }
    void meet() {
        b.device->listen(named("b"));
        ask_b();
        run(seconds(2), [&] { return a.is_up && b.is_up; });
        ASSERT_TRUE(a.is_up && b.is_up);
    }
    /// Turns everybody until nothing is to be done at this moment.
    void settle() {
        for (bool more = true; more;) {
            more = false;
            for (End* end : ends) {
                if (!end->device) continue;
                if (!end->device->has_work()) continue;
                end->turn();
                more = true;
            }
        }
    }
    /// Until `done` or for `span`.
    bool run(Duration span, const std::function<bool()>& done = nullptr) {
        const Time until = network.now + span;
        for (int steps = 0; steps < 10'000'000; ++steps) {
            settle();
            if (done && done()) return true;
            Time next = network.next_arrival();
            for (End* end : ends)
                if (end->device) next = earlier(next, end->device->next_deadline());
            if (next > until) break;
            network.now = std::max(next, network.now);
        }
        network.now = until;
        settle();
        return done && done();
    }
    /// Both send and receive over the path that is there.
    void talk() {
        const std::size_t had_a = a.received.size();
        const std::size_t had_b = b.received.size();
        a.send("from a");
        b.send("from b");
        ASSERT_TRUE(run(seconds(5),
                        [&] { return a.received.size() > had_a && b.received.size() > had_b; }));
        EXPECT_EQ(a.received.back(), "from b");
        EXPECT_EQ(b.received.back(), "from a");
    }
};

inline std::size_t count(const End& end, PathEventKind kind) {
    return static_cast<std::size_t>(
        std::count_if(end.events.begin(), end.events.end(),
                      [&](const PathEvent& event) { return event.kind == kind; }));
}

/// A path is there, and the transcript begins.
struct Carrying : ::testing::Test, Scene {
    void SetUp() override {
        meet();
        run(milliseconds(1));
        network.log.clear();
        zero = network.now;
    }
    /// Loses the datagrams with these numbers, counted from now over both directions.
    void lose(std::vector<int> numbers) {
        network.weather = [this, numbers, n = 0](const Datagram&) mutable {
            const bool lost = std::find(numbers.begin(), numbers.end(), n++) != numbers.end();
            return lost ? Fate{} : Fate{network.delay};
        };
    }
    /// As transcript(), with times since the path was made.
    std::string since() {
        std::string text = "\n";
        for (const std::string& line : network.log) {
            const std::size_t space = line.find(' ');
            const std::int64_t at = std::stoll(line) - zero.ns / 1000;
            text += std::to_string(at) + line.substr(space) + "\n";
        }
        network.log.clear();
        return text;
    }
    Time zero{};
};

}  // namespace via::device::datagram::test
