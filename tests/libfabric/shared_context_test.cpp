// SPDX-License-Identifier: Apache-2.0
// Connected endpoints that take their receives from a shared receive context.
#include <algorithm>
#include <set>

#include "scene.hpp"

using namespace scene;

namespace shared_context_test {
namespace {

/// A side whose endpoints share one context, and another one with endpoints as others.
struct Sharing {
    explicit Sharing(std::size_t size = 64, std::uint64_t queue_flags = FI_TRANSMIT | FI_RECV)
        : server(options(queue_flags)), client(Options{}) {
        server.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
        fi_rx_attr attributes{};
        attributes.size = size;
        fid_ep* opened = nullptr;
        EXPECT_EQ(fi_srx_context(server.domain.get(), &attributes, &opened, this), 0);
        shared.reset(opened);
        listener = server.listen(address);
    }
    Options options(std::uint64_t queue_flags) {
        Options wanted;
        wanted.queue_flags = queue_flags;
        wanted.bind_more = [this](fid_ep* endpoint) {
            EXPECT_EQ(fi_ep_bind(endpoint, &shared->fid, 0), 0);
        };
        return wanted;
    }
    void connect(Owned<fid_ep>& asking, Owned<fid_ep>& accepting) {
        asking = client.endpoint();
        Info request(nullptr, fi_freeinfo);
        ask(asking.get(), server, listener, address, request);
        request->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
        accepting = server.endpoint(request.get());
        ASSERT_EQ(fi_accept(accepting.get(), nullptr, 0), 0);
        client.expect(FI_CONNECTED, &asking->fid);
        server.expect(FI_CONNECTED, &accepting->fid);
    }
    void post(std::uint64_t& room) {
        ASSERT_EQ(fi_recv(shared.get(), &room, sizeof room, nullptr, 0, &room), 0);
    }

