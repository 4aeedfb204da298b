// One device among peers that lie.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/random.hpp"
#include "device/shm/test_support.hpp"
#include "device/shm/wake.hpp"

namespace via::device::shm::test::hostile_test {
namespace {

/// The victim, and an honest pair of paths beside the liar's, which must not suffer.
class ShmHostile : public ::testing::Test {
protected:
    void SetUp() override {
        EXPECT_EQ(node->listen(discriminator("x")), Status::success);
        paths = connect(friendly, node, "honest");
        node.events.clear();
        descriptors = count_descriptors();
        mappings = count_mappings();
    }
    void TearDown() override {
        EXPECT_EQ(count_descriptors(), descriptors);
        EXPECT_EQ(count_mappings(), mappings);
        expect_passes(friendly, paths.from, node, paths.to, 24, 8, 1);
        expect_passes(node, paths.to, friendly, paths.from, 24, 8192, 2);
        EXPECT_FALSE(friendly.has(PathEventKind::down));
    }

    /// Who listens looks now and then whether it is known.
    void stop_listening() {
        for (const char* name : {"x", "honest"}) node->unlisten(discriminator(name));
    }
    /// The reason the liar hears; count_: none yet.
    static Refusal heard(Liar& liar) {
        const std::vector<std::byte> bytes = liar.hear();
        const auto checked = check_hello(bytes);
        if (checked || !checked.error().by_peer) return Refusal::count_;
        return checked.error().reason;
    }
    /// The liar becomes a path.
    PathId enter(Liar& liar) {
        EXPECT_TRUE(liar.enter(node->name()));
        EXPECT_TRUE(turn_until({&node}, [&] { return node.has(PathEventKind::up); }));
        EXPECT_TRUE(liar.take_greeting());
        return node.events.back().path;
    }
    void expect_down(PathId path) {
        Frame frames[8];
        EXPECT_TRUE(turn_until({&node}, [&] {
            node->receive(frames);
            node->release();
            return node.has(PathEventKind::down);
        }));
        EXPECT_EQ(node.count(PathEventKind::down), 1U);
        EXPECT_EQ(node.find(PathEventKind::down)->path, path);
    }
    void expect_closed_for(PathId path, const char* what) {
        expect_down(path);
        EXPECT_TRUE(node.reported(what));
    }
    void hang_up(Liar& liar, PathId path) {
        ::close(std::exchange(liar.socket, -1));
        expect_down(path);
    }
    static void publish(Liar& liar, std::uint32_t position, std::uint64_t lengths) {
        liar.ring()[position % 1024].words[0].store(lengths << 32 | (position + 1));
    }

