// Two datagram devices on a network of virtual time, each driven by what stands for an engine: it
// sends numbered frames, sends again what is lost, and knows each frame of the other by its number.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "device/datagram/datagram_device.hpp"
#include "input.hpp"
#include "wire/frame.hpp"

namespace fuzz {

using namespace via;
using namespace via::device;
using namespace via::device::datagram;
using Bytes = std::vector<std::byte>;

constexpr std::uint16_t host_port = 9741;
constexpr std::uint16_t data_port = 40000;
constexpr std::uint8_t attacker_host = 9;  ///< has an address of its own, and no path
constexpr std::uint32_t datagram_longest = 1472;

inline HostAddress address(std::uint8_t host, std::uint16_t port) {
    HostAddress result;
    result.length = 6;
    result.bytes = {
        10, 0, 0, host, static_cast<std::uint8_t>(port >> 8), static_cast<std::uint8_t>(port)};
    return result;
}

inline Discriminator listener() {
    Discriminator result;
    result.length = 1;
    result.bytes[0] = 'b';
    return result;
}

struct Datagram {
    HostAddress from;
    HostAddress to;
    Bytes bytes;
};

class ScenePort;

class Network {
public:
    Time now{};
    /// Of the next datagrams of the two, one after the other: how many copies arrive, how late, and
    /// which bit of them is wrong.
    struct Fate {
        std::uint8_t copies;
        Duration delay;
        std::size_t wrong_bit = no_bit;
        static constexpr std::size_t no_bit = ~std::size_t{0};
    };
    std::vector<Fate> fates;
    bool disturbed = false;           ///< not every datagram came at once
    std::vector<Datagram> log;        ///< the last ones of the two
    std::uint64_t from_attacker = 0;  ///< bytes from his own address, and to it
    std::uint64_t to_attacker = 0;
    std::map<std::uint8_t, ScenePort*> ports;  ///< by host

    void send(const Datagram& datagram) {
        if (log.size() == 64) log.erase(log.begin());
        log.push_back(datagram);
        if (datagram.to.bytes[3] == attacker_host) {
            to_attacker += datagram.bytes.size();
            require(to_attacker <= 3 * from_attacker, "answers are at most three times as long");
        }
        Fate fate{1, microseconds(10), Fate::no_bit};
        if (!fates.empty()) {
            fate = fates.back();
            fates.pop_back();
            disturbed = true;
        }
        Datagram arriving = datagram;
        if (fate.wrong_bit != Fate::no_bit)
            arriving.bytes[fate.wrong_bit / 8 % arriving.bytes.size()] ^=
                static_cast<std::byte>(1U << fate.wrong_bit % 8);
        for (; fate.copies != 0; --fate.copies) put(now + fate.delay, arriving);
    }
    void inject(const Datagram& datagram) {
        if (datagram.from.bytes[3] == attacker_host) from_attacker += datagram.bytes.size();
        put(now, datagram);
    }
    Time next_arrival() const {
        return under_way_.empty() ? Time::never() : under_way_.begin()->first;
    }
    void settle();

private:
    void put(Time arrival, const Datagram& datagram) { under_way_.emplace(arrival, datagram); }

    std::multimap<Time, Datagram> under_way_;
};

class ScenePort final : public Port {
public:
    ScenePort(Network& network, std::uint8_t host, std::uint64_t instance)
        : network_(network),
          nic_address_(address(host, host_port)),
          data_address_(address(host, data_port)),
          instance_(instance) {
        network_.ports[host] = this;
    }
    ~ScenePort() override {
        require(kept_ == 0, "no buffer is kept for ever");
        network_.ports.erase(data_address_.bytes[3]);
    }

    static constexpr std::uint32_t keep_max = 8;
    std::vector<Datagram> arrived;
    std::vector<NetworkError> network_errors;
    std::size_t send_max = ~std::size_t{0};
    bool listening = false;

