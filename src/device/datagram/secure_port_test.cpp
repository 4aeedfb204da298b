// Devices whose packets are sealed, and strangers who see, keep, change and forge them.
#include "device/datagram/secure_port.hpp"

#include <array>
#include <set>

#include "base/random.hpp"
#include "device/datagram/cookie.hpp"
#include "device/datagram/device_pair_test.hpp"
#include "secure/libcrypto/libcrypto.hpp"
#include "wire/bytes.hpp"
#include "wire/fields.hpp"
#include "wire/sealed.hpp"

namespace via::device::datagram::test::secure_port_test {
namespace {

namespace sealed = wire::sealed;

std::unique_ptr<secure::Crypto> crypto() {
    auto loaded = secure::load_libcrypto();
    EXPECT_TRUE(loaded) << loaded.error();
    return std::move(*loaded);
}

secure::Secret secret_of(std::uint64_t seed) {
    Random random(seed);
    secure::Secret secret;
    for (std::byte& byte : secret.room()) byte = static_cast<std::byte>(random.next());
    return secret;
}

struct Secure : ::testing::Test, Scene {
    /// Keys by host; none: its packets are bare.
    std::map<std::uint64_t, std::vector<std::uint64_t>> keys{{1, {100}}, {2, {100}}};
    /// Of host by host: its own keys, and those of others that it was told; after `until` seconds
    /// they are not good any more.
    struct Own {
        std::uint64_t seed;
        std::int64_t until = 0;
    };
    struct Told {
        std::uint64_t host;
        std::uint64_t seed;
        std::int64_t until = 0;
    };
    std::map<std::uint64_t, std::vector<Own>> own;
    std::map<std::uint64_t, std::vector<Told>> told;
    bool prefer = false;
    std::map<std::uint64_t, secure::CipherKind> ciphers;
    std::map<std::uint64_t, SecurePort*> ports;
    std::map<std::uint64_t, std::vector<std::string>> reports;
    secure::KeyLimits limits;
    std::uint64_t randoms = 1'000'000;
    using Reports = std::vector<std::string>;