    Directory directory;
    Node node{directory}, friendly{directory};
    Paths paths{};
    std::size_t descriptors = 0, mappings = 0;
};

TEST_F(ShmHostile, LiesInTheGreetingAreRefusedByName) {
    struct Lie {
        void (*tell)(Hello&);
        Refusal expected;
    };
    const Lie lies[] = {
        {[](Hello& h) { h.head.magic = 0; }, Refusal::protocol},
        {[](Hello& h) { h.head.version = 7; }, Refusal::version},
        {[](Hello& h) { h.required = 8; }, Refusal::features},
        {[](Hello& h) { h.ring_slots = 1U << 30; }, Refusal::sizes},
        {[](Hello& h) { h.memory_bytes = 1; }, Refusal::sizes},
        {[](Hello& h) { h.address[0] = 1; }, Refusal::address},
        {[](Hello& h) { h.name[0] = '/'; }, Refusal::protocol},
        // One that fits the bounds, but not the memory.
        {[](Hello& h) {
             h.ring_slots *= 2;
             h.memory_bytes += 65536;
         },
         Refusal::memory},
    };
    for (const Lie& lie : lies) {
        Liar liar(directory);
        ASSERT_TRUE(liar.connect(node->name()));
        Hello hello = liar.hello();
        lie.tell(hello);
        liar.greet(hello, liar.make_memory());
        node.reports.clear();
        node.turn();
        EXPECT_EQ(heard(liar), lie.expected);
        EXPECT_TRUE(liar.hung_up());
        EXPECT_EQ(node.reports.size(), 1U);
    }
    EXPECT_TRUE(node.events.empty());
}

TEST_F(ShmHostile, UnacceptableMemoryIsRefused) {
    for (int what = 0; what < 6; ++what) {
        Liar liar(directory);
        ASSERT_TRUE(liar.connect(node->name()));
        const Hello hello = liar.hello();
        Liar::MemoryOptions options;
        if (what == 0) options.seals = 0;
        if (what == 1) options.seals = F_SEAL_GROW | F_SEAL_SEAL;
        if (what == 2) options.bytes = liar.layout.bytes() - 4096;
        if (what == 3) options.bytes = liar.layout.bytes() + 1;
        const int memory = liar.make_memory(options);
        if (what < 4) liar.greet(hello, memory);
        if (what == 4) liar.send_bytes(&hello, sizeof hello);
        if (what == 5) liar.send_bytes(&hello, sizeof hello, {memory, memory, memory});
        node.turn();
        EXPECT_EQ(heard(liar), Refusal::memory) << what;
        EXPECT_TRUE(liar.hung_up()) << what;
    }
    EXPECT_TRUE(node.events.empty());
}

TEST_F(ShmHostile, AnUnacceptableMailboxIsRefused) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    for (int what = 0; what < 7; ++what) {
        Liar liar(directory);
        ASSERT_TRUE(liar.connect(node->name()));
        const Hello hello = liar.hello();
        const int memory = liar.make_memory();
        Liar::MemoryOptions options;
        if (what == 0) options.seals = 0;
        if (what == 1) options.seals = F_SEAL_GROW | F_SEAL_SEAL;
        if (what == 2) options.bytes = mailbox_bytes - 1;
        if (what == 3) options.bytes = 2 * mailbox_bytes;
        // Nobody can write it.
        if (what == 4) options.seals |= F_SEAL_FUTURE_WRITE;
        std::vector<int> attached{memory, liar.make_mailbox(options)};
        if (what == 5) attached.pop_back();
        if (what == 6) attached.back() = ends[0];
        liar.send_bytes(&hello, sizeof hello, attached);
        node.turn();
        EXPECT_EQ(heard(liar), what == 4 ? Refusal::resources : Refusal::memory) << what;
        EXPECT_TRUE(liar.hung_up()) << what;
    }
    EXPECT_TRUE(node.events.empty());
    for (const int fd : ends) ::close(fd);
}

TEST_F(ShmHostile, MoreDescriptorsThanWeTakeDoNotStay) {
    Liar liar(directory);
    ASSERT_TRUE(liar.connect(node->name()));
    const Hello hello = liar.hello();
    const int memory = liar.make_memory();
    liar.send_bytes(&hello, sizeof hello, std::vector<int>(12, memory));
    node.turn();
    EXPECT_TRUE(liar.hung_up());
    EXPECT_TRUE(node.events.empty());
}

TEST_F(ShmHostile, WhoDoesNotGreetIsDroppedInTime) {
    Liar silent(directory);
    ASSERT_TRUE(silent.connect(node->name()));
    node.turn();
    EXPECT_EQ(node->next_deadline(), node.now + seconds(5));
    node.now = node.now + milliseconds(4999);
    node.turn();
    EXPECT_FALSE(silent.hung_up());
    node.now = node->next_deadline();
    node.turn();
    EXPECT_TRUE(silent.hung_up());
    stop_listening();
    EXPECT_TRUE(node->next_deadline().is_never());
}

TEST_F(ShmHostile, AFloodOfSilentConnectionsKeepsNobodyOut) {
    std::vector<std::unique_ptr<Liar>> flood;
    for (int i = 0; i < 300; ++i) {
        flood.push_back(std::make_unique<Liar>(directory));
        ASSERT_TRUE(flood.back()->connect(node->name()));
    }
    Node honest(directory);
    honest->resolve(address_of("x"), 1);
    ASSERT_TRUE(turn_until({&node, &honest}, [&] { return honest.has(PathEventKind::resolved); }));
    EXPECT_LE(count_descriptors(), descriptors + 300 + 64 + 8) << "half-open ones are bounded";
    EXPECT_LE(node.reports.size(), 200U);
    flood.clear();
    honest.device.reset();
    stop_listening();
    Frame frames[1];
    ASSERT_TRUE(turn_until({&node}, [&] {
        node->receive(frames);
        return node->next_deadline().is_never() && node.has(PathEventKind::down);
    }));
}

TEST_F(ShmHostile, OneProcessMayNotTakeAllPaths) {
    std::vector<std::unique_ptr<Liar>> liars;
    std::size_t refused = 0;
    for (int i = 0; i < 100; ++i) {
        liars.push_back(std::make_unique<Liar>(directory));
        ASSERT_TRUE(liars.back()->enter(node->name()));
        node.turn();
        refused += liars.back()->hung_up();
    }
    EXPECT_EQ(node.count(PathEventKind::up), 63U) << "and the honest one makes 64";
    EXPECT_EQ(refused, 37U);
    EXPECT_TRUE(node.reported("too many connections"));
    liars.clear();
    Frame frames[1];
    ASSERT_TRUE(turn_until({&node}, [&] {
        node->receive(frames);
        return node.count(PathEventKind::down) == 63;
    }));
}

TEST_F(ShmHostile, AClaimedNameOfAnotherProcessIsNotBelieved) {
    Child child([&](Child& self) {
        Node other(directory, [](ShmConfig& config) { config.key = 77; });
        if (other->listen(discriminator("other")) != Status::success) return false;
        self.tell('r');
        for (;;) {
            other.turn();
            if (!other.wait()) return false;
        }
    });
    ASSERT_EQ(child.hear(), 'r');
    {
        Liar liar(directory);
        ASSERT_TRUE(liar.connect(node->name()));
        const std::string name = make_nic_name(child.pid, 77);
        liar.greet(make_hello(liar.layout, test_address(), name), liar.make_memory());
        node.turn();
        ASSERT_TRUE(node.has(PathEventKind::up));
        const PathId false_path = node.events.back().path;
        node->resolve(address_of("other"), 5);
        ASSERT_TRUE(turn_until({&node}, [&] { return node.has(PathEventKind::resolved); }));
        EXPECT_NE(node.find(PathEventKind::resolved)->path, false_path);
    }
    child.signal(SIGKILL);
    child.join();
    Frame frames[1];
    ASSERT_TRUE(turn_until({&node}, [&] {
        node->receive(frames);
        return node.count(PathEventKind::down) == 2;
    }));
}

TEST_F(ShmHostile, ALieInASlotEndsTheConnectionWithAReason) {
    const std::uint64_t lies[] = {57, 0xFFFE, 1U << 16 | 8, 41U << 16 | 0xFFFF, 24U << 16 | 0xFFFF};
    for (const std::uint64_t lengths : lies) {
        node.events.clear();
        Liar liar(directory);
        const PathId path = enter(liar);
        publish(liar, 0, 8);  // a good frame before the bad one
        liar.ring()[1].words[arena_word].store(1);
        publish(liar, 1, lengths);
        Frame frames[4];
        EXPECT_EQ(node->receive(frames), 1U);
        node->release();
        EXPECT_EQ(node->receive(frames), 0U);
        expect_closed_for(path, "out of bounds");
        const auto goodbye = check_farewell(liar.hear());
        ASSERT_TRUE(goodbye);
        EXPECT_NE(goodbye->find("out of bounds"), std::string::npos);
        EXPECT_TRUE(liar.hung_up());
    }
}

TEST_F(ShmHostile, ALieAboutTheHeadEndsTheConnection) {
    for (const std::uint32_t head : {1U, 0xFFFFFFFFU, 0x80000000U}) {
        node.events.clear();
        Liar liar(directory);
        const PathId path = enter(liar);
        liar.control().head.store(head);
        unsigned sent = 0;
        while (send(*node, path, 24, 8, sent)) ++sent;
        EXPECT_EQ(sent, head == 1 ? 1025U : 1024U);
        if (head == 1) {  // when it is read that is the truth
            liar.control().head.store(2000);
            while (send(*node, path, 24, 8, sent)) ++sent;
        }
        expect_closed_for(path, "never sent");
    }
}

TEST_F(ShmHostile, AFrozenOrRandomHeadIsBackPressureAtMost) {
    Liar liar(directory);
    const PathId path = enter(liar);
    Random random(3);
    unsigned sent = 0;
    for (int i = 0; i < 3000 && !node->has_work(); ++i) {
        while (send(*node, path, 24, 1000, sent)) ++sent;
        liar.control().head.store(static_cast<std::uint32_t>(random.below(sent + 1)));
    }
    liar.control().head.store(0x7FFFFFFF);
    send(*node, path, 24, 8192, 1);
    for (int i = 0; i < 200; ++i) send(*node, path, 24, 8192, 1);
    expect_down(path);
}

TEST_F(ShmHostile, NonsenseInTheSleepWordCostsNothing) {
    Liar liar(directory);
    const PathId path = enter(liar);
    Random random(8);
    std::uint32_t calls = 0;
    for (int i = 0; i < 500; ++i) {
        liar.control().asleep.store(static_cast<std::uint32_t>(random.next()) | 3);
        send(*node, path, 24, 8, 1);
        calls += node->notify();
    }
    EXPECT_EQ(calls, 0U) << "an unknown kind of sleep";
    // A peer that sleeps anew all the time and never reads its wake-ups does not block us.
    for (std::uint32_t i = 0; i < 500; ++i) {
        liar.control().asleep.store(sleep_word(Sleep::on_handle, i));
        send(*node, path, 24, 8, 1);
        calls += node->notify();
    }
    EXPECT_EQ(calls, 500U);
    hang_up(liar, path);
}

TEST_F(ShmHostile, NonsenseOnTheSocketEndsTheConnection) {
    for (const std::size_t length :
         {std::size_t{2}, std::size_t{100}, sizeof(Farewell), sizeof(Hello), std::size_t{100000}}) {
        node.events.clear();
        node.reports.clear();
        Liar liar(directory);
        const PathId path = enter(liar);
        const std::vector<std::byte> bytes(length);
        ASSERT_TRUE(liar.send_bytes(bytes.data(), length, {liar.node_memory_fd}));
        expect_closed_for(path, "socket");
    }
}

TEST_F(ShmHostile, DescriptorsOnALiveSocketDoNotStay) {
    Liar liar(directory);
    const PathId path = enter(liar);
    for (int i = 0; i < 100; ++i) {
        const char byte = 0;
        ASSERT_TRUE(liar.send_bytes(&byte, 1, std::vector<int>(8, liar.node_memory_fd)));
        node.turn();
    }
    hang_up(liar, path);
}

TEST_F(ShmHostile, TooManyWakeUpsForNothingEndTheConnection) {
    Liar liar(directory);
    const PathId path = enter(liar);
    const char byte = 0;
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(liar.send_bytes(&byte, 1));
        node.turn();
    }
    EXPECT_FALSE(node.has(PathEventKind::down)) << "the limit is 1000 in a second";
    node.now = node.now + seconds(2);
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(liar.send_bytes(&byte, 1));
        node.turn();
    }
    EXPECT_FALSE(node.has(PathEventKind::down));
    for (int i = 0; i < 3 && !node.has(PathEventKind::down); ++i) {
        liar.send_bytes(&byte, 1);
        node.turn();
    }
    expect_closed_for(path, "wakes us");
}