    const HostAddress& nic_address() const override { return nic_address_; }
    const HostAddress& data_address() const override { return data_address_; }
    std::uint32_t datagram_max() const override { return datagram_longest; }
    std::uint32_t receive_room() const override { return 128 * 1024; }
    Time now() override { return network_.now; }
    std::size_t send(std::span<const Outgoing> datagrams) override {
        const std::size_t count = std::min(datagrams.size(), send_max);
        for (const Outgoing& out : datagrams.first(count)) {
            require(out.length <= datagram_longest, "datagrams fit");
            network_.send({out.from_host_port ? nic_address_ : data_address_, out.to,
                           Bytes(out.bytes, out.bytes + out.length)});
        }
        return count;
    }
    bool has_room() override { return send_max != 0; }
    std::size_t receive(std::span<Incoming> datagrams) override {
        network_.settle();
        const std::size_t count = std::min(datagrams.size(), arrived.size());
        for (std::size_t n = 0; n < count; ++n) {
            const Datagram& datagram = arrived[n];
            Buffer& buffer = buffers_[++numbers_];
            // Of its exact length, so that the sanitizer sees every look beyond it.
            buffer.bytes.reset(new std::byte[datagram.bytes.size()]);
            std::copy(datagram.bytes.begin(), datagram.bytes.end(), buffer.bytes.get());
            datagrams[n] = {datagram.from, buffer.bytes.get(),
                            static_cast<std::uint32_t>(datagram.bytes.size()), numbers_,
                            datagram.to == nic_address_};
        }
        arrived.erase(arrived.begin(), arrived.begin() + static_cast<std::ptrdiff_t>(count));
        return count;
    }
    void release() override {
        for (auto& [number, buffer] : buffers_) buffer.lent = false;
        sweep();
    }
    bool keep(std::uint32_t number) override {
        if (kept_ == keep_max) return false;
        ++kept_;
        ++buffers_.at(number).kept;
        return true;
    }
    std::uint32_t keeps_left() const override { return keep_max - kept_; }
    void let_go(std::uint32_t number) override {
        Buffer& buffer = buffers_.at(number);
        require(buffer.kept != 0, "what is let go was kept");
        --buffer.kept;
        --kept_;
        sweep();
    }
    bool has_work() override {
        network_.settle();
        return !arrived.empty();
    }
    bool next_network_error(NetworkError& error) override {
        if (network_errors.empty()) return false;
        error = network_errors.back();
        network_errors.pop_back();
        return true;
    }
    Status listen(const Discriminator&) override {
        listening = true;
        return Status::success;
    }
    void unlisten(const Discriminator&) override { listening = false; }
    bool find_listener(const Discriminator& discriminator, std::uint16_t& port,
                       std::uint64_t& instance) override {
        port = data_port;
        instance = instance_;
        return listening && discriminator == listener();
    }
    void service(Time) override {}
    void arm(Sleep) override {}
    int wait_handle() const override { return -1; }
    Time next_deadline() const override { return Time::never(); }

private:
    struct Buffer {
        std::unique_ptr<std::byte[]> bytes;
        bool lent = true;
        std::uint32_t kept = 0;
    };
    void sweep() {
        std::erase_if(buffers_,
                      [](const auto& entry) { return !entry.second.lent && !entry.second.kept; });
    }

    Network& network_;
    HostAddress nic_address_;
    HostAddress data_address_;
    std::uint64_t instance_;
    std::map<std::uint32_t, Buffer> buffers_;
    std::uint32_t numbers_ = 0;
    std::uint32_t kept_ = 0;
};

inline void Network::settle() {
    while (next_arrival() <= now) {
        const Datagram datagram = under_way_.begin()->second;
        under_way_.erase(under_way_.begin());
        const auto port = ports.find(datagram.to.bytes[3]);
        if (port == ports.end()) continue;
        const bool known = datagram.to == port->second->data_address() ||
                           datagram.to == port->second->nic_address();
        if (known) port->second->arrived.push_back(datagram);
        if (next_arrival().is_never()) return;
    }
}

/// One end. Its frames are numbered from 0, those that must arrive and the others apart.
class End {
public:
    /// What stands between the device and its port.
    using Wrap =
        std::function<std::unique_ptr<Port>(std::unique_ptr<Port>, const DatagramOptions&)>;

    End(Network& network, std::uint8_t host, const Wrap& wrap = nullptr) : host_(host) {
        auto owned = std::make_unique<ScenePort>(network, host, host * 1000U);
        port = owned.get();
        DatagramOptions options;
        options.instance = host * 1000U;
        options.cookie_key = {host, 77};
        options.identifier_key = {host, 99};
        options.paths_max = 8;
        std::unique_ptr<Port> outer = std::move(owned);
        if (wrap) outer = wrap(std::move(outer), options);
        device = std::make_unique<DatagramDevice>(std::move(outer), options);
    }

    std::unique_ptr<DatagramDevice> device;
    ScenePort* port;
    bool is_up = false;
    bool was_up = false;
    bool is_over = false;        ///< a path of it has ended
    bool strangers_lie = false;  ///< who lies knows the path: frames may be anything
    PathId path = 0;             ///< the first
    std::uint32_t expected = 0;  ///< the next frame that must arrive

    std::uint32_t sent() const { return numbers_[1]; }
    bool is_quiet() const { return waiting_.empty() && under_way_.empty(); }