    void SetUp() override {
        network.wrap = [this](std::unique_ptr<Port> port, const DatagramOptions& options) {
            return secured(std::move(port), options);
        };
        reopen();
    }
    void reopen() {
        a.open(1);
        b.open(2);
    }
    std::unique_ptr<Port> secured(std::unique_ptr<Port> port, const DatagramOptions& options) {
        const std::uint64_t host = port->data_address().bytes[3];
        ports.erase(host);
        if (keys[host].empty() && own[host].empty()) return port;
        auto library = crypto();
        SecureOptions secure;
        secure.instance = options.instance;
        secure.cookie_key = options.cookie_key;
        for (const std::uint64_t seed : keys[host])
            EXPECT_TRUE(make_cluster_key(*library, secret_of(seed), secure.keys.emplace_back()));
        const auto end = [](std::int64_t after) {
            return after == 0 ? Time::never() : Time{} + seconds(after);
        };
        for (const Own& one : own[host]) {
            EXPECT_TRUE(make_own_key(*library, secret_of(one.seed), secure.keys.emplace_back()));
            secure.keys.back().until = end(one.until);
        }
        for (const Told& one : told[host]) {
            PinnedKey& pinned = secure.hosts.emplace_back();
            pinned.host = number_of(address(static_cast<std::uint8_t>(one.host), 0));
            pinned.until = end(one.until);
            EXPECT_TRUE(library->public_key(secret_of(one.seed), pinned.key));
        }
        secure.prefer = prefer;
        if (ciphers.contains(host)) secure.cipher = ciphers[host];
        secure.limits = limits;
        secure.random = [this](secure::Secret& secret) {
            secret = secret_of(++randoms);
            return true;
        };
        secure.report = [this, host](const HostAddress&, const char* what) {
            reports[host].emplace_back(what);
        };
        auto made =
            std::make_unique<SecurePort>(std::move(port), std::move(library), std::move(secure));
        ports[host] = made.get();
        return made;
    }
    /// Host 3, without a device, has the key. What it says to b by say_joining_hello() has a good
    /// cookie and a handshake, and there is no path that it could join.
    std::unique_ptr<Port> make_insider() {
        keys[3] = {100};
        DatagramOptions options;
        options.instance = 3;
        return secured(std::make_unique<TestPort>(network, std::uint8_t{3}, 40000, 3), options);
    }
    void say_joining_hello(Port& insider, std::uint64_t connection) const {
        std::array<std::byte, wire::connecting_length_max> hello;
        const wire::Cookie cookie =
            make_cookie({2, 77}, address(3, 40000), connection, network.now);
        const std::uint32_t length =
            wire::emit_hello(connection, {2, 5, cookie, {3, 60000, 1000, 1472, 9741}, true}, hello);
        const Outgoing out{address(2, 40000), hello.data(), length};
        insider.send({&out, 1});
    }
    void expect_unreachable(Duration within) {
        b.device->listen(named("b"));
        const Time begin = network.now;
        ask_b();
        EXPECT_TRUE(run(seconds(6), [&] { return !a.events.empty(); }));
        ASSERT_EQ(a.events.size(), 1U);
        EXPECT_EQ(a.events[0].kind, PathEventKind::unresolved);
        EXPECT_EQ(a.events[0].status, Status::not_reachable);
        EXPECT_LE(network.now - begin, within);
        EXPECT_TRUE(b.events.empty());
    }
};

bool is_sealed(const Datagram& datagram) {
    return std::to_integer<int>(datagram.bytes[4]) == sealed::version;
}

TEST_F(Secure, a_path_is_made_in_as_many_round_trips_and_nothing_is_to_be_read) {
    std::vector<std::string> sent;
    std::string all;
    network.weather = [&](const Datagram& datagram) {
        sent.push_back(std::string(is_sealed(datagram) ? "sealed " : "bare ") +
                       wire::name_of(datagram.kind(), wire::packet_kind_names) + " " +
                       std::to_string(datagram.bytes.size()));
        all.append(reinterpret_cast<const char*>(datagram.bytes.data()), datagram.bytes.size());
        return Fate{network.delay};
    };
    meet();
    const std::vector<std::string> expected = {"bare query 84",    "bare answer 32",
                                               "sealed hello 72",  "bare retry 32",
                                               "sealed hello 232", "sealed welcome 120"};
    EXPECT_EQ(sent, expected);
    talk();
    EXPECT_EQ(all.find("from a"), all.npos);
    EXPECT_EQ(all.find("from b"), all.npos);
    a.device.reset();
    EXPECT_TRUE(run(milliseconds(10), [&] { return count(b, PathEventKind::down) == 1; }))
        << "the end is sealed, too, and heard";
}

TEST_F(Secure, both_ciphers_whoever_asks) {
    for (const auto cipher :
         {secure::CipherKind::aes_256_gcm, secure::CipherKind::chacha20_poly1305}) {
        ciphers[1] = cipher;
        ciphers[2] = secure::CipherKind::aes_256_gcm;
        reopen();
        meet();
        talk();
    }
}

/// A named error at both ends, a round trip after the first thing that shows it, or when a hello
/// was said again: anybody can say that a key is refused.
TEST_F(Secure, who_has_no_key_is_refused) {
    keys[1] = {};
    reopen();
    expect_unreachable(microseconds(40));
    EXPECT_EQ(reports[2], std::vector<std::string>{"asked without a key and was refused"});
}

TEST_F(Secure, who_has_a_key_does_not_go_on_without) {
    keys[2] = {};
    reopen();
    expect_unreachable(microseconds(40));
    EXPECT_EQ(reports[1],
              std::vector<std::string>{"has no key for the wire, or is too old for one"});
}

TEST_F(Secure, who_has_another_key_is_refused) {
    keys[1] = {101};
    reopen();
    expect_unreachable(milliseconds(25));
    EXPECT_EQ(reports[1], std::vector<std::string>{"refuses our key"});
    EXPECT_EQ(reports[2], std::vector<std::string>{"asked with another key and was refused"});
    EXPECT_EQ(ports[2]->totals().handshakes, 0U) << "nothing expensive for who has not the key";
}

TEST_F(Secure, old_and_new_key_side_by_side) {
    keys[1] = {101, 100};
    keys[2] = {100, 101};
    reopen();
    meet();
    talk();
}

// Keys of hosts -----------------------------------------------------------------------------------

/// Each has a pair of its own, and was told the other's public half.
struct SecureHosts : Secure {
    void SetUp() override {
        keys = {};
        own = {{1, {{201}}}, {2, {{202}}}};
        told = {{1, {{2, 202}}}, {2, {{1, 201}}}};
        Secure::SetUp();
    }
};

TEST_F(SecureHosts, who_know_each_other_meet) {
    meet();
    talk();
    EXPECT_TRUE(reports.empty());
    EXPECT_EQ(ports[1]->totals().handshakes, 1U);
    EXPECT_EQ(ports[2]->totals().handshakes, 1U);
}

TEST_F(SecureHosts, a_host_whose_key_is_not_known_is_not_asked) {
    told[1] = {};
    reopen();
    expect_unreachable(microseconds(40));
    EXPECT_EQ(reports[1], Reports{"is not asked: its key is not known here (via keys trust)"});
    EXPECT_TRUE(reports[2].empty());
}

TEST_F(SecureHosts, a_host_that_is_not_known_is_refused_without_a_multiplication) {
    told[2] = {{3, 201}};
    reopen();
    expect_unreachable(milliseconds(25));
    EXPECT_EQ(reports[1], Reports{"refuses our key"});
    EXPECT_EQ(reports[2], Reports{"is not known here and was refused (via keys trust)"});
    EXPECT_EQ(ports[2]->totals().handshakes, 0U);
}

TEST_F(SecureHosts, a_host_with_another_key_than_its_own_is_refused) {
    told[2] = {{1, 299}};
    reopen();
    expect_unreachable(milliseconds(25));
    EXPECT_EQ(reports[1], Reports{"refuses our key"});
    EXPECT_EQ(reports[2], Reports{"asked with another key than its own and was refused"});
    EXPECT_EQ(ports[2]->sessions(), 0U);
}

/// Who is not the one that is asked cannot even read the question.
TEST_F(SecureHosts, another_host_in_its_place_is_not_taken_for_it) {
    own[2] = {{299}};
    reopen();
    expect_unreachable(milliseconds(25));
    EXPECT_EQ(reports[2], Reports{"asked with another key and was refused"});
}

TEST_F(SecureHosts, the_clusters_key_is_not_enough_for_a_host_whose_own_is_known) {
    keys = {{1, {100}}, {2, {100}}};
    told[1] = {};
    reopen();
    expect_unreachable(milliseconds(25));
    EXPECT_EQ(reports[1], Reports{"refuses our key"});
    EXPECT_EQ(reports[2], Reports{"asked without its own key and was refused"});
}

TEST_F(SecureHosts, others_are_asked_with_the_clusters_key) {
    keys = {{1, {100}}, {2, {100}}};
    told = {{1, {{3, 203}}}, {2, {{4, 204}}}};
    reopen();
    meet();
    talk();
}

/// Whoever knows a host's public key and receives at the address of one that it trusts has it
/// multiply a thousand times a second at most, and leaves nothing behind.
TEST_F(SecureHosts, handshakes_of_a_second_are_limited) {
    const auto library = crypto();
    secure::PublicKey key{};
    secure::Secret admission;
    ASSERT_TRUE(library->public_key(secret_of(202), key) &&
                make_admission(*library, key, admission));
    const HostAddress stranger = address(1, 3003);
    Random random(1);
    for (std::uint64_t connection = 1; connection <= 1500; ++connection) {
        const wire::Cookie cookie = make_cookie({2, 77}, stranger, connection, network.now);
        std::vector<std::byte> hello(sealed::hello_length);
        wire::put(hello.data() + 4, wire::packet_word(wire::PacketKind::hello));
        wire::put(hello.data() + 4, sealed::version);
        wire::put(hello.data() + 8, connection);
        wire::put(hello.data() + sealed::hello_target, std::uint64_t{2});
        wire::put(hello.data() + sealed::hello_moment, cookie.moment);
        wire::put(hello.data() + sealed::hello_proof, cookie.proof);
        for (std::size_t at = sealed::hello_message; at < sealed::hello_admission; at += 8)
            wire::put(hello.data() + at, random.next());
        std::ranges::copy(admission_of(admission, hello), hello.begin() + sealed::hello_admission);
        wire::put(hello.data(), wire::crc32c(std::span<const std::byte>(hello).subspan(4)));
        network.deliver(network.now, {stranger, address(2, 40000), hello});
    }
    run(milliseconds(10));
    EXPECT_GT(ports[2]->totals().handshakes, 100U);
    EXPECT_LE(ports[2]->totals().handshakes, 1010U);
    EXPECT_EQ(ports[2]->sessions(), 0U);
    meet();
}

/// Whatever is wrong, a stranger sees the same packet.
TEST_F(SecureHosts, a_refusal_does_not_tell_why) {
    std::set<std::vector<std::byte>> refusals;
    network.weather = [&](const Datagram& datagram) {
        if (datagram.kind() == wire::PacketKind::refuse)
            refusals.insert(
                {datagram.bytes.begin() + wire::packet_prefix_length, datagram.bytes.end()});
        return Fate{network.delay};
    };
    for (const std::vector<Told>& known :
         {std::vector<Told>{{3, 201}}, {{1, 299}}, {{1, 201, 1}}}) {
        told[2] = known;
        network.now = Time{} + seconds(10);
        reopen();
        expect_unreachable(milliseconds(25));
    }
    EXPECT_EQ(refusals.size(), 1U);
}

TEST_F(SecureHosts, keys_that_have_expired_are_not_good) {
    network.now = Time{} + seconds(10);
    told[1] = {{2, 202, 5}};
    reopen();
    expect_unreachable(microseconds(40));
    EXPECT_EQ(reports[1], Reports{"is not asked: its key has expired here"});
    reports.clear();
    told[1] = {{2, 202}};
    own[1] = {{201, 5}};
    reopen();
    expect_unreachable(microseconds(40));
    EXPECT_EQ(reports[1], Reports{"is not asked: our key for it has expired"});
    reports.clear();
    own[1] = {{201}};
    told[2] = {{1, 201, 5}};
    reopen();
    expect_unreachable(milliseconds(25));
    EXPECT_EQ(reports[2], Reports{"asked with a key of its that has expired and was refused"});
    reports.clear();
    told[2] = {{1, 201}};
    own[2] = {{202, 5}};
    reopen();
    expect_unreachable(milliseconds(25));
    EXPECT_EQ(reports[2], Reports{"asked for a key of ours that has expired and was refused"});
    EXPECT_EQ(reports[1], Reports{"refuses our key"});
}

/// Each step of the guide's, with hosts that have taken it and hosts that have not.
TEST_F(SecureHosts, old_and_new_key_of_a_host_side_by_side) {
    const std::vector<std::vector<Own>> steps = {{{202}}, {{202}, {212}}, {{212}, {202}}, {{212}}};
    const std::vector<std::vector<Told>> others = {
        {{2, 202}}, {{2, 202}, {2, 212}}, {{2, 212}, {2, 202}}, {{2, 212}}};
    const std::pair<std::size_t, std::size_t> taken[] = {{0, 0}, {1, 0}, {1, 1}, {2, 1},
                                                         {2, 2}, {2, 3}, {3, 3}};
    for (const auto& [ours, theirs] : taken) {
        own[2] = steps[ours];
        told[1] = others[theirs];
        for (const bool asks : {true, false}) {
            reopen();
            if (asks) {
                meet();
            } else {
                a.device->listen(named("a"));
                b.device->resolve({address(1, host_port), named("a")}, 7);
                run(seconds(2), [&] { return a.is_up && b.is_up; });
            }
            ASSERT_TRUE(a.is_up && b.is_up) << ours << theirs << asks;
            talk();
        }
    }
    EXPECT_TRUE(reports.empty());
}

TEST_F(SecureHosts, one_that_expires_gives_way_to_the_next) {
    own[1] = {{201, 100}, {211}};
    told[2] = {{1, 201, 100}, {1, 211}};
    reopen();
    meet();
    talk();
    network.now = Time{} + seconds(100);
    reopen();
    meet();
    talk();
}

// In the open, if need be -------------------------------------------------------------------------

struct SecureIfPossible : Secure {
    void SetUp() override {
        prefer = true;
        Secure::SetUp();
    }
    bool sealed_seen = false;
    void meet_and_look() {
        network.weather = [this](const Datagram& datagram) {
            if (datagram.kind() == wire::PacketKind::data)
                sealed_seen = sealed_seen || is_sealed(datagram);
            return Fate{network.delay};
        };
        meet();
        a.lends = true;
        const std::string payload(1200, 'x');
        a.send(payload);
        b.send(payload);
        ASSERT_TRUE(run(seconds(5), [&] { return !a.received.empty() && !b.received.empty(); }));
        EXPECT_EQ(a.received.back(), payload);
        EXPECT_EQ(b.received.back(), payload);
        talk();
    }
};

TEST_F(SecureIfPossible, where_both_have_a_key_all_is_sealed) {
    meet_and_look();
    EXPECT_TRUE(sealed_seen);
    EXPECT_TRUE(reports.empty());
}

TEST_F(SecureIfPossible, who_has_none_is_spoken_to_in_the_open_and_that_is_told) {
    keys[2] = {};
    reopen();
    meet_and_look();
    EXPECT_FALSE(sealed_seen);
    EXPECT_EQ(reports[1], Reports{"has no key for the wire: what it and we say is in the open"});
    EXPECT_GT(ports[1]->totals().in_the_open, 0U);
    a.device.reset();
    EXPECT_TRUE(run(milliseconds(10), [&] { return count(b, PathEventKind::down) == 1; }))
        << "the end is heard";
}

TEST_F(SecureIfPossible, who_has_none_may_ask_in_the_open) {
    keys[1] = {};
    reopen();
    meet_and_look();
    EXPECT_FALSE(sealed_seen);
}

/// The point of pinning: whoever makes a host look as if it had no key gains nothing.
TEST_F(SecureIfPossible, a_host_whose_key_is_known_is_not_spoken_to_in_the_open) {
    keys = {};
    own[1] = {{201}};
    told[1] = {{2, 202}};
    reopen();
    expect_unreachable(microseconds(40));
    EXPECT_EQ(reports[1],
              std::vector<std::string>{"has no key for the wire, or is too old for one"});
    own = {{2, {{202}}}};
    told = {{2, {{1, 201}}}};
    reports.clear();
    reopen();
    expect_unreachable(microseconds(40));
    EXPECT_EQ(reports[2], std::vector<std::string>{"asked without a key and was refused"});
}

/// A path that is sealed stays so, whatever a stranger says in the open.
TEST_F(SecureIfPossible, bare_packets_do_nothing_to_a_sealed_path) {
    std::set<std::uint64_t> identifiers;
    network.weather = [&](const Datagram& datagram) {
        identifiers.insert(quoted_connection(datagram.bytes));
        return Fate{network.delay};
    };
    meet();
    talk();
    network.weather = nullptr;
    for (const std::uint64_t identifier : identifiers) {
        std::array<std::byte, wire::connecting_length_max> room;
        const std::uint32_t length = wire::emit_close(identifier, wire::CloseReason::left, room);
        const std::vector<std::byte> close(room.begin(), room.begin() + length);
        network.deliver(network.now, {address(1, 40000), address(2, 40000), close});
        network.deliver(network.now, {address(2, 40000), address(1, 40000), close});
    }
    run(seconds(1));
    EXPECT_EQ(count(a, PathEventKind::down) + count(b, PathEventKind::down), 0U);
    talk();
}

// -------------------------------------------------------------------------------------------------

/// A path that says little has other keys all the same, and nothing is lost by it.
TEST_F(Secure, keys_change_by_time) {
    limits.age = seconds(10);
    reopen();
    std::set<std::uint64_t> used;
    network.weather = [&](const Datagram& datagram) {
        if (datagram.kind() == wire::PacketKind::data && is_sealed(datagram))
            used.insert(wire::get<std::uint64_t>(datagram.bytes.data() + sealed::number) /
                        limits.packets);
        return Fate{network.delay};
    };
    meet();
    for (int n = 0; n < 20; ++n) {
        talk();
        run(seconds(3));
    }
    EXPECT_GE(used.size(), 5U) << "in a minute";
    EXPECT_LE(used.size(), 8U);
    EXPECT_EQ(ports[1]->totals().forged + ports[2]->totals().forged, 0U);
}

/// Any of the packets that make the path is lost: they are said again, and cost nothing again.
TEST_F(Secure, lost_hellos_and_welcomes) {
    for (int lost = 0; lost < 6; ++lost) {
        reopen();
        network.weather = [this, n = 0, lost](const Datagram&) mutable {
            return n++ == lost ? Fate{} : Fate{network.delay};
        };
        meet();
        talk();
        EXPECT_EQ(ports[1]->totals().handshakes, 1U) << lost;
        EXPECT_EQ(ports[2]->totals().handshakes, 1U) << lost;
    }
}

/// The first hello is said again before its answer is there: two cookies, one handshake.
TEST_F(Secure, a_way_longer_than_patience_with_a_hello) {
    network.delay = milliseconds(70);
    meet();
    talk();
    EXPECT_EQ(ports[2]->totals().handshakes, 1U);
    EXPECT_EQ(ports[1]->totals().forged + ports[2]->totals().forged, 0U);
}

void talk_much(Secure& scene, int messages) {
    for (int n = 0; n < messages; ++n) scene.a.send("message " + std::to_string(n));
    ASSERT_TRUE(scene.run(seconds(20), [&] {
        return scene.b.received.size() >= static_cast<std::size_t>(messages);
    }));
    scene.run(seconds(2));
    ASSERT_EQ(scene.b.received.size(), static_cast<std::size_t>(messages));
    for (int n = 0; n < messages; ++n)
        ASSERT_EQ(scene.b.received[static_cast<std::size_t>(n)], "message " + std::to_string(n));
    EXPECT_EQ(count(scene.a, PathEventKind::down) + count(scene.b, PathEventKind::down), 0U);
}

/// Where both ask, one hello is not needed. Late, or said again by a stranger, it takes nothing
/// from the path that is there, and what was kept for it goes.
TEST_F(Secure, a_late_hello_of_two_that_crossed_ends_nothing) {
    std::vector<Datagram> late;
    network.weather = [&](const Datagram& datagram) {
        if (datagram.from != address(2, 40000) || datagram.bytes.size() != sealed::hello_length)
            return Fate{network.delay};
        late.push_back(datagram);
        return Fate{};
    };
    a.device->listen(named("a"));
    b.device->resolve({address(1, host_port), named("a")}, 9);
    run(microseconds(50));
    meet();
    run(milliseconds(10));
    ASSERT_FALSE(late.empty());
    network.deliver(network.now, late.front());
    run(seconds(10));
    EXPECT_EQ(count(a, PathEventKind::down) + count(b, PathEventKind::down), 0U);
    talk();
    EXPECT_EQ(ports[2]->sessions(), 1U);
}

/// Keys change every 64 packets, in the middle of loss and reordering.
TEST_F(Secure, keys_change_and_nothing_is_lost) {
    limits.packets = 64;
    reopen();
    Random random(3);
    network.weather = [&](const Datagram&) {
        return random.chance(5) ? Fate{}
                                : Fate{network.delay +
                                       microseconds(static_cast<std::int64_t>(random.below(100)))};
    };
    meet();
    for (int n = 0; n < 40; ++n) {
        for (int m = 0; m < 25; ++m) a.send("message " + std::to_string(n * 25 + m));
        run(milliseconds(2));
    }
    ASSERT_TRUE(run(seconds(10), [&] { return b.received.size() == 1000; }));
    for (std::size_t n = 0; n < 1000; ++n) ASSERT_EQ(b.received[n], "message " + std::to_string(n));
    EXPECT_GT(a.device->statistics(a.path).packets_sent, 500U);
    EXPECT_EQ(ports[2]->totals().forged, 0U);
}

/// Everything that was ever sent comes again, at any time and from any address.
TEST_F(Secure, what_is_repeated_counts_once) {
    Random random(5);
    std::vector<Datagram> seen;
    network.weather = [&](const Datagram& datagram) {
        seen.push_back(datagram);
        for (int n = 0; n < 4; ++n) {
            Datagram again = seen[random.below(seen.size())];
            if (random.chance(10)) std::swap(again.from, again.to);
            network.deliver(
                network.now + microseconds(static_cast<std::int64_t>(random.below(2'000'000))),
                again);
        }
        return Fate{network.delay};
    };
    meet();
    talk_much(*this, 300);
    EXPECT_EQ(ports[1]->totals().handshakes, 1U);
    EXPECT_EQ(ports[2]->totals().handshakes, 1U);
    EXPECT_GT(ports[2]->totals().replayed, 100U);
}

/// Beside each packet come copies that were changed or cut. Of those that make a path the true ones
/// are late, so that the forged ones are first.
TEST_F(Secure, what_is_changed_counts_for_nothing) {
    Random random(7);
    network.weather = [&](const Datagram& datagram) {
        for (int n = 0; n < 6; ++n) {
            Datagram changed = datagram;
            if (random.chance(20)) {
                changed.bytes.resize(20 + random.below(changed.bytes.size() - 19));
            } else {
                changed.bytes[4 + random.below(changed.bytes.size() - 4)] ^=
                    static_cast<std::byte>(1 + random.below(255));
            }
            // Whoever forges can compute a checksum.
            const bool has_one = wire::get<std::uint32_t>(datagram.bytes.data()) != 0;
            if (has_one)
                wire::put(changed.bytes.data(),
                          wire::crc32c(std::span<const std::byte>(changed.bytes).subspan(4)));
            // Bare packets and the first hello can be forged: that is asking for a path anew.
            const bool may_delay =
                !is_sealed(datagram) || datagram.bytes.size() == sealed::bare_hello_length;
            if (!may_delay) network.deliver(network.now + microseconds(1), changed);
        }
        return Fate{network.delay};
    };
    meet();
    talk_much(*this, 300);
    EXPECT_GT(ports[2]->totals().forged, 100U);
}

/// A long message's packets are sealed from where the program has its bytes, those that the port
/// did not take from what was there when the turn ended.
TEST_F(Secure, payloads_are_sealed_from_where_they_lie) {
    meet();
    a.lends = true;
    std::string payload;
    for (int n = 0; n < 6000; ++n) payload += static_cast<char>('a' + n % 26);
    a.port().send_max = 2;
    ASSERT_EQ(a.send_run(payload, 1000), 6U);
    a.device->transmit(a.path);
    a.device->notify();
    ASSERT_EQ(a.lent.size(), 1U);
    a.lent.front().assign(payload.size(), 'y');
    a.port().send_max = 100;
    a.send(std::string(1000, 'z'));
    ASSERT_TRUE(run(seconds(1), [&] { return b.received.size() == 7; }));
    std::string all;
    for (const std::string& one : b.received) all += one;
    EXPECT_EQ(all, payload + std::string(1000, 'z'));
    a.lends = false;
    a.send(std::string(1000, 'c'));
    ASSERT_TRUE(run(seconds(1), [&] { return b.received.size() == 8; }));
    EXPECT_EQ(b.received.back(), std::string(1000, 'c'))
        << "copied, though it might have been lent";
}

/// What a key opened has no checksum, and the device asks for none; a bare packet still has one.
TEST_F(Secure, a_tag_takes_the_place_of_a_checksum) {
    meet();
    run(milliseconds(10));
    network.log.clear();
    a.send("sealed");
    network.now = network.now + network.delay;
    std::array<Incoming, 4> came;
    ASSERT_EQ(ports[2]->receive(came), 1U);
    EXPECT_TRUE(came[0].authentic);
    EXPECT_EQ(wire::get<std::uint32_t>(came[0].bytes), 0U);
    ports[2]->release();
    b.device->listen(named("other"));
    a.device->resolve({address(2, host_port), named("other")}, 8);
    network.now = network.now + network.delay;
    ASSERT_EQ(ports[2]->receive(came), 1U);
    EXPECT_FALSE(came[0].authentic);
    EXPECT_TRUE(wire::has_checksum({came[0].bytes, came[0].length}));
    ports[2]->release();
}

/// A stranger who knows all identifiers and says what version 1 would believe.
TEST_F(Secure, bare_packets_do_nothing) {
    std::set<std::uint64_t> identifiers;
    network.weather = [&](const Datagram& datagram) {
        identifiers.insert(quoted_connection(datagram.bytes));
        return Fate{network.delay};
    };
    meet();
    talk();
    network.weather = nullptr;
    const std::size_t received = b.received.size();
    for (const std::uint64_t identifier : identifiers) {
        std::array<std::byte, wire::connecting_length_max> room;
        std::vector<std::vector<std::byte>> packets;
        const auto add = [&](std::uint32_t length) {
            packets.emplace_back(room.begin(), room.begin() + length);
        };
        for (const auto why : {wire::CloseReason::left, wire::CloseReason::broke_the_protocol,
                               wire::CloseReason::unknown_path})
            add(wire::emit_close(identifier, why, room));
        add(wire::emit_refuse(identifier, wire::PathRefusal::unknown_instance, room));
        add(wire::emit_unsupported(identifier, room));
        std::vector<std::byte> data(wire::data_header_length + wire::chunk_prefix_length);
        wire::emit_ping_chunk(data.data() + wire::data_header_length);
        wire::seal_data(data, identifier, 1'000'000);
        packets.push_back(data);
        for (const auto& bytes : packets) {
            network.deliver(network.now, {address(1, 40000), address(2, 40000), bytes});
            network.deliver(network.now, {address(2, 40000), address(1, 40000), bytes});
        }
    }
    run(seconds(1));
    EXPECT_EQ(count(a, PathEventKind::down) + count(b, PathEventKind::down), 0U);
    EXPECT_EQ(b.received.size(), received);
    EXPECT_GT(ports[1]->totals().bare, 0U);
    EXPECT_GT(ports[2]->totals().bare, 0U);
    talk();
}

/// Anybody can refuse in the other's name, or be faster with a copy of its welcome.
TEST_F(Secure, forged_refusals_and_welcomes_keep_no_path_from_being_made) {
    network.weather = [&](const Datagram& datagram) {
        std::array<std::byte, wire::connecting_length_max> room;
        const std::uint64_t connection = quoted_connection(datagram.bytes);
        const auto say = [&](std::uint32_t length) {
            network.deliver(network.now + microseconds(1),
                            {datagram.to, datagram.from, {room.begin(), room.begin() + length}});
        };
        if (datagram.bytes.size() == sealed::hello_length) {
            say(wire::emit_refuse(connection, wire::PathRefusal::not_admitted, room));
            say(wire::emit_unsupported(connection, room));
        }
        if (datagram.kind() == wire::PacketKind::welcome) {
            Datagram copy = datagram;
            copy.from = address(3, 3003);
            network.deliver(network.now + microseconds(1), copy);
        }
        return Fate{network.delay};
    };
    meet();
    talk();
}

/// Whoever has not the key gets no handshake, no memory, and few answers.
TEST_F(Secure, a_flood_of_hellos_costs_no_handshake_and_no_memory) {
    meet();
    std::array<std::byte, wire::connecting_length_max> room;
    wire::Cookie cookie;
    network.weather = [&](const Datagram& datagram) {
        if (datagram.kind() == wire::PacketKind::retry) {
            EXPECT_EQ(wire::parse_retry(datagram.bytes, cookie), wire::PacketError::none);
        }
        return Fate{network.delay};
    };
    // A stranger asks for a cookie, as everybody may, and has then everything but the key.
    const std::uint64_t connection = 77;
    wire::emit_hello(connection,
                     {2, 1, {}, {9, wire::packet_length_min, 0, wire::packet_length_min, 0}}, room);
    std::vector<std::byte> hello(room.begin(), room.begin() + sealed::bare_hello_length);
    const auto send = [&] {
        wire::put(hello.data() + 4, sealed::version);
        wire::put(hello.data(), wire::crc32c(std::span<const std::byte>(hello).subspan(4)));
        network.deliver(network.now, {address(3, 3003), address(2, 40000), hello});
    };
    send();
    run(milliseconds(1));
    ASSERT_NE(cookie.proof, 0U);
    hello.resize(sealed::hello_length);
    wire::put(hello.data() + sealed::hello_moment, cookie.moment);
    wire::put(hello.data() + sealed::hello_proof, cookie.proof + 1);
    send();
    run(milliseconds(1));
    EXPECT_EQ(ports[2]->totals().strangers, 0U) << "without a good cookie nothing is looked at";
    // With the one that it was sent instead.
    wire::put(hello.data() + sealed::hello_moment, cookie.moment);
    wire::put(hello.data() + sealed::hello_proof, cookie.proof);
    wire::put(hello.data() + sealed::hello_cipher, std::uint64_t{0});
    const std::size_t sessions = ports[2]->sessions();
    const std::uint64_t handshakes = ports[2]->totals().handshakes;
    const std::size_t answers = network.sent_by(2);
    Random random(1);
    for (int n = 0; n < 1000; ++n) {
        for (std::size_t at = sealed::hello_message; at < hello.size(); at += 8)
            wire::put(hello.data() + at, random.next());
        send();
    }
    run(milliseconds(10));
    EXPECT_EQ(ports[2]->totals().strangers, 1000U);
    EXPECT_EQ(ports[2]->totals().handshakes, handshakes);
    EXPECT_EQ(ports[2]->sessions(), sessions);
    EXPECT_LE(network.sent_by(2) - answers, 110U);
    network.weather = nullptr;
    talk();
}

/// A cookie is no key: with it, too, a hello that is not sealed makes no path.
TEST_F(Secure, a_bare_hello_with_a_good_cookie_makes_no_path) {
    const HostAddress stranger = address(3, 3003);
    const std::uint64_t connection = 77;
    std::array<std::byte, wire::connecting_length_max> room;
    wire::emit_hello(connection,
                     {2,
                      1,
                      make_cookie({2, 77}, stranger, connection, network.now),
                      {9, wire::packet_length_min, 0, wire::packet_length_min, 0}},
                     room);
    std::vector<std::byte> hello(room.begin(), room.begin() + sealed::bare_hello_length);
    const auto say = [&] {
        network.deliver(network.now, {stranger, address(2, 40000), hello});
        run(milliseconds(1));
    };
    say();
    EXPECT_EQ(ports[2]->totals().bare, 1U);
    wire::put(hello.data() + 4, sealed::version);
    wire::put(hello.data(), wire::crc32c(std::span<const std::byte>(hello).subspan(4)));
    say();
    EXPECT_EQ(ports[2]->totals().malformed, 1U);
    EXPECT_EQ(b.device->totals().paths_made, 0U);
}

/// Whoever has the key asks again and again for what is refused behind it.
TEST_F(Secure, handshakes_that_lead_to_no_path_are_forgotten) {
    const auto insider = make_insider();
    for (std::uint64_t connection = 1; connection <= 400; ++connection)
        say_joining_hello(*insider, connection);
    run(milliseconds(1));
    EXPECT_EQ(ports[2]->totals().handshakes, 400U);
    EXPECT_EQ(ports[2]->totals().forged, 400U) << "there is no path that it could join";
    EXPECT_EQ(ports[2]->sessions(), 256U);
    meet();
    talk();
}

/// One of them is made beforehand.
TEST_F(Secure, each_handshake_has_keys_of_its_own) {
    std::set<std::vector<std::byte>> keys_seen;
    std::size_t count = 0;
    network.weather = [&](const Datagram& datagram) {
        const std::size_t at = datagram.bytes.size() == sealed::hello_length ? sealed::hello_message
                               : datagram.bytes.size() == sealed::welcome_length
                                   ? sealed::welcome_message
                                   : 0;
        if (at != 0 && is_sealed(datagram)) {
            const auto key = std::span(datagram.bytes).subspan(at, secure::key_length);
            keys_seen.insert({key.begin(), key.end()});
            ++count;
        }
        return Fate{network.delay};
    };
    for (std::uint64_t n = 0; n < 5; ++n) {
        // The next one begins at once, before there was time for a key, or later.
        a.open(10 + n);
        meet();
        talk();
        a.device.reset();
        b.is_up = false;
        if (n % 2 == 0) run(seconds(2));
    }
    // And who looks at nothing between them.
    const auto insider = make_insider();
    for (const std::uint64_t connection : {1U, 2U, 3U}) say_joining_hello(*insider, connection);
    EXPECT_EQ(count, 13U);
    EXPECT_EQ(keys_seen.size(), count);
}

/// Packets of strangers before ours, more than one look takes: they are not taken for silence.
TEST_F(Secure, what_waits_behind_a_flood_is_found_in_one_look) {
    meet();
    const std::vector<std::byte> nonsense(100, static_cast<std::byte>(sealed::version));
    for (int n = 0; n < 400; ++n)
        network.deliver(network.now, {address(3, 3003), address(2, 40000), nonsense});
    a.send("behind it");
    network.now = network.now + network.delay;
    b.turn();
    EXPECT_EQ(b.received, std::vector<std::string>{"behind it"});
}

/// Who ended and began anew has other keys; his peers notice and ask for a path to him.
TEST_F(Secure, a_restart_has_other_keys) {
    meet();
    talk();
    const Datagram old = [&] {
        Datagram last;
        network.weather = [&](const Datagram& datagram) {
            if (is_sealed(datagram) && datagram.to == address(2, 40000)) last = datagram;
            return Fate{network.delay};
        };
        talk();
        network.weather = nullptr;
        return last;
    }();
    b.port().send_max = 0;  // it dies, and cannot say so
    b.open(3);
    network.deliver(network.now, old);
    EXPECT_TRUE(run(seconds(7), [&] { return count(a, PathEventKind::down) == 1; }));
    EXPECT_TRUE(b.received.empty());
    a.is_up = false;
    meet();
    talk();
}

/// Paths come and go: what they leave behind goes, too.
TEST_F(Secure, paths_that_are_over_are_forgotten) {
    for (std::uint64_t n = 0; n < 20; ++n) {
        a.open(10 + n);
        meet();
        talk();
        a.device.reset();
        b.is_up = false;
        run(seconds(2));
    }
    EXPECT_LE(ports[2]->sessions(), 2U);
}

}  // namespace
}  // namespace via::device::datagram::test::secure_port_test