TEST_F(ShmHostile, ManyWakeUpsWithFramesAreFine) {
    Liar liar(directory);
    const PathId path = enter(liar);
    const char byte = 0;
    Frame frames[2];
    for (std::uint32_t i = 0; i < 3000; ++i) {
        publish(liar, i, 8);
        ASSERT_TRUE(liar.send_bytes(&byte, 1));
        node.turn();
        ASSERT_EQ(node->receive(frames), 1U);
        node->release();
    }
    EXPECT_FALSE(node.has(PathEventKind::down));
    hang_up(liar, path);
}

TEST_F(ShmHostile, TooManyFutexWakeUpsForNothingEndTheConnection) {
    Liar liar(directory);
    const PathId path = enter(liar);
    node.turn();
    for (std::uint32_t i = 1; i <= 1001; ++i) {
        liar.control().wakes.store(i);
        WakeWord words[4];
        node->wake_words(words);
    }
    node.turn();
    expect_closed_for(path, "wakes us");
}

TEST_F(ShmHostile, TooManyFutexWakeUpsThatChangeNothingEndTheConnection) {
    Liar liar(directory);
    const PathId path = enter(liar);
    node.turn();
    WakeWord words[4];
    for (std::uint32_t i = 1; i <= 1001; ++i) {
        ASSERT_EQ(node->wake_words(words), 2U) << "the first is a bystander's";
        node->woken_by(words[1]);
    }
    EXPECT_LE(node->next_deadline(), node.now) << "it is looked at, though nothing else is due";
    node.turn();
    expect_closed_for(path, "wakes us");
}

