// A NIC over one or two loopbacks: turns, posts and completions, completion queues, deregistration.
#include "nic/nic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "device/loopback/loopback_device.hpp"
#include "queue/descriptor.hpp"

namespace via::nic::nic_test {
namespace {

using device::loopback::LoopbackDevice;
using device::loopback::LoopbackOptions;
using engine::Reliability;
using engine::ViState;

HostAddress host(std::uint8_t last) {
    HostAddress address;
    address.length = 6;
    address.bytes = {127, 0, 0, last, 0x26, 0x0D};
    return address;
}

Discriminator word(const char* text) {
    Discriminator discriminator;
    discriminator.length = static_cast<std::uint16_t>(std::strlen(text));
    std::memcpy(discriminator.bytes.data(), text, discriminator.length);
    return discriminator;
}

/// Keeps what the NIC tells its agent.
struct Attending final : Attendant {
    void attend() override { ++attended; }
    void report(const engine::ErrorEvent& event) override { events.push_back(event.code); }
    void entry_came(queue::CompletionQueue&) override { ++entries_came; }
    Time now() override {
        ++clock_reads;
        return time;
    }
    int attended = 0;
    int entries_came = 0;
    int clock_reads = 0;
    Time time{};
    void missed_by_a_page(const engine::PageMiss& miss) override { misses.push_back(miss); }
    bool wants_reports() override { return hears; }
    bool hears = true;
    std::vector<engine::ErrorCode> events;
    std::vector<engine::PageMiss> misses;
};

struct Fixture : testing::Test {
    explicit Fixture(const LoopbackOptions& options = {}, const NicLimits& wanted = {})
        : limits(wanted), nic("loopback", limits, counters, attendant) {
        nic.add_device(std::make_unique<LoopbackDevice>(host(1), options));
        memory.reset(static_cast<std::byte*>(std::aligned_alloc(64, memory_length)));
        std::memset(memory.get(), 0, memory_length);
        descriptors.reset(static_cast<queue::Descriptor*>(
            std::aligned_alloc(64, descriptors_max * sizeof(queue::Descriptor))));
        handle =
            nic.register_memory(address(0), memory_length, {memory::no_tag, true, true}).value();
        descriptor_handle = nic.register_memory(reinterpret_cast<std::uint64_t>(descriptors.get()),
                                                descriptors_max * sizeof(queue::Descriptor), {})
                                .value();
    }

    std::uint64_t address(std::size_t offset) const {
        return reinterpret_cast<std::uint64_t>(memory.get()) + offset;
    }
    engine::Vi& make_vi(Reliability reliability, queue::CompletionQueue* completions = nullptr) {
        engine::ViAttributes wanted;
        wanted.reliability = reliability;
        wanted.transfer_length_max = memory_length;
        wanted.rdma_write = wanted.rdma_read = true;
        return *nic.with_turn(
            [&] { return nic.engine().create_vi(wanted, completions, completions).value(); });
    }
    void connect(engine::Vi& client, engine::Vi& server, std::uint8_t to = 1) {
        engine::Listener listener;
        listener.discriminator = word("ear");
        ASSERT_EQ(nic.listen(listener), Status::success);
        ASSERT_EQ(nic.connect(client, {}, {host(to), word("ear")}, Time::never()), Status::success);
        poll();
        ASSERT_TRUE(nic.unlisten(listener));
        EXPECT_EQ(listener.remote_host, host(to));
        ASSERT_EQ(nic.with_turn([&] { return nic.engine().accept(listener.connection, server); }),
                  Status::success);
        poll();
        ASSERT_EQ(client.state.load(), ViState::connected);
        ASSERT_EQ(server.state.load(), ViState::connected);
    }
    /// Until nothing happens any more.
    void poll() {
        for (int quiet = 0; quiet < 3;) quiet = nic.poll() ? 0 : quiet + 1;
    }
    queue::Descriptor& make(std::size_t offset, std::uint32_t length, std::uint16_t control = 0) {
        queue::Descriptor& descriptor = descriptors.get()[made++ % descriptors_max];
        std::memset(static_cast<void*>(&descriptor), 0, sizeof descriptor);
        descriptor.control.control = control;
        descriptor.control.segment_count = 1;
        descriptor.control.length = length;
        descriptor.segments[0] = {address(offset), handle, length};
        return descriptor;
    }
    queue::Descriptor& send(engine::Vi& vi, std::size_t offset, std::uint32_t length) {
        queue::Descriptor& descriptor = make(offset, length);
        EXPECT_EQ(nic.post_send(vi, &descriptor, descriptor_handle), Status::success);
        return descriptor;
    }
    queue::Descriptor& receive(engine::Vi& vi, std::size_t offset, std::uint32_t length) {
        queue::Descriptor& descriptor = make(offset, length);
        EXPECT_EQ(nic.post_receive(vi, &descriptor, descriptor_handle), Status::success);
        return descriptor;
    }

    struct Free {
        void operator()(void* pointer) const { std::free(pointer); }
    };
    static constexpr std::size_t memory_length = 1 << 20;
    static constexpr std::size_t descriptors_max = 256;

