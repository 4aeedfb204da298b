// SPDX-License-Identifier: Apache-2.0
// A peer of an endpoint for datagrams that is none of ours, and says whatever it likes.
#pragma once

#include <via/via.h>

#include <atomic>
#include <span>
#include <thread>
#include <via/address.hpp>

#include "rdm_scene.hpp"

namespace scene {

/// Where that NIC is.
inline via::Address host_of(VIP_NIC_HANDLE nic) {
    VIP_NIC_ATTRIBUTES own{};
    EXPECT_EQ(VipQueryNic(nic, &own), VIP_SUCCESS);
    return via::Address(
        {reinterpret_cast<const std::byte*>(own.LocalNicAddress), own.NicAddressLen});
}

/// As rdm/wire.hpp and rdm/shared_lines.hpp describe what is said.
class Liar {
public:
    explicit Liar(Party& victim) : victim_(victim) {
        EXPECT_EQ(VipOpenNic("shm", &nic_), VIP_SUCCESS);
        VIP_VI_ATTRIBUTES attributes{};
        attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
        attributes.MaxTransferSize = 1 << 30;
        attributes.EnableRdmaRead = VIP_TRUE;
        attributes.EnableRdmaWrite = VIP_TRUE;
        EXPECT_EQ(ViaRegisterAll(nic_, &memory_), VIP_SUCCESS);
        EXPECT_EQ(VipCreateVi(nic_, &attributes, nullptr, nullptr, &vi_), VIP_SUCCESS);
        EXPECT_EQ(ViaSetCredits(vi_, VIP_TRUE), VIP_SUCCESS);
        const via::Address host = host_of(nic_);
        peer_ = host.with("libfabric:" + std::to_string(ntohs(victim.name.sin_port)));
        own_ = host.with("liar");
    }
    ~Liar() {
        VipDisconnect(vi_);
        for (const auto done_of : {VipSendDone, VipRecvDone}) {
            VIP_DESCRIPTOR* done = nullptr;
            do {
                done = nullptr;
                done_of(vi_, &done);
            } while (done != nullptr);
        }
        VipDestroyVi(vi_);
        VipCloseNic(nic_);
    }
    Liar(const Liar&) = delete;
    Liar& operator=(const Liar&) = delete;

