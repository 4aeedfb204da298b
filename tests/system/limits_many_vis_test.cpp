// A thousand VIs between two processes: what they cost in memory and in descriptors.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test::limits_many_vis_test {

namespace {

constexpr const char* door = "door";
constexpr unsigned vis = 1000;
constexpr unsigned receives = 8;  ///< posted on each
constexpr std::size_t message_bytes = 8;
constexpr double pss_per_vi_max_kib = 16;
constexpr std::size_t descriptors_max = 1024;

/// Many VIs over memory that is there before the first of them.
class ManyEnds {
public:
    ManyEnds() : memory_(nic_, vis * slot_bytes) {
        for (std::size_t at = 0; at < memory_.bytes(); at += 4096) memory_.data()[at] = {};
        vis_.reserve(vis);
    }
    /// Afterwards nothing is posted in the memory, which goes before the NIC does.
    ~ManyEnds() {
        for (const VIP_VI_HANDLE vi : vis_) VipDisconnect(vi);
    }
    ManyEnds(const ManyEnds&) = delete;
    ManyEnds& operator=(const ManyEnds&) = delete;

    /// One more VI, connected by the call given.
    template <class Connect>
    void add(Connect connect) {
        VIP_VI_ATTRIBUTES attributes{};
        attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
        attributes.MaxTransferSize = 65536;
        VIP_VI_HANDLE vi = nullptr;
        OK(VipCreateVi(nic_.handle(), &attributes, nullptr, nullptr, &vi));
        vis_.push_back(vi);
        const unsigned index = static_cast<unsigned>(vis_.size() - 1);
        for (unsigned slot = 0; slot < receives; ++slot) post(VipPostRecv, index, slot);
        connect(vi);
    }
    void request(VIP_VI_HANDLE vi) {
        Address local = nic_.address("from");
        Address remote = nic_.address(door);
        VIP_VI_ATTRIBUTES theirs{};
        until("somebody listens", [&] {
            const VIP_RETURN code =
                VipConnectRequest(vi, local.get(), remote.get(), watchdog_ms, &theirs);
            if (code != VIP_NO_MATCH) must(code, "VipConnectRequest");
            return code == VIP_SUCCESS;
        });
    }
    void accept(VIP_VI_HANDLE vi) {
        Address local = nic_.address(door);
        Address remote;
        VIP_VI_ATTRIBUTES theirs{};
        VIP_CONN_HANDLE connection = nullptr;
        OK(VipConnectWait(nic_.handle(), local.get(), watchdog_ms, remote.get(), &theirs,
                          &connection));
        OK(VipConnectAccept(connection, vi));
    }
    void send(unsigned index) {
        std::memcpy(buffer(index, receives), &index, sizeof index);
        post(VipPostSend, index, receives);
        VIP_DESCRIPTOR* done = nullptr;
        OK(VipSendWait(vis_[index], watchdog_ms, &done));
    }
    void receive(unsigned index) {
        VIP_DESCRIPTOR* done = nullptr;
        OK(VipRecvWait(vis_[index], watchdog_ms, &done));
        unsigned number = 0;
        std::memcpy(&number, done->DS[0].Local.Data.Address, sizeof number);
        require(number == index, "the message is for this VI");
        OK(VipPostRecv(vis_[index], done, memory_.handle()));
    }

private:
    static constexpr std::size_t slot_bytes = (receives + 1) * (sizeof(VIP_DESCRIPTOR) + 64);

    std::byte* buffer(unsigned index, unsigned slot) {
        return memory_.data() + index * slot_bytes + (receives + 1) * sizeof(VIP_DESCRIPTOR) +
               slot * 64;
    }
    void post(VIP_RETURN (*call)(VIP_VI_HANDLE, VIP_DESCRIPTOR*, VIP_MEM_HANDLE), unsigned index,
              unsigned slot) {
        auto* at = reinterpret_cast<VIP_DESCRIPTOR*>(memory_.data() + index * slot_bytes) + slot;
        *at = {};
        at->CS.SegCount = 1;
        at->CS.Length = message_bytes;
        at->DS[0].Local.Data.Address = buffer(index, slot);
        at->DS[0].Local.Handle = memory_.handle();
        at->DS[0].Local.Length = message_bytes;
        must(call(vis_[index], at, memory_.handle()), "Post");
    }