TEST_F(ShmHostile, ManyFutexWakeUpsWithFramesAreFine) {
    Liar liar(directory);
    const PathId path = enter(liar);
    node.turn();
    Frame frames[2];
    for (std::uint32_t i = 0; i < 3000; ++i) {
        WakeWord words[4];
        node->wake_words(words);
        publish(liar, i, 8);
        node->woken_by(words[1]);  // of one whose peer made the call late
        ASSERT_EQ(node->receive(frames), 1U);
        node->release();
    }
    node.turn();
    EXPECT_FALSE(node.has(PathEventKind::down));
    hang_up(liar, path);
}

TEST_F(ShmHostile, AnEmptyMessageIsTheEnd) {
    Liar liar(directory);
    const PathId path = enter(liar);
    ASSERT_TRUE(liar.send_bytes("", 0));
    expect_down(path);
}

TEST_F(ShmHostile, WhoHangsUpAndGoesOnWritingIsHeardForOneRingAtMost) {
    Liar liar(directory);
    const PathId path = enter(liar);
    ::close(liar.socket);
    liar.socket = -1;
    node.turn();
    Frame frames[16];
    std::uint32_t position = 0;
    for (int i = 0; i < 10000 && !node.has(PathEventKind::down); ++i) {
        for (int k = 0; k < 16; ++k) publish(liar, position++, 8);
        node->receive(frames);
        node->release();
        node.turn();
    }
    expect_down(path);
    EXPECT_LE(position, 1024U + 64U);
}

