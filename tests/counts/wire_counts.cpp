// What a sealed wire costs beyond the bare one: two datagram devices on a network that copies, all
// in one thread. The cipher copies, too, so what is counted is our own part; what a stranger's
// hello costs is counted with the library. Run under callgrind by counts.py.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "device/datagram/datagram_device.hpp"
#include "device/datagram/secure_port.hpp"
#include "measured.hpp"
#include "secure/libcrypto/libcrypto.hpp"
#include "wire/bytes.hpp"
#include "wire/frame.hpp"
#include "wire/sealed.hpp"

using namespace via;
using namespace via::device;
using namespace via::device::datagram;

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "it does not hold that %s\n", what);
    std::exit(1);
}

HostAddress address(std::uint8_t host, std::uint16_t port) {
    HostAddress result;
    result.length = 6;
    result.bytes = {
        10, 0, 0, host, static_cast<std::uint8_t>(port >> 8), static_cast<std::uint8_t>(port)};
    return result;
}

constexpr std::uint16_t host_port = 1;
constexpr std::uint16_t data_port = 2;
constexpr std::uint32_t datagram_longest = 1472;
constexpr std::size_t queue_length = 64;

/// What is sent lies there until the other one takes it.
class PipePort final : public Port {
public:
    explicit PipePort(std::uint8_t host)
        : nic_address_(address(host, host_port)), data_address_(address(host, data_port)) {}
    ~PipePort() override {
        if (peer != nullptr) peer->peer = nullptr;
    }

    PipePort* peer = nullptr;
    Time time = Time{} + seconds(1);

    void put(const HostAddress& from, const std::byte* bytes, std::uint32_t length, bool to_host) {
        require(arrived_ < queue_length, "there is room in the pipe");
        Datagram& datagram = datagrams_[arrived_++];
        datagram.from = from;
        datagram.length = length;
        datagram.to_host_port = to_host;
        std::memcpy(datagram.bytes.data(), bytes, length);
    }
    std::size_t waiting() const { return arrived_; }
    const std::byte* last() const { return datagrams_[arrived_ - 1].bytes.data(); }

    const HostAddress& nic_address() const override { return nic_address_; }
    const HostAddress& data_address() const override { return data_address_; }
    std::uint32_t datagram_max() const override { return datagram_longest; }
    std::uint32_t receive_room() const override { return 1 << 20; }
    Time now() override { return time; }
    std::size_t send(std::span<const Outgoing> datagrams) override {
        for (const Outgoing& out : datagrams) {
            if (peer == nullptr) break;
            const bool to_host = out.to == peer->nic_address_;
            if (to_host || out.to == peer->data_address_)
                peer->put(out.from_host_port ? nic_address_ : data_address_, out.bytes, out.length,
                          to_host);
        }
        return datagrams.size();
    }
    bool has_room() override { return true; }
    std::size_t receive(std::span<Incoming> incoming) override {
        const std::size_t count = std::min(arrived_, incoming.size());
        require(count == arrived_, "one look takes all");
        for (std::size_t n = 0; n < count; ++n)
            incoming[n] = {datagrams_[n].from, datagrams_[n].bytes.data(), datagrams_[n].length,
                           static_cast<std::uint32_t>(n), datagrams_[n].to_host_port};
        arrived_ = 0;
        return count;
    }
    void release() override {}
    bool keep(std::uint32_t) override { return false; }
    void let_go(std::uint32_t) override {}
    std::uint32_t keeps_left() const override { return 0; }
    bool has_work() override { return arrived_ != 0; }
    bool next_network_error(NetworkError&) override { return false; }
    Status listen(const Discriminator&) override { return Status::success; }
    void unlisten(const Discriminator&) override {}
    bool find_listener(const Discriminator&, std::uint16_t& port,
                       std::uint64_t& instance) override {
        port = data_port;
        instance = nic_address_.bytes[3];
        return true;
    }
    void service(Time) override {}
    void arm(Sleep) override {}
    int wait_handle() const override { return -1; }
    Time next_deadline() const override { return Time::never(); }

private:
    struct Datagram {
        HostAddress from;
        std::uint32_t length = 0;
        bool to_host_port = false;
        std::array<std::byte, datagram_longest> bytes;
    };
    HostAddress nic_address_;
    HostAddress data_address_;
    std::array<Datagram, queue_length> datagrams_;
    std::size_t arrived_ = 0;
};

