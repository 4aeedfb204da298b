// SPDX-License-Identifier: Apache-2.0
// Messages and RMA, with every byte checked.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "scene.hpp"

using namespace scene;

namespace {

constexpr int posts_unlimited = 1 << 30;
std::atomic<int> posts_left{posts_unlimited};

}  // namespace

/// The provider's calls of VIPL's function come here, as the program's symbols are found first:
/// beyond `posts_left` there is no memory (VIP_ERROR_RESOURCE).
#ifdef __clang__
__attribute__((no_sanitize("function")))  // VIPL's types are not known here
#endif
extern "C" __attribute__((visibility("default"))) int
VipPostSend(void* vi, void* descriptor, std::uint32_t handle) {
    using Function = int (*)(void*, void*, std::uint32_t);
    static const auto real = reinterpret_cast<Function>(
        dlsym(dlopen("libvipl.so.1", RTLD_NOW | RTLD_NOLOAD), "VipPostSend"));
    return posts_left-- > 0 ? real(vi, descriptor, handle) : 3;
}

namespace transfer_test {
namespace {

TEST(Messages, OfAllLengthsArriveWhole) {
    Pair pair;
    unsigned seed = 1;
    for (const std::size_t length :
         {0UL, 1UL, 8UL, 63UL, 192UL, 4096UL, 16448UL, 100000UL, 1UL << 20}) {
        const auto data = pattern(length, ++seed);
        std::vector<std::byte> room(length + 8);
        ASSERT_EQ(fi_recv(pair.right.get(), room.data(), room.size(), nullptr, 0, word(1)), 0);
        // In three pieces, of which one may be empty.
        const iovec pieces[] = {
            {const_cast<std::byte*>(data.data()), length / 3},
            {const_cast<std::byte*>(data.data()) + length / 3, 0},
            {const_cast<std::byte*>(data.data()) + length / 3, length - length / 3}};
        ASSERT_EQ(fi_sendv(pair.left.get(), pieces, nullptr, 3, 0, word(2)), 0);
        const fi_cq_data_entry got = completion(pair.b, &pair.a);
        EXPECT_EQ(got.op_context, word(1));
        EXPECT_EQ(got.flags, FI_MSG | FI_RECV);
        EXPECT_EQ(got.len, length);
        EXPECT_EQ(got.buf, room.data());
        EXPECT_TRUE(std::equal(data.begin(), data.end(), room.begin())) << length;
        const fi_cq_data_entry sent = completion(pair.a);
        EXPECT_EQ(sent.op_context, word(2));
        EXPECT_EQ(sent.flags, FI_MSG | FI_SEND);
    }
}

TEST(Messages, ScatteredWhereTheyArrive) {
    Pair pair;
    const auto data = pattern(1000, 3);
    std::vector<std::byte> room(1000);
    const iovec pieces[] = {{room.data(), 10}, {room.data() + 10, 500}, {room.data() + 510, 490}};
    ASSERT_EQ(fi_recvv(pair.right.get(), pieces, nullptr, 3, 0, nullptr), 0);
    ASSERT_EQ(fi_send(pair.left.get(), data.data(), data.size(), nullptr, 0, nullptr), 0);
    EXPECT_EQ(completion(pair.b).len, 1000U);
    EXPECT_EQ(room, data);
}

TEST(Messages, CarryData) {
    Pair pair;
    std::uint32_t room[2] = {};
    for (std::uint32_t& place : room)
        ASSERT_EQ(fi_recv(pair.right.get(), &place, 4, nullptr, 0, nullptr), 0);
    const std::uint32_t value = 4711;
    ASSERT_EQ(fi_senddata(pair.left.get(), &value, 4, nullptr, 0xFEDCBA98, 0, nullptr), 0);
    ASSERT_EQ(fi_injectdata(pair.left.get(), &value, 4, 12, 0), 0);
    for (const std::uint64_t data : {0xFEDCBA98UL, 12UL}) {
        const fi_cq_data_entry got = completion(pair.b);
        EXPECT_EQ(got.flags, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA);
        EXPECT_EQ(got.data, data);
    }
    EXPECT_EQ(room[1], value);
}

TEST(Messages, InjectedOnesNeedTheirMemoryNoMoreAndSayNothing) {
    Pair pair;
    std::uint64_t room[64] = {};
    for (std::uint64_t& place : room)
        ASSERT_EQ(fi_recv(pair.right.get(), &place, 8, nullptr, 0, nullptr), 0);
    std::uint64_t value = 0;
    for (; value < 64; ++value) ASSERT_EQ(fi_inject(pair.left.get(), &value, 8, 0), 0);
    for (std::uint64_t expected = 0; expected < 64; ++expected) {
        completion(pair.b, &pair.a);
        EXPECT_EQ(room[expected], expected);
    }
    fi_cq_data_entry none;
    EXPECT_EQ(fi_cq_read(pair.a.queue.get(), &none, 1), -FI_EAGAIN);
    const std::vector<std::byte> large(pair.a.info->tx_attr->inject_size + 1);
    EXPECT_EQ(fi_inject(pair.left.get(), large.data(), large.size(), 0), -FI_EMSGSIZE);
}

/// Credits: nothing is lost, however late the receives come.
TEST(Messages, WaitForTheirReceives) {
    Pair pair;
    constexpr std::uint64_t count = 200;
    for (std::uint64_t value = 0; value < count; ++value)
        ASSERT_EQ(fi_inject(pair.left.get(), &value, 8, 0), 0);
    for (std::uint64_t expected = 0; expected < count; ++expected) {
        std::uint64_t room = 0;
        ASSERT_EQ(fi_recv(pair.right.get(), &room, 8, nullptr, 0, nullptr), 0);
        completion(pair.b, &pair.a);
        EXPECT_EQ(room, expected);
    }
}

TEST(Messages, TooLongForTheReceiveIsAnErrorThere) {
    Pair pair;
    std::byte room[4];
    ASSERT_EQ(fi_recv(pair.right.get(), room, 4, nullptr, 0, word(9)), 0);
    ASSERT_EQ(fi_inject(pair.left.get(), "too long", 8, 0), 0);
    const fi_cq_err_entry error = failure(pair.b);
    EXPECT_EQ(error.op_context, word(9));
    EXPECT_EQ(error.err, FI_ETRUNC);
    // That was the end of the connection, at both sides.
    pair.a.expect(FI_SHUTDOWN, &pair.left->fid);
    pair.b.expect(FI_SHUTDOWN, &pair.right->fid);
    EXPECT_EQ(fi_shutdown(pair.right.get(), 0), -FI_ENOTCONN);
}

TEST(Messages, WhatAFlagCannotHaveIsRefused) {
    Pair pair;
    fi_msg message{};
    for (const std::uint64_t flag : {FI_PEEK, FI_CLAIM, FI_DISCARD, FI_MULTI_RECV})
        EXPECT_EQ(fi_recvmsg(pair.right.get(), &message, flag), -FI_EOPNOTSUPP) << flag;
    EXPECT_EQ(fi_sendmsg(pair.left.get(), &message, FI_COMMIT_COMPLETE), -FI_EOPNOTSUPP);
}

struct Rma : testing::Test {
    Rma() : target(size), local(pattern(size, 5)) {
        region = pair.b.memory(target.data(), target.size(), FI_REMOTE_READ | FI_REMOTE_WRITE);
    }
    std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(target.data()); }