TEST_F(ShmHostile, WhoHangsUpAndGoesOnWritingByTheMailboxIsHeardForNoLonger) {
    Liar liar(directory);
    const PathId path = enter(liar);
    ::close(liar.socket);
    liar.socket = -1;
    node.turn();
    Frame frames[16];
    std::uint32_t number = 0;
    for (int i = 0; i < 10000 && !node.has(PathEventKind::down); ++i) {
        liar.mailbox->words[0].store(std::uint64_t{24} << 32 | ++number);
        EXPECT_LE(node->receive(frames), 1U);
        node->release();
        node.turn();
    }
    expect_down(path);
    EXPECT_GT(number, 1000U) << "it was heard";
    EXPECT_LE(number, 1024U + 8U);
}

TEST_F(ShmHostile, LiesInTheMailbox) {
    Frame frames[16];
    {
        Liar liar(directory);
        const PathId path = enter(liar);
        // Behind frames that do not come: what is in the ring is heard all the same, and who
        // sleeps is not kept awake.
        liar.mailbox->words[0].store(std::uint64_t{500} << 46 | std::uint64_t{24} << 32 | 1);
        EXPECT_EQ(node->receive(frames), 0U);
        EXPECT_FALSE(node->has_work());
        publish(liar, 0, 8);
        EXPECT_TRUE(node->has_work());
        EXPECT_EQ(node->receive(frames), 1U);
        node->release();
        EXPECT_EQ(node->receive(frames), 0U);
        node.turn();
        EXPECT_FALSE(node.has(PathEventKind::down));
        // Longer than line and room.
        liar.mailbox->words[0].store(std::uint64_t{16 + payload_max + 1} << 32 | 1);
        EXPECT_EQ(node->receive(frames), 0U);
        expect_closed_for(path, "out of bounds");
        EXPECT_TRUE(liar.hung_up());
    }
}