    /// magic, version and port, packet, crossed, incarnation; lines' address and handle, and
    /// whether they are wanted.
    static std::vector<std::uint32_t> hello(std::uint32_t port, bool wants_lines = false) {
        return {0x4d445256, 6 | port << 16, 16 + 65536, 0, 7, 0, 0, 0, 0, wants_lines ? 1U : 0U};
    }
    VIP_RETURN connect(const std::vector<std::uint32_t>& said) {
        return beside_victim([&] {
            VIP_VI_ATTRIBUTES theirs;
            return ViaConnectRequest(vi_, own_.raw(), peer_.raw(), 10000, &theirs, said.data(),
                                     static_cast<VIP_UINT32>(4 * said.size()));
        });
    }
    /// The victim's lines, attached, of eight words each: 32 that it stores in, 32 of ours; then 1
    /// KB for each of them, then where each end is, then what each took. nullptr: it has none.
    std::uint64_t* lines() {
        std::uint32_t reply[10] = {};
        VIP_UINT32 length = sizeof reply;
        EXPECT_EQ(ViaQueryPrivateData(vi_, reply, &length), VIP_SUCCESS);
        EXPECT_EQ(length, sizeof reply);
        const std::uint64_t address = std::uint64_t{reply[7]} << 32 | reply[6];
        if (address == 0) return nullptr;
        VIP_PVOID here = nullptr;
        VIP_ULONG room = 0;
        EXPECT_EQ(beside_victim([&] {
                      return ViaImportSegment(vi_, address, reply[8], VIP_TRUE, 10000, &here,
                                              &room);
                  }),
                  VIP_SUCCESS);
        EXPECT_GE(room, 64 * (64 + 1024U) + 4 * 64);
        return static_cast<std::uint64_t*>(here);
    }
    void say(const std::vector<std::uint64_t>& words, std::size_t length) {
        said_ = words;
        post(VipPostSend, said_.data(), length, sent_);
    }
    /// For one message; what came is in `to` after hear().
    void listen(std::vector<std::uint64_t>& to) {
        post(VipPostRecv, to.data(), 8 * to.size(), heard_);
    }
    void hear() {
        VIP_DESCRIPTOR* done = nullptr;
        const auto has_come = [&] { return VipRecvDone(vi_, &done) != VIP_NOT_DONE; };
        EXPECT_TRUE(victim_reads_until(has_come));
    }
    /// By RDMA, with immediate data, which takes a receive of the victim's.
    void write(const std::vector<std::byte>& bytes, std::uint64_t address, std::uint64_t key) {
        const auto length = static_cast<VIP_UINT32>(bytes.size());
        sent_.CS = {};
        sent_.CS.Control = VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE;
        sent_.CS.SegCount = 2;
        sent_.CS.Length = length;
        sent_.DS[0].Remote = {{.AddressBits = address}, static_cast<VIP_MEM_HANDLE>(key), 0};
        sent_.DS[1].Local = {{.Address = const_cast<std::byte*>(bytes.data())}, memory_, length};
        EXPECT_EQ(VipPostSend(vi_, &sent_, memory_), VIP_SUCCESS);
    }
    void leave() { VipDisconnect(vi_); }
    bool is_connected() {
        VIP_VI_STATE state;
        VIP_VI_ATTRIBUTES attributes;
        VIP_BOOLEAN empty;
        VipQueryVi(vi_, &state, &attributes, &empty, &empty);
        return state == VIP_STATE_CONNECTED;
    }
    void expect_end() {
        EXPECT_TRUE(victim_reads_until([&] { return !is_connected(); }));
    }

private:
    /// False: it took too long.
    template <class Done>
    bool victim_reads_until(Done&& done) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (std::chrono::steady_clock::now() < end) {
            if (done()) return true;
            victim_.read();
        }
        return false;
    }
    /// What sleeps until the victim answers.
    template <class Call>
    VIP_RETURN beside_victim(Call&& call) {
        VIP_RETURN code = VIP_NOT_DONE;
        std::atomic<bool> done{false};
        std::thread sleeper([&] {
            code = call();
            done = true;
        });
        while (!done) victim_.read();
        sleeper.join();
        return code;
    }
    template <class Call>
    void post(Call&& call, void* bytes, std::size_t length, VIP_DESCRIPTOR& descriptor) {
        descriptor.CS = {};
        descriptor.CS.SegCount = 1;
        descriptor.CS.Length = static_cast<VIP_UINT32>(length);
        descriptor.DS[0].Local = {{.Address = bytes}, memory_, static_cast<VIP_UINT32>(length)};
        EXPECT_EQ(call(vi_, &descriptor, memory_), VIP_SUCCESS);
    }

    Party& victim_;
    VIP_NIC_HANDLE nic_ = nullptr;
    VIP_MEM_HANDLE memory_ = 0;
    VIP_VI_HANDLE vi_ = nullptr;
    via::Address own_;
    via::Address peer_;
    std::vector<std::uint64_t> said_;
    alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR sent_;
    alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR heard_;
};

/// The second word of a header: data, kind, flags, the message's number.
constexpr std::uint64_t kind(std::uint64_t kind, std::uint64_t flags = 1,
                             std::uint64_t number = 0) {
    return kind << 32 | flags << 40 | number << 48;
}

struct Lie {
    const char* what;
    std::vector<std::uint64_t> words;
    std::size_t length;
};

/// Each by a liar of its own, whose connection ends.
inline void expect_each_ends(Party& victim, std::span<const Lie> lies) {
    std::uint32_t port = 1;
    for (const Lie& lie : lies) {
        SCOPED_TRACE(lie.what);
        Liar liar(victim);
        ASSERT_EQ(liar.connect(Liar::hello(port++)), VIP_SUCCESS);
        liar.say(lie.words, lie.length);
        liar.expect_end();
    }
}

}  // namespace scene