    NicLimits limits;
    Counters counters{};
    Attending attendant;
    Nic nic;
    std::unique_ptr<std::byte, Free> memory;
    std::unique_ptr<queue::Descriptor, Free> descriptors;
    memory::MemoryHandle handle = 0;
    memory::MemoryHandle descriptor_handle = 0;
    std::size_t made = 0;
};

struct NicTest : Fixture {
    engine::Vi& client = make_vi(Reliability::delivery);
    engine::Vi& server = make_vi(Reliability::delivery);
};

/// Says what it is told to say; takes and brings nothing.
struct Claimant final : AbsentDevice, device::Retransmission {
    explicit Claimant(bool retransmits = false) : retransmits_(retransmits) {
        capabilities_ = {.payload_max = engine::connect_payload_max,
                         .header_max = 40,
                         .large_length_min = ~0U,
                         .lossless = !retransmits,
                         .ordered = true};
    }
    device::Retransmission* retransmission() override { return retransmits_ ? this : nullptr; }
    std::size_t reap(std::span<device::Reaped>) override { return 0; }
    device::Capabilities& says() { return capabilities_; }
    bool retransmits_;
};

TEST(Misfit, a_device_that_reorders_or_loses_without_a_word_is_not_taken) {
    for (const bool retransmits : {false, true}) {
        const auto is_taken = [retransmits](auto claim) {
            Claimant device(retransmits);
            claim(device.says());
            return misfit(device) == nullptr;
        };
        EXPECT_TRUE(is_taken([](auto&) {}));
        EXPECT_FALSE(is_taken([](auto& says) { says.lossless = !says.lossless; }));
        EXPECT_FALSE(is_taken([](auto& says) { says.ordered = false; }));
        EXPECT_FALSE(is_taken([](auto& says) { --says.payload_max; }));
        EXPECT_FALSE(is_taken([](auto& says) { --says.header_max; }));
    }
}

TEST_F(NicTest, Vipl_4_20_connect_answers) {
    ASSERT_EQ(nic.connect(client, {}, {host(1), word("nobody")}, Time::never()), Status::success);
    poll();
    EXPECT_EQ(client.state.load(), ViState::idle);
    EXPECT_EQ(client.connect_status, Status::no_match);
    ASSERT_EQ(nic.connect(client, {}, {host(9), word("ear")}, Time::never()), Status::success);
    poll();
    EXPECT_EQ(client.connect_status, Status::not_reachable);
}

/// The name is held by a VI that waits for a peer; then somebody listens to it.
TEST_F(NicTest, a_request_that_insists_waits_for_a_listener_only_where_the_name_is_held) {
    const NetAddress remote{host(1), word("ear")};
    ASSERT_EQ(nic.connect(client, {}, remote, Time::never(), {}, Nic::Asking::insisting),
              Status::success);
    poll();
    EXPECT_EQ(client.connect_status, Status::no_match) << "nobody has it";
    engine::Vi& holder = make_vi(Reliability::delivery);
    ASSERT_EQ(nic.connect_peer(holder, remote, {host(1), word("ear of nobody")}, Time::never()),
              Status::success);
    ASSERT_EQ(nic.connect(client, {}, remote, Time::never(), {}, Nic::Asking::insisting),
              Status::success);
    poll();
    EXPECT_EQ(client.state.load(), ViState::connect_pending);
    attendant.time = Time{} + milliseconds(10);
    poll();
    EXPECT_GT(nic.next_deadline(), attendant.time) << "it has not asked again";
    engine::Listener listener;
    listener.discriminator = word("ear");
    ASSERT_EQ(nic.listen(listener), Status::success);
    for (int round = 0; round < 10 && !listener.given.load(); ++round) {
        attendant.time = attendant.time + milliseconds(1);
        poll();
    }
    EXPECT_TRUE(nic.unlisten(listener));
    EXPECT_EQ(client.state.load(), ViState::connect_pending) << "asked, not answered";
}

/// As a server does between two calls that wait.
TEST_F(NicTest, Vipl_4_20_a_request_looks_again_for_some_milliseconds_before_it_is_no_match) {
    const NetAddress remote{host(1), word("ear")};
    const auto ask = [&](Time deadline) {
        ASSERT_EQ(nic.connect(client, {}, remote, deadline, {}, Nic::Asking::briefly),
                  Status::success);
        poll();
    };
    const auto pass = [&](Duration time) {
        for (const Time end = attendant.time + time; attendant.time < end;) {
            attendant.time = attendant.time + milliseconds(1);
            poll();
        }
    };
    ask(Time::never());
    EXPECT_EQ(client.state.load(), ViState::connect_pending);
    pass(milliseconds(100));
    EXPECT_EQ(client.state.load(), ViState::idle) << "nobody came";
    EXPECT_EQ(client.connect_status, Status::no_match);
    EXPECT_TRUE(nic.next_deadline().is_never());
    ask(attendant.time + milliseconds(1));
    EXPECT_EQ(client.connect_status, Status::no_match) << "not a timeout";
    ask(Time::never());
    engine::Listener listener;
    listener.discriminator = word("ear");
    ASSERT_EQ(nic.listen(listener), Status::success);
    pass(milliseconds(4));
    EXPECT_TRUE(nic.unlisten(listener)) << "it was found there";
    EXPECT_EQ(client.state.load(), ViState::connect_pending);
}

TEST_F(NicTest, Vipl_4_20_who_heard_late_that_nobody_is_there_does_not_look_again) {
    ASSERT_EQ(nic.connect(client, {}, {host(1), word("ear")}, Time{} + seconds(1), {},
                          Nic::Asking::briefly),
              Status::success);
    attendant.time = attendant.time + milliseconds(140);
    for (int n = 0; n < 3; ++n) poll();
    EXPECT_EQ(client.state.load(), ViState::idle);
    EXPECT_EQ(client.connect_status, Status::no_match);
}

TEST_F(NicTest, Vipl_4_22_a_peer_that_is_not_there_is_looked_for_again_though_time_is_infinite) {
    ASSERT_EQ(
        nic.connect_peer(client, {host(1), word("late")}, {host(1), word("early")}, Time::never()),
        Status::success);
    poll();
    EXPECT_EQ(client.state.load(), ViState::connect_pending);
    attendant.time = Time{} + milliseconds(10);
    poll();
    EXPECT_GT(nic.next_deadline(), attendant.time) << "it has not looked again";
}

TEST_F(NicTest, Vipl_4_20_connect_times_out_by_the_attendants_clock) {
    engine::Listener listener;
    listener.discriminator = word("ear");
    ASSERT_EQ(nic.listen(listener), Status::success);
    EXPECT_EQ(attendant.clock_reads, 0);  // no deadline, no look at the clock
    ASSERT_EQ(nic.connect(client, {}, {host(1), word("ear")}, Time{5000}), Status::success);
    attendant.time = Time{4999};
    poll();
    EXPECT_EQ(client.state.load(), ViState::connect_pending);
    attendant.time = Time{5000};
    poll();
    EXPECT_EQ(client.state.load(), ViState::idle);
    EXPECT_EQ(client.connect_status, Status::timeout);
    EXPECT_TRUE(nic.unlisten(listener));  // it had been given the request
    EXPECT_EQ(nic.with_turn([&] { return nic.engine().accept(listener.connection, server); }),
              Status::timeout);
}

/// Takes one frame in a turn, as a look at a socket takes one datagram. What comes while the
/// program stands still waits.
struct LookedAtSeldom final : LoopbackDevice {
    LookedAtSeldom() : LoopbackDevice(host(2)) {}
    std::size_t receive(std::span<device::Frame> frames) override {
        return stands_still ? 0 : LoopbackDevice::receive(frames.first(1));
    }
    bool has_work() override { return more_comes || LoopbackDevice::has_work(); }
    bool stands_still = false;
    bool more_comes = false;
};

struct LateTest : Fixture {
    LateTest() {
        auto made_device = std::make_unique<LookedAtSeldom>();
        device = made_device.get();
        nic.add_device(std::move(made_device));
        connect(client, server, 2);
        listener.discriminator = word("ear");
        EXPECT_EQ(nic.listen(listener), Status::success);
        EXPECT_EQ(nic.connect(asker, {}, {host(2), word("ear")}, Time{5000}), Status::success);
        poll();
        EXPECT_TRUE(nic.unlisten(listener)) << "it was not asked";
    }
    engine::Vi& client = make_vi(Reliability::delivery);
    engine::Vi& server = make_vi(Reliability::delivery);
    engine::Vi& asker = make_vi(Reliability::delivery);
    engine::Vi& answerer = make_vi(Reliability::delivery);
    engine::Listener listener;
    LookedAtSeldom* device = nullptr;
};

TEST_F(LateTest, Vipl_4_20_an_answer_that_waited_behind_other_frames_counts_for_who_stood_still) {
    receive(client, 0, 100);
    device->stands_still = true;
    send(server, 200, 100);
    ASSERT_EQ(nic.with_turn([&] { return nic.engine().accept(listener.connection, answerer); }),
              Status::success);
    attendant.time = Time{6000};
    device->stands_still = false;
    poll();
    EXPECT_EQ(asker.connect_status, Status::success);
    EXPECT_EQ(asker.state.load(), ViState::connected);
    EXPECT_EQ(answerer.state.load(), ViState::connected);
}

TEST_F(LateTest, Vipl_4_20_time_is_up_though_more_and_more_comes) {
    device->more_comes = true;
    attendant.time = Time{6000};
    poll();
    EXPECT_EQ(asker.state.load(), ViState::connect_pending) << "its answer may be among that";
    attendant.time = Time{6000} + milliseconds(100);
    poll();
    EXPECT_EQ(asker.connect_status, Status::timeout);
    EXPECT_EQ(asker.state.load(), ViState::idle);
}

/// A region of 50 bytes within a page, and two VIs that live through what is refused.
struct PageTest : Fixture {
    PageTest() {
        connect(client, server);
        edge = nic.register_memory(begin, 50, {memory::no_tag, true, true}).value();
    }
    std::uint64_t miss() {
        poll();
        EXPECT_LE(attendant.misses.size(), 1U);
        if (attendant.misses.empty()) return 0;
        EXPECT_EQ(attendant.misses[0].region.begin, begin);
        EXPECT_EQ(attendant.misses[0].region.end, begin + 50);
        return attendant.misses[0].address + attendant.misses[0].length;
    }
    void send_from(std::uint64_t from, std::uint32_t length) {
        queue::Descriptor& descriptor = make(0, length);
        descriptor.segments[0] = {from, edge, length};
        ASSERT_EQ(nic.post_send(client, &descriptor, descriptor_handle), Status::success);
    }
    void write_to(std::uint64_t to, std::uint32_t length) {
        queue::Descriptor& descriptor = make(0, length, queue::control::rdma_write);
        descriptor.control.segment_count = 2;
        descriptor.segments[0] = {to, edge, 0};
        descriptor.segments[1] = {address(0), handle, length};
        ASSERT_EQ(nic.post_send(client, &descriptor, descriptor_handle), Status::success);
    }
    engine::Vi& client = make_vi(Reliability::unreliable);
    engine::Vi& server = make_vi(Reliability::unreliable);
    const std::uint64_t page =
        (address(0) + memory::table_page_length) & -memory::table_page_length;
    const std::uint64_t begin = page + 1000;
    memory::MemoryHandle edge = 0;
};

TEST_F(PageTest, Vipl_4_6_a_send_from_the_regions_page_is_told_once) {
    send_from(page + memory::table_page_length, 8);
    send_from(page + memory::table_page_length - 4, 8);
    send_from(begin, 50);
    EXPECT_EQ(miss(), 0U) << "whole pages would not help, or it was allowed";
    send_from(begin + 48, 4);
    EXPECT_EQ(miss(), begin + 52);
    send_from(begin - 1, 4);
    EXPECT_EQ(miss(), begin + 52);
}
TEST_F(PageTest, Vipl_4_6_a_write_of_a_peer_to_the_regions_page_is_told) {
    write_to(page - 4, 8);
    write_to(begin + 40, 10);
    EXPECT_EQ(miss(), 0U);
    write_to(page, 8);
    EXPECT_EQ(miss(), page + 8);
}
TEST_F(PageTest, Vipl_4_6_what_the_page_does_not_allow_either_is_not_told) {
    const memory::MemoryAttributes none{};
    ASSERT_EQ(nic.change_region(edge, begin, none), Status::success);
    write_to(page, 8);
    EXPECT_EQ(miss(), 0U);
}
TEST_F(PageTest, Vipl_4_12_a_message_that_ends_in_the_page_of_its_receive_is_told) {
    queue::Descriptor& descriptor = make(0, 200);
    descriptor.segments[0] = {begin, edge, 0x10000};
    ASSERT_EQ(nic.post_receive(server, &descriptor, descriptor_handle), Status::success);
    send(client, 0, 60);
    EXPECT_EQ(miss(), begin + 60);
}
TEST_F(PageTest, Vipl_4_9_a_descriptor_in_the_page_of_its_region_is_told) {
    auto* outside = reinterpret_cast<queue::Descriptor*>(page + 2048);
    EXPECT_EQ(nic.post_send(client, outside, edge), Status::invalid_parameter);
    EXPECT_EQ(miss(), page + 2048 + sizeof(queue::Descriptor));
}
TEST_F(PageTest, Vipl_4_9_so_is_that_of_an_atomic_operation) {
    auto* outside = reinterpret_cast<queue::Descriptor*>(page + 2048);
    EXPECT_EQ(nic.post_atomic(client, outside, edge, {true, 1}), Status::invalid_parameter);
    EXPECT_EQ(miss(), page + 2048 + sizeof(queue::Descriptor));
}

TEST_F(NicTest, Vipl_4_13_done_looks_at_the_head_only) {
    void* done = &done;
    EXPECT_EQ(nic.done(server.receive, done), Status::descriptor_error);
    EXPECT_EQ(done, nullptr);
    connect(client, server);
    queue::Descriptor& first = receive(server, 0, 100);
    queue::Descriptor& second = receive(server, 100, 100);
    EXPECT_EQ(nic.done(server.receive, done), Status::not_done);
    EXPECT_EQ(done, nullptr);
    queue::Descriptor& sent = send(client, 500, 100);
    EXPECT_EQ(nic.done(client.send, done), Status::success);
    EXPECT_EQ(done, &sent);
    EXPECT_EQ(nic.done(server.receive, done), Status::success);
    EXPECT_EQ(done, &first);
    EXPECT_EQ(nic.done(server.receive, done), Status::not_done);
    nic.with_turn([&] {
        nic.engine().disconnect(client);
        return 0;
    });
    poll();
    EXPECT_EQ(nic.done(server.receive, done), Status::descriptor_error);
    EXPECT_EQ(done, &second);
    EXPECT_NE(second.control.status & queue::status::flushed, 0U);
    EXPECT_EQ(attendant.events, (std::vector{engine::ErrorCode::connection_lost}));
}

TEST_F(NicTest, Vipl_4_9_post_clears_an_old_done) {
    queue::Descriptor& descriptor = make(0, 100);
    descriptor.control.status = queue::status::done;
    ASSERT_EQ(nic.post_receive(server, &descriptor, descriptor_handle), Status::success);
    EXPECT_EQ(descriptor.control.status, 0U);
}

TEST_F(NicTest, Vipl_4_12_what_cannot_be_read_is_refused) {
    queue::Descriptor& descriptor = make(0, 100);
    EXPECT_EQ(nic.post_send(client, nullptr, descriptor_handle), Status::invalid_parameter);
    EXPECT_EQ(nic.post_send(client, &descriptor, handle), Status::invalid_parameter);
    EXPECT_EQ(nic.post_send(client, &descriptor, 0), Status::invalid_parameter);
    auto* odd = reinterpret_cast<std::byte*>(&descriptor) + 32;
    EXPECT_EQ(nic.post_receive(client, odd, descriptor_handle), Status::invalid_parameter);
    queue::Descriptor& last = descriptors.get()[descriptors_max - 1];
    last = descriptor;
    last.control.segment_count = 3;  // the third would lie beyond the region
    EXPECT_EQ(nic.post_receive(client, &last, descriptor_handle), Status::invalid_parameter);
    EXPECT_TRUE(client.send.work.empty() && client.receive.work.empty());
}

TEST_F(NicTest, Vipl_4_12_full_queue_is_error_resource) {
    for (std::uint32_t n = 0; n < limits.descriptors_per_queue_max; ++n) receive(server, 0, 1);
    EXPECT_EQ(nic.post_receive(server, &make(0, 1), descriptor_handle), Status::error_resource);
    connect(client, server);
    send(client, 0, 1);
    poll();
    EXPECT_EQ(nic.post_receive(server, &make(0, 1), descriptor_handle), Status::error_resource);
    void* done = nullptr;
    EXPECT_EQ(nic.done(server.receive, done), Status::success);
    EXPECT_EQ(nic.post_receive(server, &make(0, 1), descriptor_handle), Status::success);
}

TEST_F(NicTest, Vipl_1_9_descriptors_of_252_segments) {
    constexpr std::uint32_t count = 252;
    struct alignas(64) Long {
        queue::ControlSegment control;
        queue::Segment segments[count];
    };
    auto* at = static_cast<Long*>(std::aligned_alloc(64, 2 * sizeof(Long)));
    const auto long_handle =
        nic.register_memory(reinterpret_cast<std::uint64_t>(at), 2 * sizeof(Long), {}).value();
    std::memset(static_cast<void*>(at), 0, 2 * sizeof(Long));
    for (std::uint32_t n = 0; n < 2 * count; ++n) memory.get()[n] = static_cast<std::byte>(n);
    for (std::uint32_t which = 0; which < 2; ++which) {
        at[which].control.segment_count = count;
        for (std::uint32_t n = 0; n < count; ++n)
            at[which].segments[n] = {address(which * 10000U + n * (which == 0 ? 2 : 3)), handle,
                                     which == 0 ? 2U : 2U};
    }
    at[0].control.length = 2 * count;
    connect(client, server);
    ASSERT_EQ(nic.post_receive(server, &at[1], long_handle), Status::success);
    ASSERT_EQ(nic.post_send(client, &at[0], long_handle), Status::success);
    poll();
    EXPECT_EQ(at[1].control.length, 2 * count);
    for (std::uint32_t n = 0; n < 2 * count; ++n)
        ASSERT_EQ(memory.get()[10000 + n / 2 * 3 + n % 2], static_cast<std::byte>(n)) << n;
    nic.poll();
    at[0].control.segment_count = count + 1;
    EXPECT_EQ(nic.post_send(client, &at[0], long_handle), Status::success);
    EXPECT_EQ(at[0].control.status, queue::status::done | queue::status::format_error);
    std::free(at);
}

TEST_F(NicTest, Vipl_4_8_region_of_posted_work_cannot_go) {
    receive(server, 0, 100);
    EXPECT_EQ(nic.deregister(handle, address(0)), Status::error_resource);
    EXPECT_EQ(nic.deregister(handle, address(64)), Status::invalid_parameter);
    nic.with_turn([&] {
        nic.engine().disconnect(server);
        return 0;
    });
    EXPECT_EQ(nic.deregister(handle, address(0)), Status::success);
    EXPECT_EQ(nic.deregister(handle, address(0)), Status::invalid_parameter);
    EXPECT_EQ(counters.get(Counter::regions_open), 1U);
}

TEST_F(NicTest, WindowsAreCounted) {
    const memory::MemoryAttributes writes{memory::no_tag, true, false};
    const auto bind = [&] { return nic.bind_window(handle, address(0), 8, writes); };
    const memory::MemoryHandle first = bind().value();
    const memory::MemoryHandle second = bind().value();
    EXPECT_FALSE(nic.bind_window(handle, address(0), 0, writes));
    EXPECT_EQ(counters.get(Counter::windows_open), 2U);
    EXPECT_EQ(nic.end_window(first), Status::success);
    EXPECT_EQ(nic.end_window(first), Status::invalid_parameter);
    EXPECT_EQ(counters.get(Counter::windows_open), 1U);
    EXPECT_EQ(nic.end_window(second), Status::success);
    EXPECT_EQ(counters.get(Counter::windows_open), 0U);
}

/// Calls it in another thread while the region is suspended, as by a change of its attributes that
/// lasts until the call ended, or had long enough to.
template <class Call>
Status while_suspended(Nic& nic, memory::MemoryHandle region, Call call) {
    std::atomic<bool> begun{false};
    std::atomic<bool> ended{false};
    nic.take_turn();
    nic.memory().suspend(region);
    auto answer = std::async(std::launch::async, [&] {
        begun = true;
        const auto result = call();
        ended = true;
        return result;
    });
    while (!begun) std::this_thread::yield();
    for (int looks = 0; looks < 1000 && !ended; ++looks) std::this_thread::yield();
    nic.memory().resume(region);
    nic.end_turn();
    return answer.get();
}

TEST_F(NicTest, Vipl_4_26_a_post_does_not_meet_a_region_that_only_just_changes) {
    connect(client, server);
    // Its descriptor's region, then its buffer's.
    for (const memory::MemoryHandle region : {descriptor_handle, handle}) {
        queue::Descriptor& one = make(0, 100);
        EXPECT_EQ(
            while_suspended(nic, region,
                            [&] { return nic.post_receive(server, &one, descriptor_handle); }),
            Status::success);
        queue::Descriptor& other = make(200, 100);
        void* const posts[] = {&other};
        const memory::MemoryHandle handles[] = {descriptor_handle};
        std::uint32_t posted = 0;
        EXPECT_EQ(
            while_suspended(nic, region,
                            [&] { return nic.post_many(server, true, posts, handles, posted); }),
            Status::success);
        EXPECT_EQ(posted, 1U);
        EXPECT_EQ(one.control.status, 0U) << "no fault";
        EXPECT_EQ(other.control.status, 0U) << "no fault";
        queue::Descriptor& sent = make(400, 50);
        EXPECT_EQ(while_suspended(nic, region,
                                  [&] { return nic.post_send(client, &sent, descriptor_handle); }),
                  Status::success);
        send(client, 400, 60);
        poll();
        EXPECT_EQ(one.control.length, 50U);
        EXPECT_EQ(other.control.length, 60U);
    }
    EXPECT_EQ(server.state.load(), ViState::connected);
    queue::Descriptor& wrong = make(0, 100);
    EXPECT_EQ(nic.post_receive(server, &wrong, descriptor_handle + 1), Status::invalid_parameter);
    std::uint32_t posted = 0;
    void* const both[] = {&make(0, 10), &wrong};
    const memory::MemoryHandle handles[] = {descriptor_handle, descriptor_handle + 1};
    EXPECT_EQ(nic.post_many(server, true, both, handles, posted), Status::invalid_parameter);
    EXPECT_EQ(posted, 1U);
}

TEST_F(NicTest, Vipl_4_2_close_tells_the_peers_and_later_calls_find_no_device) {
    connect(client, server);
    receive(server, 0, 100);
    nic.close();
    EXPECT_NE(client.state.load(), ViState::connected);
    EXPECT_NE(server.state.load(), ViState::connected);
    EXPECT_FALSE(nic.has_work());
    nic.poll();
    ASSERT_EQ(nic.connect(client, {}, {host(1), word("ear")}, Time::never()), Status::success);
    EXPECT_EQ(client.connect_status, Status::not_reachable);
}

// Completion queues -------------------------------------------------------------------------------

struct CompletionTest : Fixture {
    std::uint64_t name = nic.create_completion_queue(4).value();
    queue::CompletionQueue* completions = nic.completion_queue(name);
    engine::Vi& client = make_vi(Reliability::delivery);
    engine::Vi& server = make_vi(Reliability::delivery, completions);
    queue::Completion completion;
};

TEST_F(CompletionTest, Vipl_4_15_an_entry_means_one_done) {
    connect(client, server);
    for (int n = 0; n < 3; ++n) receive(server, 0, 10);
    for (int n = 0; n < 3; ++n) send(client, 100, 10);
    for (int n = 0; n < 3; ++n) {
        ASSERT_EQ(nic.completion_done(*completions, completion), Status::success);
        EXPECT_TRUE(completion.receive);
        EXPECT_EQ(completion.vi & 0xFFFF, server.index);
        void* done = nullptr;
        EXPECT_EQ(nic.done(server.receive, done), Status::success);
    }
    EXPECT_EQ(nic.completion_done(*completions, completion), Status::not_done);
}

TEST_F(CompletionTest, Vipl_4_13_posting_and_taking_never_wait_for_another_thread) {
    connect(client, server);
    receive(server, 0, 10);
    std::promise<void> taken;
    std::promise<void> finished;
    bool never_waited = false;
    std::thread holder([&] {
        nic.take_turn();
        taken.set_value();
        // The limit only ends what would hang.
        never_waited =
            finished.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready;
        nic.end_turn();
    });
    taken.get_future().wait();
    receive(server, 10, 10);
    queue::Descriptor& sent = send(client, 100, 10);
    void* done = nullptr;
    EXPECT_EQ(nic.done(client.send, done), Status::not_done);
    EXPECT_EQ(nic.done(server.receive, done), Status::not_done);
    EXPECT_EQ(nic.completion_done(*completions, completion), Status::not_done);
    finished.set_value();
    holder.join();
    EXPECT_TRUE(never_waited);
    poll();
    EXPECT_EQ(nic.done(client.send, done), Status::success);
    EXPECT_EQ(done, &sent);
    EXPECT_EQ(nic.completion_done(*completions, completion), Status::success);
}

TEST_F(CompletionTest, Vipl_4_16_full_queue_loses_nothing_and_says_so_once) {
    connect(client, server);
    for (int n = 0; n < 20; ++n) receive(server, static_cast<std::size_t>(n) * 10, 10);
    for (int n = 0; n < 20; ++n) send(client, 5000, 10);
    poll();
    EXPECT_EQ(attendant.events, (std::vector{engine::ErrorCode::vi_overrun}));
    EXPECT_EQ(counters.get(Counter::completion_queue_overruns), 1U);
    for (int n = 0; n < 20; ++n) {
        ASSERT_EQ(nic.completion_done(*completions, completion), Status::success) << n;
        void* done = nullptr;
        EXPECT_EQ(nic.done(server.receive, done), Status::success);
    }
    EXPECT_EQ(nic.completion_done(*completions, completion), Status::not_done);
}

/// A handler that takes long hears of each overrun, and of what else happens before the last one.
TEST_F(CompletionTest, Vipl_4_16_overruns_that_nobody_hears_of_yet_hide_nothing) {
    connect(client, server);
    attendant.hears = false;
    constexpr int times = 50;
    for (int n = 0; n < times; ++n) {
        for (int k = 0; k < 6; ++k) receive(server, 0, 10);
        for (int k = 0; k < 6; ++k) send(client, 5000, 10);
        poll();
        for (int k = 0; k < 6; ++k) {
            ASSERT_EQ(nic.completion_done(*completions, completion), Status::success);
            void* done = nullptr;
            ASSERT_EQ(nic.done(server.receive, done), Status::success);
            ASSERT_EQ(nic.done(client.send, done), Status::success);
            poll();
        }
    }
    EXPECT_EQ(counters.get(Counter::completion_queue_overruns), times);
    nic.with_turn([&] {
        nic.engine().disconnect(client);
        return Status::success;
    });
    poll();
    attendant.hears = true;
    poll();
    nic.poll_surely();
    ASSERT_EQ(attendant.events.size(), times + 1U);
    EXPECT_EQ(attendant.events[0], engine::ErrorCode::vi_overrun);
    EXPECT_EQ(attendant.events[1], engine::ErrorCode::connection_lost);
    EXPECT_EQ(
        std::count(attendant.events.begin(), attendant.events.end(), engine::ErrorCode::vi_overrun),
        times);
}

TEST_F(CompletionTest, Vipl_4_16_resize_keeps_every_entry) {
    connect(client, server);
    for (int n = 0; n < 30; ++n) receive(server, 0, 10);
    int sent = 0;
    for (const std::uint32_t size : {1U, 16U, 2U, 64U, 3U}) {
        for (int n = 0; n < 5; ++n, ++sent) send(client, 5000, 10);
        poll();
        ASSERT_EQ(nic.resize_completion_queue(name, size), Status::success);
    }
    int taken = 0;
    while (nic.completion_done(*completions, completion) == Status::success) ++taken;
    EXPECT_EQ(taken, sent);
    EXPECT_EQ(nic.resize_completion_queue(name, 0), Status::invalid_parameter);
    EXPECT_EQ(nic.resize_completion_queue(name + 1, 4), Status::invalid_parameter);
}

/// There was none in the queue to take, though one waited for room: who popped the last took no
/// turn.
TEST_F(CompletionTest, who_waits_hears_of_entries_that_enter_as_the_queue_grows) {
    connect(client, server);
    ASSERT_EQ(nic.resize_completion_queue(name, 1), Status::success);
    for (int n = 0; n < 2; ++n) receive(server, 0, 10);
    for (int n = 0; n < 2; ++n) send(client, 5000, 10);
    poll();
    nic.attention().fetch_or(Nic::somebody_waits);
    completions->watch();
    bool made_room = false;
    ASSERT_TRUE(completions->pop(completion, made_room));
    ASSERT_FALSE(completions->has_entry());
    attendant.attended = attendant.entries_came = 0;
    ASSERT_EQ(nic.resize_completion_queue(name, 2), Status::success);
    EXPECT_TRUE(completions->has_entry());
    EXPECT_EQ(attendant.attended, 1);
    EXPECT_EQ(attendant.entries_came, 1) << "who sleeps on the descriptor, too";
}

/// Where the program sleeps next no turn comes by: on the queue's descriptor, or for a handler.
TEST_F(CompletionTest, who_takes_the_last_entry_lets_in_what_waits) {
    connect(client, server);
    ASSERT_EQ(nic.resize_completion_queue(name, 1), Status::success);
    for (int n = 0; n < 3; ++n) receive(server, 0, 10);
    for (int n = 0; n < 3; ++n) send(client, 5000, 10);
    poll();
    completions->watch();
    attendant.entries_came = 0;
    for (int n = 1; n <= 2; ++n) {
        ASSERT_EQ(nic.completion_done(*completions, completion), Status::success);
        EXPECT_TRUE(completions->has_entry());
        EXPECT_EQ(attendant.entries_came, n);
    }
    ASSERT_EQ(nic.completion_done(*completions, completion), Status::success);
    EXPECT_EQ(nic.completion_done(*completions, completion), Status::not_done);
}

TEST_F(CompletionTest, Vipl_4_16_bound_queue_cannot_go_and_entries_of_a_destroyed_vi_vanish) {
    EXPECT_EQ(nic.destroy_completion_queue(name), Status::error_resource);
    receive(server, 0, 10);
    nic.with_turn([&] {
        nic.engine().disconnect(server);
        return 0;
    });
    void* done = nullptr;
    EXPECT_EQ(nic.done(server.receive, done), Status::descriptor_error);
    ASSERT_NE(done, nullptr);
    EXPECT_TRUE(completions->has_entry());
    ASSERT_EQ(nic.with_turn([&] { return nic.engine().destroy_vi(server); }), Status::success);
    EXPECT_EQ(nic.completion_done(*completions, completion), Status::not_done);
    EXPECT_EQ(nic.destroy_completion_queue(name), Status::success);
    EXPECT_EQ(nic.completion_queue(name), nullptr);
    const std::uint64_t next = nic.create_completion_queue(1).value();
    EXPECT_NE(next, name);
    EXPECT_EQ(nic.create_completion_queue(0).error(), Status::invalid_parameter);
}

// The turn ----------------------------------------------------------------------------------------

struct NarrowTest : Fixture {
    NarrowTest() : Fixture({engine::connect_payload_max, 3}, narrow()) {}
    static NicLimits narrow() {
        NicLimits limits;
        limits.turn_frames_max = 8;
        return limits;
    }
    engine::Vi& client = make_vi(Reliability::reception);
    engine::Vi& server = make_vi(Reliability::reception);
};

TEST_F(NarrowTest, Vipl_4_23_back_pressure_delays_and_loses_nothing) {
    connect(client, server);
    for (std::uint32_t n = 0; n < 10000; ++n) memory.get()[n] = static_cast<std::byte>(n * 13);
    for (std::uint32_t n = 0; n < 10; ++n) receive(server, 20000 + n * 1000, 1000);
    for (std::uint32_t n = 0; n < 10; ++n) send(client, n * 1000, 1000);
    poll();
    EXPECT_GT(counters.get(Counter::back_pressure), 0U);
    EXPECT_EQ(counters.get(Counter::receives), 10U);
    EXPECT_EQ(counters.get(Counter::sends), 10U);
    EXPECT_EQ(std::memcmp(memory.get(), memory.get() + 20000, 10000), 0);
}

TEST_F(NarrowTest, a_turn_is_bounded) {
    connect(client, server);
    for (std::uint32_t n = 0; n < 50; ++n) receive(server, 20000, 1000);
    for (std::uint32_t n = 0; n < 50; ++n) send(client, 0, 1000);
    for (int turns = 0; counters.get(Counter::receives) < 50; ++turns) {
        ASSERT_LT(turns, 10000);
        nic.take_turn();
        const Turn turn = nic.turn({});
        nic.end_turn();
        EXPECT_LE(turn.received, limits.turn_frames_max + 16);
        EXPECT_LE(turn.sent, limits.turn_frames_max);
    }
}

struct ShortTurnTest : Fixture {
    ShortTurnTest() : Fixture({}, NarrowTest::narrow()) {}
    engine::Vi& client = make_vi(Reliability::delivery);
    engine::Vi& server = make_vi(Reliability::delivery);
};

/// Of paths that all have more to send than a turn takes, none waits until another has nothing
/// more.
TEST_F(ShortTurnTest, paths_take_turns) {
    nic.add_device(std::make_unique<LoopbackDevice>(host(2)));
    engine::Vi& second_client = make_vi(Reliability::delivery);
    engine::Vi& second_server = make_vi(Reliability::delivery);
    connect(client, server, 1);
    connect(second_client, second_server, 2);
    constexpr int each = 40;
    queue::Descriptor* last[2] = {};
    for (int n = 0; n < each; ++n) {
        receive(server, 20000, 8);
        receive(second_server, 20000, 8);
    }
    nic.take_turn();  // so that all of them wait
    for (int n = 0; n < each; ++n) last[0] = &send(client, 0, 8);
    for (int n = 0; n < each; ++n) last[1] = &send(second_client, 0, 8);
    int ended[2] = {};
    for (int turns = 1; ended[0] == 0 || ended[1] == 0; ++turns) {
        ASSERT_LT(turns, 1000);
        nic.turn({});
        nic.end_turn();
        for (int n : {0, 1})
            if (ended[n] == 0 && (last[n]->control.status & queue::status::done) != 0)
                ended[n] = turns;
        nic.take_turn();
    }
    nic.end_turn();
    EXPECT_LE(std::abs(ended[0] - ended[1]), 2);
}

// Posted together ---------------------------------------------------------------------------------

/// Notes of each frame when it is published what a watched byte holds. `keeps`: small frames among
/// others are published as late as may be.
struct WatchedLoopback final : LoopbackDevice {
    WatchedLoopback() : LoopbackDevice(host(2)) {}
    bool reserve(device::PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                 device::FrameSlot& slot) override {
        const bool done = LoopbackDevice::reserve(path, header_length, payload_length, slot);
        reserved += done ? 1 : 0;
        return done;
    }
    std::uint32_t send_small(device::PathId path, std::uint64_t low, std::uint64_t high,
                             const std::byte* payload, std::uint32_t length, bool alone) override {
        if (!keeps || alone)
            return LoopbackDevice::send_small(path, low, high, payload, length, alone);
        kept.push_back({path, low, high, {payload, payload + length}});
        return 0;
    }
    void publish_kept() {
        for (const Kept& frame : std::exchange(kept, {}))
            ASSERT_EQ(
                LoopbackDevice::send_small(frame.path, frame.low, frame.high, frame.payload.data(),
                                           static_cast<std::uint32_t>(frame.payload.size()), false),
                0U);
    }
    std::uint32_t notify() override {
        publish_kept();
        return LoopbackDevice::notify();
    }
    void transmit(device::PathId path) override {
        publish_kept();
        seen.insert(seen.end(), reserved, watched == nullptr ? std::byte{} : *watched);
        reserved = 0;
        LoopbackDevice::transmit(path);
    }
    struct Kept {
        device::PathId path;
        std::uint64_t low, high;
        std::vector<std::byte> payload;
    };
    std::vector<Kept> kept;
    std::size_t reserved = 0;
    std::vector<std::byte> seen;
    const std::byte* watched = nullptr;
    bool keeps = false;
};

struct TogetherTest : Fixture {
    TogetherTest() : Fixture({}, few_frames()) {
        auto made_device = std::make_unique<WatchedLoopback>();
        device = made_device.get();
        nic.add_device(std::move(made_device));
        connect(client, server, 2);
        device->seen.clear();
    }
    static NicLimits few_frames() {
        NicLimits limits;
        limits.turn_frames_max = 64;
        return limits;
    }
    void post(const std::vector<void*>& wanted) {
        const std::vector<memory::MemoryHandle> handles(wanted.size(), descriptor_handle);
        std::uint32_t posted = 0;
        ASSERT_EQ(nic.post_many(client, false, wanted, handles.data(), posted), Status::success);
        ASSERT_EQ(posted, wanted.size());
    }
    engine::Vi& client = make_vi(Reliability::delivery);
    engine::Vi& server = make_vi(Reliability::delivery);
    WatchedLoopback* device = nullptr;
};

TEST_F(TogetherTest, TheyGoInOrderAndPublishedIsDone) {
    constexpr std::uint32_t count = 100;  // more than a turn's frames
    std::vector<void*> sends;
    for (std::uint32_t n = 0; n < count; ++n) {
        receive(server, 1000 + n * 8, 8);
        memory.get()[n * 8] = static_cast<std::byte>(n);
        sends.push_back(&make(n * 8, 8));
    }
    post(sends);
    EXPECT_GE(device->seen.size(), limits.turn_frames_max);
    std::vector<void*> done(count);
    std::uint32_t taken = 0;
    ASSERT_EQ(nic.done_many(client.send, done, taken), Status::success);
    EXPECT_EQ(taken, device->seen.size()) << "what was published";
    poll();
    std::uint32_t rest = 0;
    ASSERT_EQ(nic.done_many(client.send, std::span(done).subspan(taken), rest), Status::success);
    EXPECT_EQ(done, sends);
    EXPECT_EQ(counters.get(Counter::receives), count);
    EXPECT_EQ(std::memcmp(memory.get(), memory.get() + 1000, std::size_t{count} * 8), 0);
}

TEST_F(TogetherTest, Vipl_4_15_a_write_to_a_segment_does_not_overtake_sends_before_it) {
    constexpr std::size_t segment_at = 65536, segment_length = 4096;
    std::byte* const segment = memory.get() + segment_at;
    const memory::MemoryHandle shared =
        nic.add_segment({segment, segment_length, -1, nullptr}, {memory::no_tag, true, true})
            .value();
    const std::uint32_t question =
        nic.begin_import(client, shared, address(segment_at), true).value();
    poll();
    Attachment attachment;
    ASSERT_EQ(nic.finish_import(client, question, attachment), Status::success);
    for (const int way : {0, 1, 2}) {
        const bool special = way == 1;
        device->keeps = way == 2;
        device->seen.clear();
        device->watched = segment;
        *segment = std::byte{0};
        memory.get()[500] = std::byte{1};
        std::vector<void*> work;
        for (std::uint32_t n = 0; n < 3; ++n) {
            receive(server, 1000 + n * 8, 8);
            work.push_back(&make(n * 8, 8, special ? queue::control::immediate : 0));
        }
        queue::Descriptor& write = make(0, 1, queue::control::rdma_write);
        write.control.segment_count = 2;
        write.segments[0] = {address(segment_at), shared, 0};
        write.segments[1] = {address(500), handle, 1};
        work.push_back(&write);
        post(work);
        EXPECT_EQ(*segment, std::byte{1});
        EXPECT_EQ(device->seen, std::vector<std::byte>(3)) << "all were out before it";
        poll();
    }
}

/// The right to write came after the segment was sealed against it.
TEST_F(NicTest, a_segment_that_cannot_be_mapped_for_writing_is_written_by_frames) {
    connect(client, server);
    constexpr std::size_t segment_at = 65536;
    const memory::MemoryHandle shared =
        nic.add_segment({memory.get() + segment_at, 4096, -1, nullptr, false},
                        {memory::no_tag, false, true})
            .value();
    ASSERT_EQ(nic.change_region(shared, address(segment_at), {memory::no_tag, true, true}),
              Status::success);
    for (const bool writable : {true, false}) {
        const std::uint32_t question =
            nic.begin_import(client, shared, address(segment_at), writable).value();
        poll();
        Attachment attachment;
        EXPECT_EQ(nic.finish_import(client, question, attachment),
                  writable ? Status::error_not_supported : Status::success);
    }
    memory.get()[500] = std::byte{9};
    queue::Descriptor& write = make(0, 1, queue::control::rdma_write);
    write.control.segment_count = 2;
    write.segments[0] = {address(segment_at), shared, 0};
    write.segments[1] = {address(500), handle, 1};
    EXPECT_EQ(nic.post_send(client, &write, descriptor_handle), Status::success);
    poll();
    EXPECT_EQ(memory.get()[segment_at], std::byte{9});
}

TEST_F(NicTest, an_atomic_operation_that_the_peer_does_not_know_is_not_posted) {
    connect(client, server);
    ASSERT_EQ(nic.allow_atomics(handle, address(0), true), Status::success);
    queue::Descriptor& add = make(0, 8, 0);
    add.control.segment_count = 2;
    add.segments[0] = {address(800), handle, 0};
    add.segments[1] = {address(0), handle, 8};
    client.peer_knows_atomics.store(false);
    EXPECT_EQ(nic.post_atomic(client, &add, descriptor_handle, {true, 5}),
              Status::error_not_supported);
    poll();
    EXPECT_EQ(add.control.status, 0U);
    EXPECT_EQ(client.state.load(), engine::ViState::connected);
    client.peer_knows_atomics.store(true);
    EXPECT_EQ(nic.post_atomic(client, &add, descriptor_handle, {true, 5}), Status::success);
    poll();
    EXPECT_EQ(memory.get()[800], std::byte{5});
}

/// Two devices: a connection stays on the path on which it was made.
TEST_F(NicTest, one_nic_over_two_devices) {
    nic.add_device(std::make_unique<LoopbackDevice>(host(2)));
    connect(client, server, 1);
    engine::Vi& second_client = make_vi(Reliability::delivery);
    engine::Vi& second_server = make_vi(Reliability::delivery);
    connect(second_client, second_server, 2);
    EXPECT_NE(client.path, second_client.path);
    EXPECT_EQ(nic.peer_address(client.path), host(1));
    EXPECT_EQ(nic.peer_address(second_client.path), host(2));
    for (std::size_t n = 0; n < 200; ++n) memory.get()[n] = static_cast<std::byte>(n + 1);
    receive(server, 1000, 100);
    receive(second_server, 1100, 100);
    send(client, 0, 100);
    send(second_client, 100, 100);
    poll();
    EXPECT_EQ(std::memcmp(memory.get(), memory.get() + 1000, 200), 0);
    ASSERT_EQ(
        nic.connect(make_vi(Reliability::delivery), {}, {host(3), word("ear")}, Time::never()),
        Status::success);
}

/// There is always more than a NIC takes in a turn, all of paths that are none.
struct FloodedDevice final : LoopbackDevice {
    using LoopbackDevice::LoopbackDevice;
    std::size_t receive(std::span<device::Frame> frames) override {
        for (device::Frame& frame : frames) frame = {};
        return frames.size();
    }
};

struct CountedDevice final : LoopbackDevice {
    using LoopbackDevice::LoopbackDevice;
    std::size_t receive(std::span<device::Frame> frames) override {
        ++looks;
        return LoopbackDevice::receive(frames);
    }
    int looks = 0;
};

TEST_F(NicTest, beside_a_device_that_is_flooded_the_others_are_looked_at) {
    nic::Nic two("two", limits, counters, attendant);
    two.add_device(std::make_unique<FloodedDevice>(host(1)));
    auto second = std::make_unique<CountedDevice>(host(2));
    const CountedDevice& counted = *second;
    two.add_device(std::move(second));
    for (int turns = 0; turns < 10; ++turns) {
        two.take_turn();
        two.turn({});
        two.end_turn();
    }
    EXPECT_GE(counted.looks, 10);
}

TEST_F(NicTest, what_floods_it_leaves_what_is_sent_its_share) {
    connect(client, server);
    nic.add_device(std::make_unique<FloodedDevice>(host(2)));
    constexpr std::uint32_t count = 200;  // more than the post's own turn takes
    std::vector<void*> sends;
    for (std::uint32_t n = 0; n < count; ++n) sends.push_back(&make(0, 8));
    const std::vector<memory::MemoryHandle> handles(count, descriptor_handle);
    std::uint32_t posted = 0;
    ASSERT_EQ(nic.post_many(client, false, sends, handles.data(), posted), Status::success);
    for (int turns = 0; turns < 10; ++turns) nic.poll();
    const auto& last = *static_cast<const queue::Descriptor*>(sends.back());
    EXPECT_NE(last.control.status & queue::status::done, 0U);
}

/// A device that does something before it looks for a listener.
struct SlowDevice final : LoopbackDevice {
    using LoopbackDevice::LoopbackDevice;
    void resolve(const NetAddress& remote, std::uint64_t cookie) override {
        if (before) before();
        before = nullptr;
        LoopbackDevice::resolve(remote, cookie);
    }
    std::function<void()> before;
};

/// It did not listen yet when the first device was asked, but it did when the second one was.
TEST_F(NicTest, whoever_begins_to_listen_meanwhile_is_reached_on_the_first_device) {
    auto second = std::make_unique<SlowDevice>(host(1));
    engine::Listener listener;
    listener.discriminator = word("ear");
    second->before = [&] {
        for (auto& device : nic.devices()) device->listen(listener.discriminator);
        nic.engine().requests().listen(listener);
    };
    nic.add_device(std::move(second));
    ASSERT_EQ(nic.connect(client, {}, {host(1), word("ear")}, Time::never()), Status::success);
    poll();
    ASSERT_TRUE(nic.unlisten(listener));
    ASSERT_EQ(nic.with_turn([&] { return nic.engine().accept(listener.connection, server); }),
              Status::success);
    poll();
    ASSERT_EQ(client.state.load(), ViState::connected);
    EXPECT_LT(client.path, limits.paths_max) << "paths of the second device have greater numbers";
}

/// Somebody listens there, and does not answer.
struct UnansweredDevice final : LoopbackDevice {
    using LoopbackDevice::LoopbackDevice;
    void resolve(const NetAddress& remote, std::uint64_t cookie) override {
        ++asked;
        if (status == Status::success) return LoopbackDevice::resolve(remote, cookie);
        answer = {device::PathEventKind::unresolved, 0, status, cookie};
    }
    bool next_event(device::PathEvent& event) override {
        if (answer.cookie == 0) return LoopbackDevice::next_event(event);
        event = std::exchange(answer, {});
        return true;
    }
    void says_lossless(bool lossless) { capabilities_.lossless = lossless; }
    Status status = Status::timeout;
    device::PathEvent answer{};
    int asked = 0;
};

struct UnansweredTest : NicTest {
    UnansweredTest() {
        for (UnansweredDevice** place : {&first, &second}) {
            auto device = std::make_unique<UnansweredDevice>(host(1));
            *place = device.get();
            two.add_device(std::move(device));
        }
        second->status = Status::not_reachable;
    }
    void turn_at(Time time) {
        attendant.time = time;
        two.take_turn();
        two.turn(time);
        two.end_turn();
    }
    Nic two{"two", limits, counters, attendant};
    UnansweredDevice* first = nullptr;
    UnansweredDevice* second = nullptr;
    engine::Vi& asker = *two.with_turn([&] { return *two.engine().create_vi({}, {}, {}); });
};

TEST_F(UnansweredTest, Vipl_4_20_a_listener_that_stands_still_is_a_timeout) {
    ASSERT_EQ(two.connect(asker, {}, {host(1), word("ear")}, Time{} + seconds(6)), Status::success);
    turn_at(Time{} + seconds(5));
    EXPECT_EQ(asker.state.load(), ViState::connect_pending);
    turn_at(Time{} + seconds(5) + milliseconds(20));
    EXPECT_GE(first->asked, 2) << "it may go on";
    EXPECT_EQ(second->asked, 0) << "who is known to be there is not looked for elsewhere";
    turn_at(Time{} + seconds(6));
    EXPECT_EQ(asker.state.load(), ViState::idle);
    EXPECT_EQ(asker.connect_status, Status::timeout);
}

/// ViaConnectRequest has no call that waits: whoever gave it no end hears of a firewall, too.
TEST_F(UnansweredTest,
       who_insists_without_end_is_told_of_a_listener_that_is_silent_beyond_a_network) {
    for (const bool lossless : {true, false}) {
        first->says_lossless(lossless);
        ASSERT_EQ(two.connect(asker, {}, {host(1), word("ear")}, Time::never(), {},
                              Nic::Asking::insisting),
                  Status::success);
        turn_at(Time{} + seconds(5));
        EXPECT_EQ(asker.state.load() == ViState::connect_pending, lossless);
        if (lossless)
            two.with_turn(
                [&] { two.engine().connecting().connect_failed(asker, Status::timeout); });
    }
    EXPECT_EQ(asker.connect_status, Status::not_reachable);
}

TEST_F(UnansweredTest, Vipl_4_20_who_waits_for_ever_waits_for_a_silent_host) {
    first->status = Status::no_match;
    second->status = Status::not_done;
    ASSERT_EQ(two.connect(asker, {}, {host(1), word("ear")}, Time::never()), Status::success);
    for (int minute = 0; minute < 10; ++minute) turn_at(Time{} + seconds(60 * minute));
    EXPECT_EQ(asker.state.load(), ViState::connect_pending);
    EXPECT_GE(second->asked, 5);
}

TEST_F(UnansweredTest, Vipl_4_20_a_silent_host_is_not_reachable_within_a_time) {
    second->status = first->status = Status::not_done;
    ASSERT_EQ(two.connect(asker, {}, {host(1), word("ear")}, Time{} + seconds(60)),
              Status::success);
    turn_at(Time{} + seconds(5));
    EXPECT_EQ(asker.state.load(), ViState::idle);
    EXPECT_EQ(asker.connect_status, Status::not_reachable);
}

TEST_F(UnansweredTest, Vipl_4_20_who_stood_still_and_is_gone_is_looked_for_everywhere) {
    ASSERT_EQ(two.connect(asker, {}, {host(1), word("ear")}, Time{} + seconds(6)), Status::success);
    turn_at(Time{} + seconds(5));
    first->status = Status::no_match;
    turn_at(Time{} + seconds(5) + milliseconds(20));
    turn_at(Time{} + seconds(5) + milliseconds(21));
    EXPECT_EQ(second->asked, 1);
    EXPECT_EQ(asker.state.load(), ViState::idle);
    EXPECT_EQ(asker.connect_status, Status::not_reachable);
}

/// In release, too.
TEST_F(NicTest, who_has_not_the_turn_takes_none) {
    EXPECT_DEATH(nic.turn({}), "broken invariant");
    EXPECT_DEATH(nic.arm(device::Sleep::awake), "broken invariant");
    EXPECT_DEATH(nic.service({}), "broken invariant");
}

/// A peer that sends what no NIC sends loses its path and all its connections.
TEST_F(NicTest, hostile_frame_ends_the_path) {
    connect(client, server);
    device::Device& device = nic.devices().front();
    device::FrameSlot slot;
    ASSERT_TRUE(device.reserve(0, 16, 0, slot));
    std::memset(slot.header, 0xEE, 16);
    device.transmit(0);
    poll();
    EXPECT_EQ(client.state.load(), ViState::error);
    EXPECT_EQ(server.state.load(), ViState::error);
    EXPECT_EQ(counters.get(Counter::frames_refused), 1U);
    EXPECT_EQ(attendant.events, (std::vector{engine::ErrorCode::connection_lost,
                                             engine::ErrorCode::connection_lost}));
    EXPECT_EQ(counters.get(Counter::paths_open), 0U);
    engine::Vi& new_client = make_vi(Reliability::delivery);
    engine::Vi& new_server = make_vi(Reliability::delivery);
    connect(new_client, new_server);
    EXPECT_EQ(counters.get(Counter::paths_open), 1U);
}

/// Keeps the end of a path that is closed for a violation back until it is asked for.
struct LateEnd final : LoopbackDevice {
    LateEnd() : LoopbackDevice(host(2)) {}
    bool next_event(device::PathEvent& event) override {
        return !kept_back && LoopbackDevice::next_event(event);
    }
    bool kept_back = false;
};

/// One that lied costs the others nothing once its path is down.
TEST_F(NicTest, frames_are_asked_for_violating_paths_only_while_there_are_any) {
    auto made_device = std::make_unique<LateEnd>();
    LateEnd& device = *made_device;
    nic.add_device(std::move(made_device));
    connect(client, server, 2);
    EXPECT_EQ(nic.violating_paths(), 0U);
    device.kept_back = true;
    for (int n = 0; n < 2; ++n) {
        device::FrameSlot slot;
        ASSERT_TRUE(device.reserve(0, 16, 0, slot));
        std::memset(slot.header, 0xEE, 16);
    }
    device.transmit(0);
    poll();
    EXPECT_EQ(nic.violating_paths(), 1U);
    device.kept_back = false;
    poll();
    EXPECT_EQ(client.state.load(), ViState::error);
    EXPECT_EQ(nic.violating_paths(), 0U);
}

TEST_F(NicTest, who_waits_on_a_completion_queue_hears_of_its_end) {
    const auto queue = nic.create_completion_queue(4);
    ASSERT_TRUE(queue);
    nic.attention().fetch_or(Nic::somebody_waits);
    attendant.attended = 0;
    ASSERT_EQ(nic.destroy_completion_queue(*queue), Status::success);
    EXPECT_EQ(attendant.attended, 1);
}

TEST_F(NicTest, attendant_hears_of_progress_only_when_somebody_waits) {
    connect(client, server);
    attendant.attended = 0;
    receive(server, 0, 10);
    send(client, 0, 10);
    poll();
    EXPECT_EQ(attendant.attended, 0);
    nic.attention().fetch_or(Nic::somebody_listens);
    receive(server, 0, 10);
    send(client, 0, 10);
    poll();
    EXPECT_EQ(attendant.attended, 0) << "nobody awaits a completion";
    const auto queue = nic.create_completion_queue(1);
    ASSERT_TRUE(queue);
    ASSERT_EQ(nic.destroy_completion_queue(*queue), Status::success);
    EXPECT_EQ(attendant.attended, 1) << "who listens hears of anything else";
    attendant.attended = 0;
    nic.attention().fetch_or(Nic::somebody_waits);
    receive(server, 0, 10);
    send(client, 0, 10);
    poll();
    EXPECT_GT(attendant.attended, 0);
    attendant.attended = 0;
    nic.poll();
    EXPECT_EQ(attendant.attended, 0);
    nic.attention().fetch_or(Nic::agent_sleeps);
    nic.poll();
    EXPECT_EQ(attendant.attended, 1);
}

TEST_F(NicTest, doorbell_rung_while_another_holds_the_turn_is_answered_when_it_lets_go) {
    connect(client, server);
    queue::Descriptor& got = receive(server, 100, 10);
    nic.take_turn();
    queue::Descriptor& sent = send(client, 0, 10);
    EXPECT_EQ(sent.control.status, 0U);
    nic.end_turn();
    EXPECT_NE(sent.control.status & queue::status::done, 0U);
    poll();
    EXPECT_NE(got.control.status & queue::status::done, 0U);
}

}  // namespace
}  // namespace via::nic::nic_test
