// What a NIC is for when its process ends (leave()): everything is as it was, but nothing goes or
// comes, and what the devices had is gone with them.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <memory>

#include "device/loopback/loopback_device.hpp"
#include "nic/nic.hpp"
#include "queue/descriptor.hpp"

namespace via::nic::leave_test {
namespace {

using device::loopback::LoopbackDevice;
using engine::Vi;
using engine::ViState;

constexpr HostAddress here{.bytes = {127, 0, 0, 1, 0x26, 0x0D}, .length = 6};

NetAddress at(const char* text) {
    NetAddress address{here, {}};
    address.discriminator.length = static_cast<std::uint16_t>(std::strlen(text));
    std::memcpy(address.discriminator.bytes.data(), text, address.discriminator.length);
    return address;
}

/// The word of a grant lies in a mapping that ends with the device, as a channel does.
class MappedGrants final : public LoopbackDevice {
public:
    MappedGrants() : LoopbackDevice(here) {
        void* page =
            mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(page, MAP_FAILED);
        word_ = static_cast<Atomic<std::uint32_t>*>(page);
    }
    ~MappedGrants() override { EXPECT_EQ(munmap(word_, length), 0); }
    bool next_event(device::PathEvent& event) override {
        if (!LoopbackDevice::next_event(event)) return false;
        if (event.kind != device::PathEventKind::attached) return true;
        word_->store(event.attachment.granted);
        event.attachment.grant = word_;
        return true;
    }

private:
    static constexpr std::size_t length = 4096;
    Atomic<std::uint32_t>* word_ = nullptr;
};

struct Attending final : Attendant {
    void attend() override {}
    void report(const engine::ErrorEvent&) override {}
    Time now() override { return time; }
    Time time{};
};

struct LeaveTest : testing::Test {
    LeaveTest() { nic.add_device(std::make_unique<MappedGrants>()); }

    Vi& make_vi() {
        engine::ViAttributes wanted;
        wanted.reliability = engine::Reliability::delivery;
        wanted.transfer_length_max = sizeof memory;
        wanted.rdma_write = wanted.rdma_read = true;
        return *nic.with_turn(
            [&] { return nic.engine().create_vi(wanted, nullptr, nullptr).value(); });
    }
    /// Until nothing happens any more.
    void poll() {
        for (int quiet = 0; quiet < 3;) quiet = nic.poll() ? 0 : quiet + 1;
    }
    void connect(Vi& client, Vi& server) {
        engine::Listener listener;
        listener.discriminator = at("ear").discriminator;
        ASSERT_EQ(nic.listen(listener), Status::success);
        ASSERT_EQ(nic.connect(client, {}, at("ear"), Time::never()), Status::success);
        poll();
        ASSERT_TRUE(nic.unlisten(listener));
        ASSERT_EQ(nic.with_turn([&] { return nic.engine().accept(listener.connection, server); }),
                  Status::success);
        poll();
        ASSERT_EQ(client.state.load(), ViState::connected);
    }
    std::uint64_t address(const void* of) const { return reinterpret_cast<std::uint64_t>(of); }

    NicLimits limits;
    Counters counters{};
    Attending attendant;
    Nic nic{"leaves", limits, counters, attendant};
    alignas(64) std::array<std::byte, 4096> memory{};
    alignas(64) queue::Descriptor write{};
};

TEST_F(LeaveTest, Vipl_4_2_a_write_to_a_peers_segment_begins_and_moves_nothing) {
    Vi& client = make_vi();
    Vi& server = make_vi();
    connect(client, server);
    std::byte* const segment = memory.data();
    const memory::MemoryHandle shared =
        nic.add_segment({segment, 2048, -1, nullptr}, {memory::no_tag, true, true}).value();
    const std::uint32_t question = nic.begin_import(client, shared, address(segment), true).value();
    poll();
    Attachment attachment;
    ASSERT_EQ(nic.finish_import(client, question, attachment), Status::success);
    std::byte* const source = memory.data() + 2048;
    const memory::MemoryHandle own = nic.register_memory(address(source), 2048, {}).value();
    const memory::MemoryHandle of_write =
        nic.register_memory(address(&write), sizeof write, {}).value();
    *source = std::byte{1};
    ASSERT_TRUE(nic.leave());
    write.control.control = queue::control::rdma_write;
    write.control.segment_count = 2;
    write.control.length = 1;
    write.segments[0] = {address(segment), shared, 0};
    write.segments[1] = {address(source), own, 1};
    EXPECT_EQ(nic.post_send(client, &write, of_write), Status::success);
    poll();
    EXPECT_EQ(write.control.status & queue::status::done, 0U);
    EXPECT_EQ(*segment, std::byte{});
}

TEST_F(LeaveTest, Vipl_4_2_nobody_is_looked_for_any_more) {
    Vi& vi = make_vi();
    ASSERT_EQ(nic.connect_peer(vi, at("late"), at("early"), Time::never()), Status::success);
    poll();
    ASSERT_FALSE(nic.next_deadline().is_never()) << "it is looked for again";
    ASSERT_TRUE(nic.leave());
    attendant.time = attendant.time + seconds(10);
    poll();
    EXPECT_EQ(vi.state.load(), ViState::connect_pending);
}

}  // namespace
}  // namespace via::nic::leave_test