TEST_F(ShmHostile, RandomBytesEverywhereHurtNobodyElse) {
    Random random(20);
    for (int round = 0; round < 200; ++round) {
        node.events.clear();
        Liar liar(directory);
        const PathId path = enter(liar);
        const auto scribble = [&] {
            auto* words = reinterpret_cast<Atomic<std::uint64_t>*>(liar.memory);
            for (int i = 0; i < 50; ++i) {
                const std::size_t at = random.below(random.chance(50) ? 64 : 1000);
                words[random.chance(50) ? at : 512 + at].store(random.next());
            }
            if (random.chance(50)) {  // plausible slots, so that more than the stamp is looked at
                const auto position = static_cast<std::uint32_t>(random.below(16));
                liar.ring()[position].words[arena_word].store(random.next() & 0x3FFF'000F'FFC0);
                publish(liar, position,
                        random.chance(50) ? random.below(58) : random.below(42) << 16 | 0xFFFF);
            }
        };
        for (int step = 0; step < 50 && !node.has(PathEventKind::down); ++step) {
            scribble();
            Frame frames[32];
            const std::size_t count = node->receive(frames);
            for (std::size_t i = 0; i < count; ++i) {
                ASSERT_LE(frames[i].length, slot_room);
                ASSERT_LE(frames[i].payload_length, payload_max);
                unsigned sum = 0;  // every byte of it can be touched
                for (std::uint32_t k = 0; k < frames[i].payload_length; ++k) {
                    sum += static_cast<unsigned>(frames[i].payload[k]);
                }
                ASSERT_LE(sum, 255U * payload_max);
            }
            node->release();
            if (random.chance(30))
                send(*node, path, 24, static_cast<std::uint32_t>(random.below(payload_max + 1)), 1);
            node->set_waiting_for_room(path);
            node->arm(random.chance(50) ? Sleep::on_handle : Sleep::on_words);
            WakeWord words[2];
            node->wake_words(words);
            node->has_work();
            node->notify();
            node->arm(Sleep::awake);
            node.turn();
        }
        hang_up(liar, path);
    }
}

// ---------------------------------------------------------------- a liar who listens

/// A name in the directory that leads to the liar's listening socket.
class ShmHostileListener : public ShmHostile {
protected:
    void SetUp() override {
        ShmHostile::SetUp();
        name = make_nic_name(::getpid(), 0xE71);
        listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string path = directory.path + "/" + name;
        std::memcpy(address.sun_path, path.c_str(), path.size());
        ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        ASSERT_EQ(::listen(listener, 4), 0);
        ASSERT_EQ(::symlink(name.c_str(), (directory.path + "/d-6c").c_str()), 0);
    }
    void TearDown() override {
        ::close(listener);
        ShmHostile::TearDown();
    }
    /// The node resolves; the liar has its socket and has heard the greeting.
    void begin(Liar& liar) {
        node.events.clear();
        node->resolve(address_of("l"), 9);
        liar.socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        ASSERT_GE(liar.socket, 0);
        ASSERT_TRUE(liar.take_greeting());
    }
    void expect_unresolved(Status status) {
        node.turn();
        ASSERT_EQ(node.count(PathEventKind::unresolved), 1U);
        EXPECT_EQ(node.find(PathEventKind::unresolved)->status, status);
        EXPECT_EQ(node.find(PathEventKind::unresolved)->cookie, 9U);
        EXPECT_EQ(node.events.size(), 1U);
    }