/// Copies, and tags with zeros.
class CopyingSealer final : public secure::Sealer {
public:
    bool seal(std::uint64_t, secure::Bytes, secure::Pieces plain, secure::Room sealed) override {
        for (const secure::Bytes piece : plain) {
            if (piece.data() != sealed.data() && !piece.empty())
                std::memcpy(sealed.data(), piece.data(), piece.size());
            sealed = sealed.subspan(piece.size());
        }
        std::memset(sealed.data(), 0, sealed.size());
        return true;
    }
};
class CopyingOpener final : public secure::Opener {
public:
    bool open(std::uint64_t, secure::Bytes, secure::Bytes sealed, secure::Room plain) override {
        if (plain.data() != sealed.data()) std::memcpy(plain.data(), sealed.data(), plain.size());
        return true;
    }
};
/// The library, but for ciphers that cost nothing.
class Uncovered final : public secure::Crypto {
public:
    bool public_key(const secure::Secret& own, secure::PublicKey& key) override {
        return real_->public_key(own, key);
    }
    bool agree(const secure::Secret& own, const secure::PublicKey& peer,
               secure::Secret& shared) override {
        return real_->agree(own, peer, shared);
    }
    bool hash(secure::Bytes first, secure::Bytes second, secure::Hash& hash) override {
        return real_->hash(first, second, hash);
    }
    std::unique_ptr<secure::Sealer> sealer(secure::CipherKind, const secure::Secret&) override {
        return std::make_unique<CopyingSealer>();
    }
    std::unique_ptr<secure::Opener> opener(secure::CipherKind, const secure::Secret&) override {
        return std::make_unique<CopyingOpener>();
    }

private:
    std::unique_ptr<secure::Crypto> real_ = std::move(secure::load_libcrypto().value());
};

class End {
public:
    End(std::uint8_t host, bool sealed) {
        auto owned = std::make_unique<PipePort>(host);
        pipe = owned.get();
        DatagramOptions options;
        options.instance = host;
        options.cookie_key = {host, 77};
        options.identifier_key = {host, 99};
        std::unique_ptr<Port> port = std::move(owned);
        if (sealed) port = protect(std::move(port), options);
        device = std::make_unique<DatagramDevice>(std::move(port), options);
    }

    std::unique_ptr<DatagramDevice> device;
    PipePort* pipe;
    SecurePort* secure = nullptr;
    PathId path = 0;
    bool is_up = false;
    std::uint64_t received = 0;  ///< bytes of payloads