    void send(std::uint32_t length, bool must_arrive) {
        if (waiting_.size() < 64)
            waiting_.push_back({numbers_[must_arrive]++, length, must_arrive});
        push();
    }
    void close_for_violation() {
        if (is_up) device->close_for_violation(path, "to see what happens");
    }
    void turn() {
        PathEvent event;
        while (device->next_event(event)) on_event(event);
        Reaped reaped[16];
        while (const std::size_t count = device->reap(reaped))
            for (std::size_t n = 0; n < count; ++n) on_reaped(reaped[n]);
        bool notify = false;
        for (std::size_t count = 16; count == 16;) {
            device::Frame frames[16];
            count = device->receive(frames);
            for (std::size_t n = 0; n < count; ++n) on_frame(frames[n]);
            notify = device->release() || notify;
        }
        push();
        if (notify) device->notify();
    }

private:
    struct Sent {
        std::uint32_t number;
        std::uint32_t length;
        bool must_arrive;
    };

    void on_event(const PathEvent& event) {
        if (event.kind == PathEventKind::resolved || event.kind == PathEventKind::up) {
            if (was_up && event.path != path) return;  // a second one
            if (!is_up && was_up) return;
            path = event.path;
            is_up = was_up = true;
        }
        if (!is_up || event.path != path) return;
        if (event.payload_max != 0) payload_max_ = event.payload_max;
        if (event.kind != PathEventKind::down) return;
        is_up = false;
        is_over = true;
        under_way_.clear();
        again_.clear();
        waiting_.clear();
    }
    void on_reaped(const Reaped& reaped) {
        if (!is_up || reaped.path != path) return;
        const auto found = under_way_.find(reaped.number);
        require(found != under_way_.end(), "what is reaped is under way");
        if (reaped.lost)
            again_.insert(std::upper_bound(again_.begin(), again_.end(), reaped.number),
                          reaped.number);  // the oldest first, as an engine
        else
            under_way_.erase(found);
    }
    /// Byte `n` of a frame's payload; the whole follows from who sent which frame.
    static std::byte pattern(std::uint32_t host, std::uint32_t number, std::size_t n) {
        return static_cast<std::byte>(host * 101 + number * 7 + n + n / 251);
    }
    bool emit(const Sent& sent, FrameSlot& slot) {
        slot.must_arrive = sent.must_arrive;
        if (!device->reserve(path, wire::header_length_base, sent.length, slot)) {
            device->set_waiting_for_room(path);
            return false;
        }
        wire::Header header;
        header.kind = wire::FrameKind::send;
        header.vi = host_;
        header.message = sent.number;
        header.immediate_or_code = sent.must_arrive;
        wire::emit(header, slot.header);
        for (std::size_t n = 0; n < sent.length; ++n)
            slot.payload[n] = pattern(host_, sent.number, n);
        return true;
    }
    void push() {
        if (!is_up) return;
        bool any = false;
        while (!again_.empty()) {
            const auto found = under_way_.find(again_.front());
            if (found != under_way_.end()) {
                FrameSlot slot;
                slot.again = true;
                slot.number = found->first;
                if (!emit(found->second, slot)) break;
                any = true;
            }
            again_.erase(again_.begin());
        }
        while (again_.empty() && !waiting_.empty()) {
            FrameSlot slot;
            Sent& sent = waiting_.front();
            sent.length = std::min(sent.length, payload_max_);
            if (!emit(sent, slot)) break;
            if (sent.must_arrive)
                require(under_way_.emplace(slot.number, sent).second, "numbers are new");
            waiting_.erase(waiting_.begin());
            any = true;
        }
        if (!any) return;
        device->transmit(path);
        device->notify();
    }
    void on_frame(const device::Frame& frame) {
        require(frame.length <= device::Frame::inline_max, "headers fit");
        Bytes whole(frame.bytes, frame.bytes + frame.length);
        if (frame.payload != nullptr)
            whole.insert(whole.end(), frame.payload, frame.payload + frame.payload_length);
        if (strangers_lie || frame.path != path) return;
        require(frame.count == 1, "nobody sends the inside of a message");
        wire::Header header;
        require(wire::parse(whole.data(), whole.size(), header) == wire::ParseError::none,
                "frames are whole");
        require(header.kind == wire::FrameKind::send && header.vi == 3U - host_,
                "frames are the other one's");
        for (std::size_t n = wire::header_length_base; n < whole.size(); ++n)
            require(whole[n] == pattern(header.vi, header.message, n - wire::header_length_base),
                    "payloads are as sent");
        if (header.immediate_or_code == 1)
            require(header.message == expected++, "frames come in order, each once");
        else
            require(unnumbered_.insert(header.message).second, "unreliable frames come once");
    }

    std::uint8_t host_;
    std::uint32_t payload_max_ = 0;
    std::array<std::uint32_t, 2> numbers_{};  ///< of unreliable frames, and of the others
    std::vector<Sent> waiting_;
    std::map<std::uint32_t, Sent> under_way_;
    std::vector<std::uint32_t> again_;
    std::set<std::uint32_t> unnumbered_;
};

}  // namespace fuzz