    static constexpr std::size_t size = 3 << 20;
    Pair pair;
    std::vector<std::byte> target;
    std::vector<std::byte> local;
    Owned<fid_mr> region;
};

TEST_F(Rma, WritesAndReads) {
    for (const std::size_t length : {0UL, 1UL, 8UL, 8192UL, 65536UL, size}) {
        std::ranges::fill(target, std::byte{0});
        ASSERT_EQ(fi_write(pair.left.get(), local.data(), length, nullptr, 0, address(),
                           fi_mr_key(region.get()), word(length)),
                  0);
        const fi_cq_data_entry written = completion(pair.a, &pair.b);
        EXPECT_EQ(written.op_context, word(length));
        EXPECT_EQ(written.flags, FI_RMA | FI_WRITE);
        std::vector<std::byte> back(length);
        ASSERT_EQ(fi_read(pair.left.get(), back.data(), length, nullptr, 0, address(),
                          fi_mr_key(region.get()), nullptr),
                  0);
        EXPECT_EQ(completion(pair.a, &pair.b).flags, FI_RMA | FI_READ);
        EXPECT_TRUE(std::equal(back.begin(), back.end(), local.begin())) << length;
        EXPECT_TRUE(std::equal(back.begin(), back.end(), target.begin())) << length;
    }
}

TEST_F(Rma, WriteWithDataTakesAReceive) {
    ASSERT_EQ(fi_recv(pair.right.get(), nullptr, 0, nullptr, 0, word(3)), 0);
    ASSERT_EQ(fi_writedata(pair.left.get(), local.data(), 1000, nullptr, 99, 0, address(),
                           fi_mr_key(region.get()), nullptr),
              0);
    const fi_cq_data_entry got = completion(pair.b, &pair.a);
    EXPECT_EQ(got.op_context, word(3));
    EXPECT_EQ(got.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
    EXPECT_EQ(got.data, 99U);
    EXPECT_TRUE(std::equal(local.begin(), local.begin() + 1000, target.begin()));
}

TEST_F(Rma, RightsEndWithTheRegion) {
    const std::uint64_t key = fi_mr_key(region.get());
    region.reset();
    ASSERT_EQ(fi_write(pair.left.get(), local.data(), 8, nullptr, 0, address(), key, word(4)), 0);
    // Delivery is what was asked for: the write may be out before it is refused.
    pair.a.expect(FI_SHUTDOWN, &pair.left->fid);
    EXPECT_EQ(target[0], std::byte{0});
    // The same memory again: the key may be the old one, the rights are new.
    region = pair.b.memory(target.data(), target.size(), FI_REMOTE_READ);
}

TEST_F(Rma, RegionsOfNoBytesAndOfNoMemory) {
    const Owned<fid_mr> empty = pair.b.memory(target.data(), 0, FI_REMOTE_READ | FI_REMOTE_WRITE);
    ASSERT_EQ(fi_write(pair.left.get(), local.data(), 0, nullptr, 0, address(),
                       fi_mr_key(empty.get()), word(1)),
              0);
    EXPECT_EQ(completion(pair.a).op_context, word(1));
    fid_mr* none = nullptr;
    EXPECT_EQ(fi_mr_reg(pair.b.domain.get(), nullptr, 100, FI_REMOTE_READ, 0, 0, 0, &none, nullptr),
              -FI_EINVAL);
}

TEST_F(Rma, ReadOnlyMemoryIsNotWritten) {
    const auto shown = pair.b.memory(target.data(), 4096, FI_REMOTE_READ);
    std::vector<std::byte> back(8);
    ASSERT_EQ(fi_read(pair.left.get(), back.data(), 8, nullptr, 0, address(),
                      fi_mr_key(shown.get()), nullptr),
              0);
    completion(pair.a, &pair.b);
    ASSERT_EQ(fi_write(pair.left.get(), local.data(), 8, nullptr, 0, address(),
                       fi_mr_key(shown.get()), nullptr),
              0);
    pair.a.expect(FI_SHUTDOWN, &pair.left->fid);
    EXPECT_EQ(target[0], std::byte{0});
}

TEST(Delivery, IsCompleteWhenThePeerHasIt) {
    Options options;
    options.op_flags = FI_DELIVERY_COMPLETE;
    Pair pair(options);  // the accepting side takes the level from the request
    std::uint64_t target = 0;
    const auto region = pair.b.memory(&target, 8, FI_REMOTE_WRITE);
    for (std::uint64_t value = 1; value < 100; ++value) {
        ASSERT_EQ(
            fi_write(pair.left.get(), &value, 8, nullptr, 0,
                     reinterpret_cast<std::uintptr_t>(&target), fi_mr_key(region.get()), nullptr),
            0);
        completion(pair.a, &pair.b);
        EXPECT_EQ(*static_cast<volatile std::uint64_t*>(&target), value);
    }
}

/// On a connection whose operations are done when they are out, those that ask for more.
struct Confirmed : Rma {
    void write(std::size_t length, std::uint64_t flags, std::uint64_t key, std::uintptr_t context) {
        const iovec piece{local.data(), length};
        const fi_rma_iov there{address(), length, key};
        fi_msg_rma message{};
        message.msg_iov = &piece;
        message.iov_count = 1;
        message.rma_iov = &there;
        message.rma_iov_count = 1;
        message.context = word(context);
        message.data = 5;
        ASSERT_EQ(fi_writemsg(pair.left.get(), &message, flags), 0);
    }
};

TEST_F(Confirmed, WritesAreThereWhenTheyAreTold) {
    const auto* const there = static_cast<volatile std::byte*>(target.data());
    for (const std::size_t length : {1UL, 1000UL, 65536UL, size})
        for (int round = 0; round < 20; ++round) {
            local[length - 1] = static_cast<std::byte>(round + 1);
            write(length, FI_DELIVERY_COMPLETE | FI_COMPLETION, fi_mr_key(region.get()), length);
            const fi_cq_data_entry told = completion(pair.a);
            EXPECT_EQ(told.op_context, word(length));
            EXPECT_EQ(told.flags, FI_RMA | FI_WRITE);
            const std::byte found = there[length - 1];
            EXPECT_EQ(found, local[length - 1]) << length;
        }
}

TEST_F(Confirmed, InjectedOnesAndThoseWithDataToo) {
    ASSERT_EQ(fi_recv(pair.right.get(), nullptr, 0, nullptr, 0, word(3)), 0);
    write(64, FI_DELIVERY_COMPLETE | FI_INJECT | FI_REMOTE_CQ_DATA, fi_mr_key(region.get()), 1);
    EXPECT_EQ(completion(pair.a).op_context, word(1));
    const fi_cq_data_entry got = completion(pair.b);
    EXPECT_EQ(got.op_context, word(3));
    EXPECT_EQ(got.data, 5U);
}

TEST_F(Confirmed, WhatIsRefusedFails) {
    const std::uint64_t key = fi_mr_key(region.get());
    region.reset();
    write(8, FI_DELIVERY_COMPLETE, key, 4);
    EXPECT_EQ(failure(pair.a).op_context, word(4));
    EXPECT_EQ(target[0], std::byte{0});
}

TEST_F(Confirmed, MessagesAreInTheirReceives) {
    for (const std::uint64_t flag : {FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE}) {
        std::uint64_t got = 0;
        std::uint64_t said = flag;
        const iovec piece{&said, sizeof said};
        fi_msg message{};
        message.msg_iov = &piece;
        message.iov_count = 1;
        message.context = word(2);
        ASSERT_EQ(fi_recv(pair.right.get(), &got, sizeof got, nullptr, 0, word(1)), 0);
        ASSERT_EQ(fi_sendmsg(pair.left.get(), &message, flag), 0);
        EXPECT_EQ(completion(pair.a).op_context, word(2));
        EXPECT_EQ(*static_cast<volatile std::uint64_t*>(&got), flag);
        EXPECT_EQ(completion(pair.b).op_context, word(1));
    }
}

TEST(ConfirmedOnes, FitIntoTheShortestQueue) {
    Options options;
    options.queue_size = 1;
    Pair pair(options);
    fi_msg message{};
    for (int round = 0; round < 10; ++round) {
        ASSERT_EQ(fi_recv(pair.right.get(), nullptr, 0, nullptr, 0, word(1)), 0);
        ASSERT_EQ(fi_sendmsg(pair.left.get(), &message, FI_DELIVERY_COMPLETE), 0);
        completion(pair.a);
        completion(pair.b);
    }
}

/// In the program of this test alone: the parameter is read at every endpoint.
TEST(Cut, RmaLongerThanTheNicsTransferGoesInPieces) {
    setenv("FI_VIA_MAX_TRANSFER_SIZE", "65536", 1);
    Pair pair;
    const std::size_t size = 1000003;
    const auto data = pattern(size, 8);
    std::vector<std::byte> target(size);
    const auto region = pair.b.memory(target.data(), size, FI_REMOTE_READ | FI_REMOTE_WRITE);
    const auto address = reinterpret_cast<std::uintptr_t>(target.data());
    const iovec pieces[] = {{const_cast<std::byte*>(data.data()), 100001},
                            {const_cast<std::byte*>(data.data()) + 100001, size - 100001}};
    ASSERT_EQ(fi_writev(pair.left.get(), pieces, nullptr, 2, 0, address, fi_mr_key(region.get()),
                        word(6)),
              0);
    const fi_cq_data_entry written = completion(pair.a, &pair.b);
    EXPECT_EQ(written.op_context, word(6));
    EXPECT_EQ(written.len, size);
    std::vector<std::byte> back(size);
    ASSERT_EQ(fi_read(pair.left.get(), back.data(), size, nullptr, 0, address,
                      fi_mr_key(region.get()), word(7)),
              0);
    EXPECT_EQ(completion(pair.a, &pair.b).op_context, word(7));
    EXPECT_EQ(target, data);
    EXPECT_EQ(back, data);
    EXPECT_EQ(fi_send(pair.left.get(), data.data(), 65537, nullptr, 0, nullptr), -FI_EMSGSIZE);
    fi_cq_data_entry none;
    EXPECT_EQ(fi_cq_read(pair.a.queue.get(), &none, 1), -FI_EAGAIN) << "one completion for all";
    unsetenv("FI_VIA_MAX_TRANSFER_SIZE");
}

/// The connection ends, so that nothing goes on with the memory, and the whole is told once.
TEST(Cut, WhenAPieceCannotBePostedTheWholeFails) {
    setenv("FI_VIA_MAX_TRANSFER_SIZE", "65536", 1);
    Pair pair;
    std::vector<std::byte> data(1 << 20);
    const auto region = pair.b.memory(data.data(), data.size(), FI_REMOTE_WRITE);
    const auto write = [&](std::uintptr_t context) {
        return fi_write(pair.left.get(), data.data(), data.size(), nullptr, 0,
                        reinterpret_cast<std::uintptr_t>(data.data()), fi_mr_key(region.get()),
                        word(context));
    };
    posts_left = 0;
    EXPECT_EQ(write(1), -FI_EAGAIN);
    posts_left = 3;
    EXPECT_EQ(write(2), 0);
    posts_left = posts_unlimited;
    const fi_cq_err_entry error = failure(pair.a);
    EXPECT_EQ(error.op_context, word(2));
    EXPECT_EQ(error.flags, FI_RMA | FI_WRITE);
    pair.a.expect(FI_SHUTDOWN, &pair.left->fid);
    pair.b.expect(FI_SHUTDOWN, &pair.right->fid);
    fi_cq_data_entry none;
    EXPECT_EQ(fi_cq_read(pair.a.queue.get(), &none, 1), -FI_EAGAIN);
    unsetenv("FI_VIA_MAX_TRANSFER_SIZE");
}

}  // namespace
}  // namespace transfer_test