    void send(std::uint32_t length) {
        FrameSlot slot;
        require(device->reserve(path, wire::header_length_base, length, slot), "a frame fits");
        wire::emit_whole_send(0, 0, slot.header);
        std::memset(slot.payload, 1, length);
        device->transmit(path);
        device->notify();
    }
    /// As many packets as the device makes a run of, their payloads where they lie; 0: none.
    std::uint32_t send_run(const std::byte* bytes, std::uint32_t each, std::uint32_t count) {
        FrameSlot slot;
        slot.wanted = count;
        if (!device->reserve(path, wire::header_length_base, each, slot)) return 0;
        require(slot.reference != nullptr, "payloads may stay where they lie");
        *slot.reference = bytes;
        for (std::uint32_t n = 0; n < slot.count; ++n)
            wire::emit({.kind = wire::FrameKind::send}, slot.header + std::size_t{n} * slot.stride);
        device->transmit(path);
        device->notify();
        return slot.count;
    }
    void turn() {
        PathEvent event;
        while (device->next_event(event)) {
            require(event.kind != PathEventKind::down && event.kind != PathEventKind::unresolved,
                    "the path stays");
            path = event.path;
            is_up = true;
        }
        Reaped reaped[64];
        while (device->reap(reaped) != 0) {
        }
        device::Frame frames[64];
        while (const std::size_t count = device->receive(frames)) {
            for (std::size_t n = 0; n < count; ++n)
                received +=
                    std::uint64_t{frames[n].count} *
                    (frames[n].payload_length != 0 ? frames[n].payload_length
                                                   : frames[n].length - wire::header_length_base);
            device->release();
        }
    }

private:
    std::unique_ptr<Port> protect(std::unique_ptr<Port> port, const DatagramOptions& options) {
        auto crypto = std::make_unique<Uncovered>();
        SecureOptions wanted;
        wanted.instance = options.instance;
        wanted.cookie_key = options.cookie_key;
        secure::Secret key;
        require(make_cluster_key(*crypto, key, wanted.keys.emplace_back()), "there is a key");
        wanted.random = [seed = options.instance](secure::Secret& secret) mutable {
            Random random(++seed);
            for (std::byte& byte : secret.room()) byte = static_cast<std::byte>(random.next());
            return true;
        };
        auto made = std::make_unique<SecurePort>(std::move(port), std::move(crypto), wanted);
        secure = made.get();
        return made;
    }
};

constexpr std::uint32_t run_packets = 40;
constexpr std::uint32_t run_each = 1400;

class World {
public:
    explicit World(bool sealed) : a(1, sealed), b(2, sealed), payload(run_packets * run_each) {
        a.pipe->peer = b.pipe;
        b.pipe->peer = a.pipe;
        Discriminator name;
        name.length = 1;
        a.device->resolve({address(2, host_port), name}, 1);
        for (int n = 0; n < 20; ++n) turns();
        require(a.is_up, "there is a path");
        require(b.is_up, "and its other end");
        // Until runs are as long as they get.
        for (int n = 0; n < 400; ++n) {
            pass_time();
            a.send(1000);
            turns();
        }
    }

    End a;
    End b;
    std::vector<std::byte> payload;
    std::vector<std::byte> stranger_hello;
    std::vector<std::byte> bare_hello;

    /// So that nobody is held back by the pacer.
    void pass_time() { a.pipe->time = b.pipe->time = a.pipe->time + milliseconds(1); }
    /// In one go, once the window is open.
    void send_payload() {
        for (std::uint32_t sent = 0; sent < run_packets;) {
            const std::uint32_t more = a.send_run(payload.data() + std::size_t{sent} * run_each,
                                                  run_each, run_packets - sent);
            sent += more;
            b.turn();
            if (more == 0) a.turn();
        }
    }
    void turns() {
        for (int n = 0; n < 3; ++n) {
            a.turn();
            b.turn();
        }
    }

