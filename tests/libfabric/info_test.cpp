// SPDX-License-Identifier: Apache-2.0
// What the provider says of itself, to whoever asks in whatever way.
#include <cstdlib>

#include "scene.hpp"

using namespace scene;

namespace info_test {
namespace {

/// The first answer of the provider itself: libfabric layers its own ones over it.
const fi_info* ours(const Info& list) {
    for (const fi_info* at = list.get(); at != nullptr; at = at->next)
        if (std::string(at->fabric_attr->prov_name) == "via") return at;
    return nullptr;
}

TEST(Info, WithoutHintsTheProviderIsAmongAll) {
    const Info all = find(nullptr);
    const fi_info* info = ours(all);
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->ep_attr->type, FI_EP_MSG);
    EXPECT_EQ(info->addr_format, std::uint32_t{FI_SOCKADDR_IN});
    EXPECT_STREQ(info->domain_attr->name, "shm");
    EXPECT_STREQ(info->fabric_attr->name, "shm");
}

TEST(Info, AnEmptyNameOfADeviceIsNone) {
    const std::string before = getenv("FI_VIA_DEVICE");
    setenv("FI_VIA_DEVICE", "", 1);
    const Info all = find(nullptr);
    setenv("FI_VIA_DEVICE", before.c_str(), 1);
    EXPECT_NE(ours(all), nullptr);
}

TEST(Info, HintsWithoutAttributesAreEnough) {
    Info wanted = hints(0);
    for (void* part :
         {static_cast<void*>(wanted->tx_attr), static_cast<void*>(wanted->rx_attr),
          static_cast<void*>(wanted->domain_attr), static_cast<void*>(wanted->ep_attr)})
        free(part);
    wanted->tx_attr = nullptr;
    wanted->rx_attr = nullptr;
    wanted->domain_attr = nullptr;
    wanted->ep_attr = nullptr;
    EXPECT_NE(ours(find(wanted.get())), nullptr);
}

TEST(Info, HasWhatLayersAboveAskFor) {
    const Info info = find(hints().get());
    EXPECT_EQ(info->caps & (FI_MSG | FI_RMA | FI_READ | FI_REMOTE_READ | FI_REMOTE_WRITE),
              FI_MSG | FI_RMA | FI_READ | FI_REMOTE_READ | FI_REMOTE_WRITE);
    EXPECT_EQ(info->caps & (FI_LOCAL_COMM | FI_REMOTE_COMM), FI_LOCAL_COMM | FI_REMOTE_COMM);
    EXPECT_EQ(info->mode & ~(FI_CONTEXT | FI_RX_CQ_DATA), 0U);
    EXPECT_GE(info->tx_attr->size, 128U);
    EXPECT_GE(info->rx_attr->size, 128U);
    EXPECT_NE(info->tx_attr->msg_order & FI_ORDER_SAS, 0U);
    EXPECT_EQ(info->tx_attr->msg_order & FI_ORDER_SAR, 0U);
    EXPECT_EQ(info->domain_attr->cq_data_size, 4U);
    EXPECT_EQ(info->domain_attr->threading, FI_THREAD_SAFE);
    EXPECT_EQ(info->domain_attr->mr_mode & FI_MR_LOCAL, 0);
    ASSERT_EQ(info->src_addrlen, sizeof(sockaddr_in));
    EXPECT_NE(static_cast<sockaddr_in*>(info->src_addr)->sin_addr.s_addr, htonl(INADDR_ANY));
}

TEST(Info, MessagesAloneNeedNoRegisteredMemory) {
    Info wanted = hints(FI_MSG);
    wanted->domain_attr->mr_mode = 0;
    const Info info = find(wanted.get());
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->domain_attr->mr_mode, 0);
    EXPECT_EQ(info->caps & FI_RMA, 0U);
}

TEST(Info, NodeAndServiceBecomeAddresses) {
    const Info to = find(hints().get(), nullptr, "127.0.0.1", "7471");
    ASSERT_EQ(to->dest_addrlen, sizeof(sockaddr_in));
    EXPECT_EQ(static_cast<sockaddr_in*>(to->dest_addr)->sin_port, htons(7471));
    const Info from = find(hints().get(), nullptr, nullptr, "7471", FI_SOURCE);
    EXPECT_EQ(static_cast<sockaddr_in*>(from->src_addr)->sin_port, htons(7471));
    EXPECT_EQ(static_cast<sockaddr_in*>(from->src_addr)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
}

TEST(Info, WhatThereIsNotIsRefused) {
    const auto refused = [](const std::function<void(fi_info&)>& change) {
        Info wanted = hints();
        change(*wanted);
        int error = 0;
        const Info none = find(wanted.get(), &error);
        return error == -FI_ENODATA;
    };
    EXPECT_FALSE(refused([](fi_info&) {}));
    EXPECT_TRUE(refused([](fi_info& info) { info.caps |= FI_ATOMIC; }));
    EXPECT_TRUE(refused([](fi_info& info) { info.ep_attr->type = FI_EP_DGRAM; }));
    EXPECT_TRUE(refused([](fi_info& info) { info.addr_format = FI_SOCKADDR_IN6; }));
    EXPECT_TRUE(refused([](fi_info& info) { info.tx_attr->size = 100000; }));
    EXPECT_TRUE(refused([](fi_info& info) { info.tx_attr->inject_size = 1 << 20; }));
    EXPECT_TRUE(refused([](fi_info& info) { info.tx_attr->msg_order = FI_ORDER_SAR; }));
    EXPECT_TRUE(refused([](fi_info& info) { info.domain_attr->mr_mode = FI_MR_PROV_KEY; }));
    EXPECT_TRUE(refused([](fi_info& info) { info.domain_attr->name = strdup("nowhere"); }));
}

TEST(Info, AddressesOfOtherFamiliesAreNotForgotten) {
    for (const bool is_source : {true, false}) {
        Info wanted = hints();
        void* const address = calloc(1, sizeof(sockaddr_in6));
        static_cast<sockaddr_in6*>(address)->sin6_family = AF_INET6;
        (is_source ? wanted->src_addr : wanted->dest_addr) = address;
        (is_source ? wanted->src_addrlen : wanted->dest_addrlen) = sizeof(sockaddr_in6);
        int error = 0;
        const Info none = find(wanted.get(), &error);
        EXPECT_EQ(error, -FI_ENODATA) << is_source;
    }
}

TEST(Info, WhatIsNotSupportedSaysSo) {
    const Side side;
    void* operations = nullptr;
    EXPECT_EQ(fi_open_ops(&side.domain->fid, "any", 0, &operations, nullptr), -FI_ENOSYS);
    fi_av_attr vector{};
    fid_av* addresses = nullptr;
    EXPECT_EQ(fi_av_open(side.domain.get(), &vector, &addresses, nullptr), -FI_ENOSYS);
    fid_stx* shared = nullptr;
    EXPECT_EQ(fi_stx_context(side.domain.get(), side.info->tx_attr, &shared, nullptr), -FI_ENOSYS);
}

TEST(Info, NothingClosesBeforeWhatStandsOnIt) {
    Side side;
    EXPECT_EQ(fi_close(&side.fabric->fid), -FI_EBUSY);
    EXPECT_EQ(fi_close(&side.domain->fid), -FI_EBUSY);
    const Owned<fid_ep> endpoint = side.endpoint();
    EXPECT_EQ(fi_close(&side.queue->fid), -FI_EBUSY);
    EXPECT_EQ(fi_close(&side.events->fid), -FI_EBUSY);
}

}  // namespace
}  // namespace info_test