    std::string name;
    int listener = -1;
};

TEST_F(ShmHostileListener, MayAlsoBeHonest) {
    Liar liar(directory);
    begin(liar);
    liar.greet_back(make_hello(liar.layout, test_address(), name), liar.make_memory());
    node.turn();
    ASSERT_TRUE(node.has(PathEventKind::resolved));
    const PathId path = node.events[0].path;
    publish(liar, 0, 8);
    Frame frames[1];
    EXPECT_EQ(node->receive(frames), 1U);
    hang_up(liar, path);
}

TEST_F(ShmHostileListener, LiesInTheAnswer) {
    for (int what = 0; what < 5; ++what) {
        Liar liar(directory);
        begin(liar);
        Hello hello = make_hello(liar.layout, test_address(), name);
        if (what == 0) hello.head.version = channel_version + 1;
        if (what == 1) hello.ring_slots = 7;
        if (what == 2) hello.address[1] = 9;
        Liar::MemoryOptions options;
        if (what == 3) options.seals = 0;
        const int memory = liar.make_memory(options);
        if (what == 4) {
            liar.send_bytes(&hello, 50, {memory});
        } else {
            liar.greet_back(hello, memory);
        }
        expect_unresolved(Status::not_reachable);
        EXPECT_FALSE(node.reports.empty());
    }
}

TEST_F(ShmHostileListener, RefusalsAreTold) {
    Liar liar(directory);
    begin(liar);
    const Farewell refusal = make_refusal(Refusal::resources, "full up");
    liar.send_bytes(&refusal, sizeof refusal);
    expect_unresolved(Status::error_resource);
    EXPECT_TRUE(node.reported("full up"));
    Liar other(directory);
    begin(other);
    const Farewell version = make_refusal(Refusal::version, "ours is 2");
    other.send_bytes(&version, sizeof version);
    expect_unresolved(Status::not_reachable);
    EXPECT_TRUE(node.reported("ours is 2"));
}

TEST_F(ShmHostileListener, HangsUpWithoutAWord) {
    Liar liar(directory);
    begin(liar);
    ::close(liar.socket);
    liar.socket = -1;
    expect_unresolved(Status::no_match);
}

TEST_F(ShmHostileListener, SaysNothing) {
    Liar liar(directory);
    begin(liar);
    node.turn();
    EXPECT_TRUE(node.events.empty());
    node.now = node->next_deadline();
    expect_unresolved(Status::timeout);
    EXPECT_TRUE(liar.hung_up());
}

TEST_F(ShmHostileListener, AFullQueueIsTriedAgainUntilTheDeadline) {
    std::vector<std::unique_ptr<Liar>> fillers;
    for (int i = 0; i < 5; ++i) {
        fillers.push_back(std::make_unique<Liar>(directory));
        ASSERT_TRUE(fillers.back()->connect(name));
    }
    node.events.clear();
    node->resolve(address_of("l"), 9);
    node.turn();
    EXPECT_TRUE(node.events.empty());
    EXPECT_LT(node->next_deadline(), node.now + milliseconds(10));
    for (int i = 0; i < 5; ++i) ::close(::accept(listener, nullptr, nullptr));
    node.now = node->next_deadline();
    node.turn();
    Liar liar(directory);
    liar.socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    ASSERT_GE(liar.socket, 0);
    EXPECT_TRUE(liar.take_greeting());
    ::close(liar.socket);
    liar.socket = -1;
    expect_unresolved(Status::no_match);
}

}  // namespace
}  // namespace via::device::shm::test::hostile_test
