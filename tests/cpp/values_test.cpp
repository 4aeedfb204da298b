// What needs no NIC: addresses, errors, descriptors.
#include "scene.hpp"

using namespace via;
using namespace via::test;

namespace values_test {
namespace {

struct alignas(64) Room {
    VIP_DESCRIPTOR descriptor;
    VIP_DESCRIPTOR_SEGMENT further[2];
};

std::array<std::byte, 6> host() {
    return {std::byte{127}, std::byte{0}, std::byte{0}, std::byte{1}, std::byte{38}, std::byte{13}};
}

TEST(Address, HoldsHostAndDiscriminatorAsViplWantsThem) {
    const auto bytes = host();
    const Address address(bytes, "echo");
    EXPECT_EQ(6, address.raw()->HostAddressLen);
    EXPECT_EQ(4, address.raw()->DiscriminatorLen);
    EXPECT_EQ(0, std::memcmp(address.raw()->HostAddress + 6, "echo", 4));
    EXPECT_EQ("127.0.0.1:9741/echo", address.text());
    EXPECT_TRUE(std::ranges::equal(bytes, address.host()));
}

TEST(Address, OfIpv6IsWrittenAsIpv6) {
    std::array<std::byte, 18> bytes{std::byte{0xFD}};
    bytes[15] = std::byte{1};
    bytes[16] = std::byte{38};
    bytes[17] = std::byte{13};
    EXPECT_EQ("[fd00::1]:9741/echo", Address(bytes, "echo").text());
    EXPECT_EQ("1.2.3/", Address(std::array{std::byte{1}, std::byte{2}, std::byte{3}}, "").text());
}

TEST(Address, WithKeepsTheHost) {
    const Address address(host(), "a longer name");
    EXPECT_EQ(Address(host(), "echo"), address.with("echo"));
    EXPECT_FALSE(address == address.with("echo"));
    EXPECT_EQ(Address(), Address({}, ""));
}

TEST(Address, WhatIsTooLongKeepsItsLengthSoThatItIsRefused) {
    const std::string longest(64, 'x');
    EXPECT_EQ(longest, Address(host(), longest).discriminator());
    EXPECT_EQ(65, Address(host(), longest + 'y').raw()->DiscriminatorLen);
    EXPECT_EQ(64U, Address(host(), std::string(100'000, 'x')).discriminator().size());
}

TEST(Timeout, IsNeverBelowZeroAndEndlessFrom32BitsOn) {
    EXPECT_EQ(0U, detail::timeout_ms(-5ms));
    EXPECT_EQ(1500U, detail::timeout_ms(1500ms));
    EXPECT_EQ(0xFFFFFFFEU, detail::timeout_ms(std::chrono::milliseconds(0xFFFFFFFE)));
    EXPECT_EQ(VIP_INFINITE, detail::timeout_ms(std::chrono::milliseconds(0xFFFFFFFF)));
    EXPECT_EQ(VIP_INFINITE, detail::timeout_ms(forever));
}

TEST(Error, SaysWhatFailedWhyAndWhatToDo) {
    const std::string text = Error(VIP_NO_MATCH, "VipConnectRequest").message();
    EXPECT_NE(std::string::npos, text.find("VipConnectRequest: "));
    EXPECT_NE(std::string::npos, text.find(ViaReturnText(VIP_NO_MATCH)));
    EXPECT_NE(std::string::npos, text.find(". Start the listener first"));
}

TEST(Error, AdviceFitsTheCall) {
    const auto says = [](VIP_RETURN code, const char* call, std::string_view word) {
        return Error(code, call).message().find(word) != std::string::npos;
    };
    EXPECT_TRUE(says(VIP_ERROR_RESOURCE, "VipConnectWait", "Another process listens"));
    EXPECT_FALSE(says(VIP_ERROR_RESOURCE, "VipConnectWait", "completion queue"));
    EXPECT_TRUE(says(VIP_ERROR_RESOURCE, "VipRecvWait", "completion queue"));
    EXPECT_TRUE(says(VIP_INVALID_MTU, "VipCreateVi", "MaxTransferSize and the levels"));
    EXPECT_FALSE(says(VIP_INVALID_MTU, "VipCreateVi", "both VIs the same"));
    EXPECT_TRUE(says(VIP_INVALID_MTU, "VipConnectAccept", "both VIs the same"));
    EXPECT_TRUE(says(VIP_INVALID_RELIABILITY_LEVEL, "ViaSetCredits", "need a reliable VI"));
    EXPECT_FALSE(says(VIP_REJECT, "ViaImportSegment", "the connection"));
    EXPECT_TRUE(says(VIP_REJECT, "ViaImportSegment", "must allow RDMA read"));
}

TEST(Error, EveryCodeAndEveryStatusHasWords) {
    for (int code = VIP_NOT_DONE; code <= VIP_ERROR_NOT_SUPPORTED; ++code)
        EXPECT_GT(Error(static_cast<VIP_RETURN>(code), "call").message().size(), 8U) << code;
    for (VIP_UINT32 bit = VIP_STATUS_FORMAT_ERROR; bit <= VIP_STATUS_REMOTE_DESC_ERROR; bit <<= 1)
        EXPECT_STRNE(status_text(0), status_text(bit)) << bit;
    for (int code = VIP_ERROR_POST_DESC; code <= VIP_ERROR_CATASTROPHIC; ++code)
        EXPECT_STRNE("unknown asynchronous error", text_of(static_cast<VIP_ERROR_CODE>(code)));
}

TEST(Descriptor, SendHasItsSegmentsAndTheirSum) {
    Room room{};
    room.descriptor.CS.Control = 0xFFFF;
    room.descriptor.CS.Reserved = 7;
    std::array<std::byte, 8> bytes{};
    Descriptor descriptor(&room.descriptor, 5, 4);
    descriptor.send(Segment{bytes.data(), 3, 9}, Segment{bytes.data() + 3, 5, 10})
        .immediate(0xCAFE)
        .fence();
    const VIP_CONTROL_SEGMENT& control = room.descriptor.CS;
    EXPECT_EQ(2, control.SegCount);
    EXPECT_EQ(VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE | VIP_CONTROL_QFENCE,
              control.Control);
    EXPECT_EQ(8U, control.Length);
    EXPECT_EQ(0U, control.Reserved);
    EXPECT_EQ(0xCAFEU, control.ImmediateData);
    EXPECT_EQ(bytes.data() + 3, room.descriptor.DS[1].Local.Data.Address);
    EXPECT_EQ(10U, room.descriptor.DS[1].Local.Handle);
    EXPECT_EQ(5U, room.descriptor.DS[1].Local.Length);
    EXPECT_EQ(5U, descriptor.handle());
}

TEST(Descriptor, RdmaCountsItsRemoteSegmentButNotItsBytes) {
    Room room{};
    std::byte byte{};
    const RemoteSegment remote{0x1000, 100, 77, 0};
    Descriptor(&room.descriptor, 5).rdma_write(remote.from(16), Segment{&byte, 1, 9});
    EXPECT_EQ(VIP_CONTROL_OP_RDMAWRITE, room.descriptor.CS.Control);
    EXPECT_EQ(2, room.descriptor.CS.SegCount);
    EXPECT_EQ(1U, room.descriptor.CS.Length);
    EXPECT_EQ(0x1010U, room.descriptor.DS[0].Remote.Data.AddressBits);
    EXPECT_EQ(77U, room.descriptor.DS[0].Remote.Handle);
    Descriptor(&room.descriptor, 5).rdma_read(remote);
    EXPECT_EQ(VIP_CONTROL_OP_RDMAREAD, room.descriptor.CS.Control);
    EXPECT_EQ(1, room.descriptor.CS.SegCount);
    EXPECT_EQ(0U, remote.from(101).length);
    EXPECT_EQ(84U, remote.from(16).length);
}

TEST(Descriptor, MoreSegmentsThanRoomAreNoticedAndForgottenByTheNextBuild) {
    Room room{};
    std::byte byte{};
    const Segment segment{&byte, 1, 9};
    Descriptor descriptor(&room.descriptor, 5);
    EXPECT_TRUE(descriptor.send(segment, segment, segment).overfull());
    EXPECT_EQ(2, room.descriptor.CS.SegCount);
    EXPECT_FALSE(descriptor.send(segment).overfull());
    EXPECT_FALSE(Descriptor(&room.descriptor, 5, 4).send(segment, segment, segment).overfull());
}

TEST(Segment, LengthsBeyond32BitsDoNotBecomeShort) {
    EXPECT_EQ(0xFFFFFFFFU, detail::segment_length((1ULL << 32) + 1));
}

TEST(Completion, ReadsTheDescriptor) {
    Room room{};
    std::array<std::byte, 8> bytes{};
    Descriptor(&room.descriptor, 5).receive(Segment{bytes.data(), 8, 9});
    room.descriptor.CS.Status = VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE;
    room.descriptor.CS.Length = 3;
    room.descriptor.CS.ImmediateData = 11;
    const Completion completion(&room.descriptor, nullptr);
    EXPECT_TRUE(completion.is_receive());
    EXPECT_EQ(3U, completion.bytes().size());
    EXPECT_EQ(bytes.data(), completion.bytes().data());
    EXPECT_EQ(11U, completion.immediate());
    room.descriptor.CS.Status = VIP_STATUS_DONE | VIP_STATUS_OP_SEND;
    EXPECT_FALSE(completion.is_receive());
    EXPECT_FALSE(completion.immediate());
    EXPECT_TRUE(completion.bytes().empty());
    EXPECT_FALSE(Completion());
}

}  // namespace
}  // namespace values_test