    Nic nic_;
    Memory memory_;
    std::vector<VIP_VI_HANDLE> vis_;
};

/// Argument 0: "accept" or "request". One VI, then, when told, all; each carries messages.
void be_one_of_many(Parent& parent) {
    const rlimit limit{descriptors_max, descriptors_max};
    require_call(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    const bool accepts = parent.argument(0) == "accept";
    ManyEnds ends;
    const auto connect = [&](VIP_VI_HANDLE vi) { accepts ? ends.accept(vi) : ends.request(vi); };
    const auto talk = [&](unsigned index) {
        for (int messages = 0; messages < 4; ++messages) {
            if (!accepts) ends.send(index);
            ends.receive(index);
            if (accepts) ends.send(index);
        }
    };
    ends.add(connect);
    talk(0);
    parent.say("one");
    parent.expect("all");
    for (unsigned index = 1; index < vis; ++index) ends.add(connect);
    for (unsigned index = 0; index < vis; ++index) talk(index);
    parent.say("all");
    parent.expect("end");
}
const Role many_role("one-of-many", be_one_of_many);

/// Of both processes, a second after their traffic stopped: that long is part of the promise.
struct Cost {
    double pss_kib = 0;
    std::size_t descriptors = 0;

    Cost(const Child& a, const Child& b) {
        sleep(1);
        for (const Child* child : {&a, &b}) {
            const std::string process = "/proc/" + std::to_string(child->pid());
            pss_kib += static_cast<double>(read_number(process + "/smaps_rollup", "Pss"));
            descriptors += Holdings::of(child->pid()).descriptors;
        }
    }
};

TEST(ThousandVis, CostLittleMemoryAndNoDescriptors) {
    Host host;
    Child server("one-of-many", {.arguments = {"accept"}});
    Child client("one-of-many", {.arguments = {"request"}});
    server.expect("one");
    client.expect("one");
    const Cost one(server, client);
    server.say("all");
    client.say("all");
    server.expect("all");
    client.expect("all");
    const Cost all(server, client);
    const double each_kib = (all.pss_kib - one.pss_kib) / (vis - 1);
    std::printf("%.2f KiB Pss of both processes for each of %u VIs; %zu descriptors\n", each_kib,
                vis, all.descriptors);
    RecordProperty("pss_per_vi_kib", std::to_string(each_kib));
    if (!sanitized) {
        EXPECT_LT(each_kib, pss_per_vi_max_kib);
    }
    EXPECT_EQ(all.descriptors, one.descriptors) << "descriptors grow with peers, not with VIs";
    server.say("end");
    client.say("end");
    server.join();
    client.join();
}

/// Opens as many NICs as argument 0 says, each connected to the door.
void be_many_nics(Parent& parent) {
    std::vector<std::unique_ptr<Nic>> nics;
    std::vector<std::unique_ptr<End>> ends;
    const unsigned count = static_cast<unsigned>(std::stoul(parent.argument(0)));
    for (unsigned n = 0; n < count; ++n) {
        nics.push_back(std::make_unique<Nic>());
        ends.push_back(std::make_unique<End>(*nics.back()));
        ends.back()->connect(door);
    }
    for (auto& end : ends) {
        fill(end->send_buffer(0), 64, 1);
        end->post_send(0, 64);
        require(end->wait_sent(watchdog_ms)->ok(), "the send succeeds");
    }
    parent.expect("end");
}
const Role many_nics_role("many-nics", be_many_nics);

TEST(ManyPeers, CostFewDescriptorsEach) {
    constexpr unsigned peers = 50;
    constexpr std::size_t descriptors_per_peer_max =
        2;  // a socket, and one that tells of its death
    Host host;
    Nic nic;
    const Holdings before = Holdings::now();
    std::vector<std::unique_ptr<End>> ends;
    {
        Child child("many-nics", {.arguments = {std::to_string(peers)}});
        const Holdings with_child = Holdings::now();
        for (unsigned n = 0; n < peers; ++n) {
            ends.push_back(std::make_unique<End>(nic));
            ends.back()->accept(door);
        }
        for (auto& end : ends) {
            const auto outcome = end->wait_received(watchdog_ms);
            ASSERT_TRUE(outcome && outcome->ok());
        }
        const Holdings all = Holdings::now();
        EXPECT_LE(all.descriptors, with_child.descriptors + peers * descriptors_per_peer_max);
        EXPECT_EQ(all.threads, before.threads) << "threads do not grow with peers";
        child.say("end");
        child.join();
    }
    for (auto& end : ends) nic.wait_error(end->vi(), VIP_ERROR_CONN_LOST);
    const Holdings after = Holdings::now();
    // Less: the progress thread that had just started, or a sanitizer, had one for a moment.
    EXPECT_LE(after.descriptors, before.descriptors);
    EXPECT_EQ(after.mappings, before.mappings);
}

}  // namespace

}  // namespace system_test::limits_many_vis_test
