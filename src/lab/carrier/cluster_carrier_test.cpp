// The product's engines on NICs of the laboratory, under the simulator's checkers.
#include "lab/carrier/cluster_carrier.hpp"

#include <gtest/gtest.h>

#include "device/sim/weather.hpp"
#include "lab/file/machine_file.hpp"
#include "sim/world.hpp"
#include "wire/frame.hpp"

namespace via::lab::carrier::cluster_carrier_test {

struct Outcome {
    sim::Report report;
    std::uint64_t messages = 0;
    std::uint64_t packets = 0;
    std::int64_t created = 0;  ///< bytes that arrived and never left
};

Outcome run(std::uint64_t seed, std::string_view words, const char* name = "firmvia") {
    const auto machine = file::load(name);
    EXPECT_TRUE(machine.has_value());
    Plan plan{*machine, machine->design, {4, 1 << 20}};
    EXPECT_TRUE(design::add(plan.design, words).has_value());
    Outcome outcome;
    const ClusterCarrier* made = nullptr;
    sim::World world(sim::draw_parameters(seed, sim::WorldKind::lab), false,
                     [&](device::sim::VirtualClock& clock, device::sim::Fabric& fabric,
                         std::uint64_t of_carrier) {
                         auto carrier = ClusterCarrier::make(plan, clock, fabric, of_carrier);
                         EXPECT_TRUE(carrier.has_value()) << carrier.error();
                         made = carrier->get();
                         return std::move(*carrier);
                     });
    outcome.report = world.run();
    outcome.messages = made->messages();
    outcome.packets = made->packets();
    for (std::size_t n = 0; machine->has(Has::adapter) && n < made->hosts(); ++n) {
        const AdapterCounts& counts = made->host(n).adapter().counts();
        outcome.created += counts.bytes_received - counts.bytes_sent;
    }
    return outcome;
}

TEST(ClusterCarrier, WorldsOfTheProductHoldOnEachDesign) {
    std::uint64_t seed = 0;
    std::uint64_t messages = 0;
    for (const char* words :
         {"", "at=2,doorbell=d1", "at=3,cache=8,ways=2,doorbell=d1,slots=3",
          "at=2,doorbell=bitmap,descriptors=fetched", "cq=1,payload=dma,packet=2032",
          "rqc=2,csqc=2,watermark=1,packet=300"}) {
        const Outcome outcome = run(++seed, words);
        EXPECT_TRUE(outcome.report.good()) << words << ": " << outcome.report.violation;
        EXPECT_EQ(outcome.created, 0) << words;
        EXPECT_GE(outcome.packets, outcome.messages);
        messages += outcome.messages;
    }
    EXPECT_GT(messages, 300U);
}

TEST(ClusterCarrier, WorldsHoldWhereAKernelTakesPart) {
    std::uint64_t seed = 20;
    for (const auto& [name, words] : {std::pair{"sk9821", ""},
                                      {"gnic2", "wiring=switch,processors=2,mtu=600"},
                                      {"tulip", "wiring=switch,stack=tcp"},
                                      {"clan", "processors=2"},
                                      {"clan", "doorbell=d1,descriptors=cached,rqc=2"}}) {
        const Outcome outcome = run(++seed, words, name);
        EXPECT_TRUE(outcome.report.good()) << name << ": " << outcome.report.violation;
        EXPECT_GT(outcome.messages, 0U) << name;
        EXPECT_GE(outcome.packets, outcome.messages) << name;
        EXPECT_EQ(outcome.created, 0) << name;
    }
}

TEST(ClusterCarrier, WorldsHoldWhereTheNicIsALibrary) {
    for (std::uint64_t seed = 30; seed < 33; ++seed) {
        const Outcome outcome = run(seed, "", "shm");
        EXPECT_TRUE(outcome.report.good()) << outcome.report.violation;
        EXPECT_GT(outcome.messages, 0U);
        EXPECT_GE(outcome.packets, outcome.messages);
    }
}

/// Engine, queues and checkers of 64 NICs, each on firmware, engines and FIFOs of its own.
TEST(ClusterCarrier, SixtyFourHostsWithWholeEngines) {
    const auto machine = file::load("firmvia");
    ASSERT_TRUE(machine.has_value());
    const Plan plan{*machine, machine->design, {4, 1 << 20}, true};
    sim::Parameters parameters = sim::draw_parameters(5, sim::WorldKind::lab);
    parameters.nics = 64;
    parameters.steps = 64 * 60;
    const ClusterCarrier* made = nullptr;
    sim::World world(
        parameters, false,
        [&](device::sim::VirtualClock& clock, device::sim::Fabric& fabric, std::uint64_t seed) {
            auto carrier = ClusterCarrier::make(plan, clock, fabric, seed);
            EXPECT_TRUE(carrier.has_value());
            made = carrier->get();
            return std::move(*carrier);
        });
    const sim::Report report = world.run();
    EXPECT_TRUE(report.good()) << report.violation;
    EXPECT_EQ(made->hosts(), 64U);
    EXPECT_GT(made->messages(), 500U);
    RecordProperty("lab_events", std::to_string(made->events()));
}

struct Node final : device::sim::Station, device::sim::Receives {
    bool listens(const Discriminator&) const override { return false; }
    std::uint32_t vis_end() const override { return 1; }
    std::uint32_t outstanding(std::uint32_t) const override { return posted_receives; }
    Extent posted(std::uint32_t, std::uint32_t) const override { return {buffer, 4096}; }
    std::uint64_t buffer = 0;
    std::uint32_t posted_receives = 0;
};

/// Two nodes, the second one's memory in that page; its NIC keeps 4 translations, by their pages.
class Pair {
public:
    explicit Pair(std::uint64_t page) {
        const auto machine = file::load("firmvia");
        Plan plan{*machine, machine->design, {1, 1 << 20}};
        EXPECT_TRUE(design::add(plan.design, "at=3,cache=4,ways=1").has_value());
        carrier_ = std::move(*ClusterCarrier::make(plan, clock_, fabric_, 1));
        fabric_.carry_by(*carrier_);
        receiver_.buffer = page * 4096;
        fabric_.join(sender_, sim::address_of_host(0));
        fabric_.join(receiver_, sim::address_of_host(1));
        carrier_->attend(1, receiver_);
    }
    /// How long a page of a message is under way, which lies at `offset` of it.
    Duration page_of_message(std::uint32_t offset) {
        wire::Header header;
        header.kind = wire::FrameKind::send;
        header.flags = offset == 0 ? wire::flag::first | wire::flag::extent : wire::flag::extent;
        header.message_length = 1 << 20;
        header.offset = offset;
        receiver_.posted_receives = offset == 0 ? 1 : 0;
        auto parcel = std::make_unique<device::sim::Parcel>();
        parcel->kind = device::sim::ParcelKind::frame;
        parcel->header_length = wire::header_length(header.flags);
        wire::emit(header, parcel->header);
        parcel->payload.resize(4096);
        const Time begin = clock_.now();
        fabric_.send(0, 1, std::move(parcel));
        while (fabric_.next_arrival(1).is_never()) carrier_->run(begin + seconds(1));
        fabric_.take(1);
        const Time end = clock_.now();
        carrier_->run(end + milliseconds(1));  // and to its rest
        return end - begin;
    }

private:
    device::sim::VirtualClock clock_;
    device::sim::FairWeather weather_{1, {}};
    device::sim::Fabric fabric_{clock_, weather_, {65536, 64, 256, false, 0}};
    std::unique_ptr<ClusterCarrier> carrier_;
    Node sender_, receiver_;
};

/// Where a long message's later frames go the NIC does not know, and what it looks up for them must
/// not depend on where the system has put the program's memory.
TEST(ClusterCarrier, ALongMessagesTimesDoNotDependOnWhereMemoryLies) {
    Pair here(0x7F000), there(0x7F001);
    for (const std::uint32_t offset : {0U, 16 * 4096U, 0U, 17 * 4096U, 0U})
        EXPECT_EQ(here.page_of_message(offset).ns, there.page_of_message(offset).ns) << offset;
}

TEST(ClusterCarrier, TheSameSeedGivesTheSameWorld) {
    const Outcome first = run(7, ""), second = run(7, ""), other = run(7, "cq=1");
    EXPECT_EQ(first.report.trace_hash, second.report.trace_hash);
    EXPECT_NE(first.report.trace_hash, other.report.trace_hash);
}

}  // namespace via::lab::carrier::cluster_carrier_test