    /// A stranger's, with a cookie that is good and without the key; and one without a cookie.
    void make_hellos() {
        namespace sealed = wire::sealed;
        std::array<std::byte, wire::connecting_length_max> room;
        const std::uint64_t connection = 77;
        wire::emit_hello(connection,
                         {2, 1, {}, {9, wire::packet_length_min, 0, wire::packet_length_min, 0}},
                         room);
        bare_hello.assign(room.begin(), room.begin() + sealed::bare_hello_length);
        finish(bare_hello);
        // The stranger's answers come to the end that asked here.
        pass_time();
        turns();
        hear(bare_hello);
        require(a.pipe->waiting() != 0, "it is answered");
        wire::Cookie cookie;
        require(wire::parse_retry({a.pipe->last(), 32}, cookie) == wire::PacketError::none,
                "by a cookie");
        a.turn();
        stranger_hello = bare_hello;
        stranger_hello.resize(sealed::hello_length);
        wire::put(stranger_hello.data() + sealed::hello_moment, cookie.moment);
        wire::put(stranger_hello.data() + sealed::hello_proof, cookie.proof);
        wire::put(stranger_hello.data() + sealed::hello_cipher, std::uint64_t{0});
        finish(stranger_hello);
        const std::uint64_t before = b.secure->totals().strangers;
        hear(stranger_hello);
        require(b.secure->totals().strangers == before + 1, "the cookie is good, the key is not");
        a.turn();
    }

private:
    static void finish(std::vector<std::byte>& packet) {
        wire::put(packet.data() + 4, wire::sealed::version);
        wire::put(packet.data(), wire::crc32c(std::span<const std::byte>(packet).subspan(4)));
    }

public:
    void put(const std::vector<std::byte>& packet) {
        b.pipe->put(a.pipe->data_address(), packet.data(),
                    static_cast<std::uint32_t>(packet.size()), false);
    }
    void hear(const std::vector<std::byte>& packet) {
        put(packet);
        b.turn();
    }
};

}  // namespace

/// There and back, so that the acknowledgements go along.
VIA_MEASURED void measured_wire_bare_8_there_and_back(World& world) {
    world.a.send(8);
    world.b.turn();
    world.b.send(8);
    world.a.turn();
}
VIA_MEASURED void measured_wire_sealed_8_there_and_back(World& world) {
    world.a.send(8);
    world.b.turn();
    world.b.send(8);
    world.a.turn();
}
VIA_MEASURED void measured_wire_bare_56k(World& world) { world.send_payload(); }
VIA_MEASURED void measured_wire_sealed_56k(World& world) { world.send_payload(); }
/// All that it costs but the system's call.
VIA_MEASURED void measured_wire_strangers_hello(World& world) { world.b.turn(); }
VIA_MEASURED void measured_wire_hello_without_cookie(World& world) { world.b.turn(); }

namespace {

using Pass = void (*)(World&, std::uint64_t);

template <void (*measured)(World&)>
void pass_messages(World& world, std::uint64_t) {
    world.pass_time();
    const std::uint64_t before = world.a.received + world.b.received;
    measured(world);
    world.turns();
    require(world.a.received + world.b.received > before, "messages arrive");
}
/// So that nobody looks less often, as who finds nothing does.
void pass_one(World& world) {
    world.pass_time();
    world.a.send(8);
    world.turns();
}
void pass_stranger(World& world, std::uint64_t) {
    pass_one(world);
    world.put(world.stranger_hello);
    const std::uint64_t before = world.b.secure->totals().strangers;
    measured_wire_strangers_hello(world);
    require(world.b.secure->totals().strangers == before + 1, "it is looked at to the end");
    world.a.turn();
}
void pass_without_cookie(World& world, std::uint64_t) {
    pass_one(world);
    world.put(world.bare_hello);
    measured_wire_hello_without_cookie(world);
    world.a.turn();
}

}  // namespace

/// callgrind counts only within this function.
VIA_MEASURED void counted_phase(World& world, Pass pass, std::uint64_t from) {
    for (unsigned n = 0; n < messages_counted; ++n) pass(world, from + n);
}

int main() {
    World bare(false);
    World sealed(true);
    warm_and_count(bare, pass_messages<measured_wire_bare_8_there_and_back>, counted_phase);
    warm_and_count(bare, pass_messages<measured_wire_bare_56k>, counted_phase);
    warm_and_count(sealed, pass_messages<measured_wire_sealed_8_there_and_back>, counted_phase);
    warm_and_count(sealed, pass_messages<measured_wire_sealed_56k>, counted_phase);
    sealed.make_hellos();
    warm_and_count(sealed, pass_stranger, counted_phase);
    warm_and_count(sealed, pass_without_cookie, counted_phase);
    return 0;
}