    Side server;
    Side client;
    Owned<fid_ep> shared;
    sockaddr_in address{};
    Owned<fid_pep> listener;
};

TEST(SharedContext, IsOfferedToWhoAsks) {
    const Info asked = hints();
    asked->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
    asked->domain_attr->max_ep_srx_ctx = 2;
    const Info found = find(asked.get());
    EXPECT_EQ(found->ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT);
    EXPECT_GE(found->domain_attr->max_ep_srx_ctx, 2U);
    const Info plain = find(hints().get());
    EXPECT_EQ(plain->ep_attr->rx_ctx_cnt, 1U);
    asked->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
    int error = 0;
    find(asked.get(), &error);
    EXPECT_EQ(error, -FI_ENODATA) << "nothing is shared there by which one sends";
}

TEST(SharedContext, EndpointsTakeItsReceives) {
    Sharing sharing;
    Owned<fid_ep> asking[3];
    Owned<fid_ep> accepting[3];
    for (int n = 0; n < 3; ++n) sharing.connect(asking[n], accepting[n]);
    constexpr std::uint64_t count = 60;
    std::uint64_t rooms[count] = {};
    for (std::uint64_t& room : rooms) sharing.post(room);
    std::multiset<std::uint64_t> got;
    for (std::uint64_t value = 0; value < count; ++value) {
        ASSERT_EQ(fi_inject(asking[value % 3].get(), &value, sizeof value, 0), 0);
        const fi_cq_data_entry entry = completion(sharing.server, &sharing.client);
        EXPECT_EQ(entry.flags, FI_MSG | FI_RECV);
        EXPECT_EQ(entry.len, sizeof value);
        EXPECT_EQ(entry.buf, entry.op_context);
        EXPECT_EQ(*static_cast<std::uint64_t*>(entry.op_context), value);
        got.insert(value);
    }
    EXPECT_EQ(got.size(), count);
}

TEST(SharedContext, AMessageWaitsForAReceiveInIt) {
    Sharing sharing;
    Owned<fid_ep> asking;
    Owned<fid_ep> accepting;
    sharing.connect(asking, accepting);
    for (std::uint64_t value = 1; value <= 100; ++value)
        ASSERT_EQ(fi_inject(asking.get(), &value, sizeof value, 0), 0);
    for (std::uint64_t value = 1; value <= 100; ++value) {
        std::uint64_t room = 0;
        sharing.post(room);
        completion(sharing.server, &sharing.client);
        EXPECT_EQ(room, value);
    }
}

/// Connections with credits take receives beforehand; what they leave is others'.
TEST(SharedContext, WhatAClosedEndpointHadTakenIsThereForOthers) {
    Sharing sharing(8);
    Owned<fid_ep> asking[2];
    Owned<fid_ep> accepting[2];
    for (int n = 0; n < 2; ++n) sharing.connect(asking[n], accepting[n]);
    std::uint64_t rooms[8] = {};
    for (std::uint64_t& room : rooms) sharing.post(room);
    std::uint64_t one_more = 0;
    EXPECT_EQ(fi_recv(sharing.shared.get(), &one_more, 8, nullptr, 0, nullptr), -FI_EAGAIN);
    for (int n = 0; n < 100; ++n) {  // both have their shares
        fi_cq_read(sharing.server.queue.get(), nullptr, 0);
        fi_cq_read(sharing.client.queue.get(), nullptr, 0);
    }
    accepting[0].reset();
    sharing.client.expect(FI_SHUTDOWN, &asking[0]->fid);
    for (std::uint64_t value = 1; value <= 8; ++value)
        ASSERT_EQ(fi_inject(asking[1].get(), &value, sizeof value, 0), 0);
    for (std::uint64_t value = 1; value <= 8; ++value) {
        const fi_cq_data_entry entry = completion(sharing.server, &sharing.client);
        EXPECT_EQ(*static_cast<std::uint64_t*>(entry.op_context), value);
    }
    fi_cq_data_entry none;
    EXPECT_EQ(fi_cq_read(sharing.server.queue.get(), &none, 1), -FI_EAGAIN)
        << "nothing is told of receives that no message took";
}

TEST(SharedContext, SelectiveCompletionIsTheEndpoints) {
    Sharing sharing(16, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION);
    Owned<fid_ep> asking;
    Owned<fid_ep> accepting;
    sharing.connect(asking, accepting);
    std::uint64_t quiet = 0;
    std::uint64_t told = 0;
    sharing.post(quiet);
    const iovec piece{&told, sizeof told};
    fi_msg message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.context = word(7);
    EXPECT_EQ(fi_recvmsg(sharing.shared.get(), &message, FI_PEEK), -FI_EOPNOTSUPP);
    ASSERT_EQ(fi_recvmsg(sharing.shared.get(), &message, FI_COMPLETION), 0);
    for (std::uint64_t value = 1; value <= 2; ++value)
        ASSERT_EQ(fi_inject(asking.get(), &value, sizeof value, 0), 0);
    EXPECT_EQ(completion(sharing.server, &sharing.client).op_context, word(7));
    EXPECT_EQ(quiet, 1U);
    EXPECT_EQ(told, 2U);
}

TEST(SharedContext, WhatItCannotBeIsRefused) {
    Sharing sharing;
    fid_ep* shared = nullptr;
    fi_rx_attr attributes{};
    attributes.size = 65537;
    EXPECT_EQ(fi_srx_context(sharing.server.domain.get(), &attributes, &shared, nullptr),
              -FI_EINVAL);
    Owned<fid_ep> asking;
    Owned<fid_ep> accepting;
    sharing.connect(asking, accepting);
    std::uint64_t room = 0;
    EXPECT_EQ(fi_recv(accepting.get(), &room, 8, nullptr, 0, nullptr), -FI_EINVAL)
        << "it has no receives of its own";
    EXPECT_EQ(fi_close(&sharing.shared->fid), -FI_EBUSY);
    // One that shares must be told where, and one that does not cannot be.
    fid_ep* opened = nullptr;
    ASSERT_EQ(fi_endpoint(sharing.server.domain.get(), sharing.server.info.get(), &opened, nullptr),
              0);
    Owned<fid_ep> without(opened);
    EXPECT_EQ(fi_ep_bind(opened, &sharing.server.events->fid, 0), 0);
    EXPECT_EQ(fi_enable(opened), -FI_EOPBADSTATE);
    ASSERT_EQ(fi_endpoint(sharing.client.domain.get(), sharing.client.info.get(), &opened, nullptr),
              0);
    Owned<fid_ep> other(opened);
    EXPECT_EQ(fi_ep_bind(opened, &sharing.shared->fid, 0), -FI_EINVAL);
}

}  // namespace
}  // namespace shared_context_test
