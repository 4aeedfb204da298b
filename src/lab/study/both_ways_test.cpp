// A NIC that is busy in one way does not forget the other one.
#include <gtest/gtest.h>

#include "lab/file/machine_file.hpp"
#include "lab/study/cluster.hpp"

namespace via::lab::study::both_ways_test {

constexpr std::int64_t length = 60'000;
constexpr MessageId word = 1'000'000;  ///< what is to get through
constexpr Landing in_place{false, true, false, 0};
constexpr Landing news{false, false, true, 0};
constexpr Landing request{false, false, false, 0};

PhysicalDescriptor message_to(NodeId node, MessageId number, std::int64_t bytes,
                              const Landing& landing) {
    PhysicalDescriptor descriptor;
    descriptor.message = number;
    descriptor.buffer.length = bytes;
    descriptor.target = Target{node, 0, landing};
    return descriptor;
}

/// Long messages between hosts 0 and 1, several under way at any moment; and a word of host 1 to
/// host 0 in the midst of them. It has no bytes, so that it waits for no DMA.
class Flood {
public:
    explicit Flood(Cluster& cluster) : cluster_(cluster) {}

    /// How many of them came while the word was under way.
    MessageId run() {
        constexpr int under_way = 8;
        hear(0);
        hear(1);
        for (int n = 0; n < under_way; ++n) begin_next();
        EXPECT_TRUE(cluster_.schedule().run_until(ended_, 3'000'000));
        return came_ - before;
    }
    virtual ~Flood() = default;

protected:
    virtual void begin_next() = 0;
    virtual void say(PhysicalDescriptor descriptor) = 0;
    virtual void heard(NodeId at, MessageId message) = 0;
    void send(NodeId from, const PhysicalDescriptor& descriptor) {
        cluster_.schedule().spawn(cluster_.bearer(from).send(descriptor, false));
    }
    void came() {
        if (++came_ == before) say(message_to(0, word, 0, news));
        begin_next();
    }
    Cluster& cluster_;
    MessageId last_ = 0;

private:
    void hear(NodeId at) {
        cluster_.bearer(at).tell({[this, at](MessageId message) {
                                      if (message == word)
                                          ended_ = true;
                                      else
                                          heard(at, message);
                                  },
                                  [](MessageId) {}, [](ViId) { return false; }});
    }

    static constexpr MessageId before = 16;  ///< that come before the word is said
    MessageId came_ = 0;
    bool ended_ = false;
};

/// Host 0 writes; the word is an answer of host 1's firmware.
class Writes final : public Flood {
public:
    using Flood::Flood;

private:
    void begin_next() override { send(0, message_to(1, ++last_, length, in_place)); }
    void say(PhysicalDescriptor descriptor) override {
        descriptor.own = true;
        cluster_.bearer(1).send_own(descriptor);
    }
    void heard(NodeId, MessageId) override { came(); }
};

/// Host 0 reads, so that host 1's firmware has answers to make; the word is of its program.
class Reads final : public Flood {
public:
    using Flood::Flood;

private:
    void begin_next() override { send(0, message_to(1, ++last_, 0, request)); }
    void say(PhysicalDescriptor descriptor) override { send(1, descriptor); }
    void heard(NodeId at, MessageId message) override {
        if (at == 0) return came();
        PhysicalDescriptor reply = message_to(0, message + word, length, in_place);
        reply.own = true;
        cluster_.bearer(1).send_own(reply);
    }
};

template <class Kind>
void check(std::string_view name, std::string_view words) {
    const auto machine = file::load(std::string(name));
    ASSERT_TRUE(machine.has_value()) << machine.error();
    Trial trial{*machine, machine->design, {1, 1 << 20}, {}};
    ASSERT_TRUE(design::add(trial.design, words).has_value());
    const auto made = Cluster::make(trial, 2, 1);
    ASSERT_TRUE(made.has_value()) << name << ' ' << words << ": " << made.error();
    const MessageId came = Kind(**made).run();
    EXPECT_LE(came, 12U) << name << ' ' << words;
}

constexpr const char* static_mini = "at=1,cbh=none,pch=none";

template <class Kind>
void check_all() {
    for (const file::BuiltIn& machine : file::built_in()) check<Kind>(machine.name, "");
    for (const char* words : {"", ",rdma=buffered", ",doorbell=register,descriptors=fetched"}) {
        check<Kind>("mini", std::string(static_mini) + words);
        check<Kind>("clan", std::string("at=1") + words);
        check<Kind>("firmvia", std::string("at=1") + words);
    }
    check<Kind>("mini", "at=1,descriptors=fetched,cq=3,payload=merged,pch=dynamic,miss=hold");
}

TEST(LabBothWays, AnAnswerLeavesInTheMidstOfWritesThatCome) { check_all<Writes>(); }
TEST(LabBothWays, AProgramsMessageLeavesInTheMidstOfReadsThatAreAnswered) { check_all<Reads>(); }

}  // namespace via::lab::study::both_ways_test
