// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: the program reads and writes the memory of peers.
#include <rdma/fi_atomic.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "liar.hpp"
#include "rdm_rma_scene.hpp"

using namespace scene;

namespace rdm_rma_test {
namespace {

constexpr std::size_t size = 3 << 20;
constexpr std::uint64_t all_rights = FI_REMOTE_READ | FI_REMOTE_WRITE;

/// `a` reaches the memory of `b`.
class DatagramRma : public testing::Test {
protected:
    DatagramRma() : target(size), local(pattern(size, 5)) {
        region = couple.b.memory(target.data(), size, all_rights);
    }
    std::uint64_t address() const { return address_of(target.data()); }
    std::uint64_t key() const { return fi_mr_key(region.get()); }
    fid_ep* endpoint() const { return couple.a.endpoint.get(); }

    /// Of one piece each; both outlive it.
    fi_msg_rma message_of(const iovec& piece, const fi_rma_iov& there, std::uintptr_t context,
                          std::uint64_t data = 0) const {
        fi_msg_rma message{};
        message.msg_iov = &piece;
        message.iov_count = 1;
        message.addr = couple.to_b;
        message.rma_iov = &there;
        message.rma_iov_count = 1;
        message.context = word(context);
        message.data = data;
        return message;
    }
    void write(std::size_t length, std::uintptr_t context, std::uint64_t flags = 0,
               std::uint64_t data = 0) {
        const iovec piece{local.data(), length};
        const fi_rma_iov there{address(), length, key()};
        const fi_msg_rma message = message_of(piece, there, context, data);
        until_taken(couple.a, &couple.b,
                    [&] { return fi_writemsg(endpoint(), &message, flags | FI_COMPLETION); });
    }
    void read(void* to, std::size_t length, std::uintptr_t context, std::uint64_t from,
              std::uint64_t with_key) {
        until_taken(couple.a, &couple.b, [&] {
            return fi_read(endpoint(), to, length, nullptr, couple.to_b, from, with_key,
                           word(context));
        });
    }

    Couple couple{rma_hints().get()};
    std::vector<std::byte> target;
    std::vector<std::byte> local;
    Owned<fid_mr> region;
};

TEST_F(DatagramRma, IsOfferedToWhoAsks) {
    const Info info = find(rma_hints().get());
    constexpr std::uint64_t caps = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
    EXPECT_EQ(info->caps & caps, caps);
    EXPECT_EQ(info->domain_attr->mr_mode, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY);
    EXPECT_EQ(info->tx_attr->rma_iov_limit, 1U);
    EXPECT_EQ(info->tx_attr->msg_order & FI_ORDER_SAW, std::uint64_t{FI_ORDER_SAW});
    Info wanted = rma_hints();
    wanted->domain_attr->mr_mode = 0;
    int error = 0;
    find(wanted.get(), &error);
    EXPECT_EQ(error, -FI_ENODATA) << "a program that does not know where memory is";
    EXPECT_EQ(info->caps & FI_RMA_EVENT, 0U) << "it was not asked for";
}

TEST_F(DatagramRma, WritesAndReads) {
    for (const std::size_t length : {0UL, 1UL, 8UL, 41UL, 8192UL, 65536UL, size}) {
        std::ranges::fill(target, std::byte{0});
        write(length, length);
        const fi_cq_tagged_entry written = couple.a.completion(&couple.b);
        EXPECT_EQ(written.op_context, word(length));
        EXPECT_EQ(written.flags, FI_RMA | FI_WRITE);
        std::vector<std::byte> back(length);
        read(back.data(), length, length + 1, address(), key());
        const fi_cq_tagged_entry was_read = couple.a.completion(&couple.b);
        EXPECT_EQ(was_read.op_context, word(length + 1));
        EXPECT_EQ(was_read.flags, FI_RMA | FI_READ);
        EXPECT_TRUE(std::ranges::equal(back, std::span(local).first(length))) << length;
        EXPECT_TRUE(std::ranges::equal(back, std::span(target).first(length))) << length;
    }
}

/// The peer's program reads nothing meanwhile.
TEST_F(DatagramRma, DeliveredOnesAreThereWhenTheyAreTold) {
    write(1, 1);
    couple.a.completion(&couple.b);
    const auto* const there = static_cast<volatile std::byte*>(target.data());
    for (const std::size_t length : {1UL, 1000UL, 65536UL, size})
        for (int round = 0; round < 20; ++round) {
            local[length - 1] = static_cast<std::byte>(round + 1);
            write(length, length, FI_DELIVERY_COMPLETE);
            EXPECT_EQ(couple.a.completion().op_context, word(length));
            const std::byte found = there[length - 1];
            EXPECT_EQ(found, local[length - 1]) << length;
        }
}

TEST_F(DatagramRma, InjectedOnesNeedTheirMemoryNoMoreAndSayNothing) {
    for (std::uint64_t value = 1; value < 300; ++value) {
        until_taken(couple.a, &couple.b, [&] {
            const std::uint64_t gone = value;
            return fi_inject_write(endpoint(), &gone, sizeof gone, couple.to_b,
                                   address() + 8 * value, key());
        });
    }
    write(8, 2, FI_DELIVERY_COMPLETE);
    EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(2)) << "nothing of the others";
    for (std::uint64_t value = 1; value < 300; ++value) {
        std::uint64_t found = 0;
        std::memcpy(&found, target.data() + 8 * value, sizeof found);
        EXPECT_EQ(found, value);
    }
    EXPECT_EQ(fi_inject_write(endpoint(), local.data(), 1025, couple.to_b, address(), key()),
              -FI_EMSGSIZE);
}

TEST_F(DatagramRma, DataTellsThePeerWhenItIsThere) {
    for (const std::uint64_t flags : {0ULL, FI_DELIVERY_COMPLETE, FI_INJECT}) {
        write(1000, 3, flags | FI_REMOTE_CQ_DATA, 99);
        fi_addr_t from = FI_ADDR_UNSPEC;
        const fi_cq_tagged_entry got = couple.b.completion(&couple.a, &from);
        EXPECT_TRUE(std::equal(local.begin(), local.begin() + 1000, target.begin()));
        EXPECT_EQ(got.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
        EXPECT_EQ(got.data, 99U);
        EXPECT_EQ(got.len, 1000U);
        EXPECT_EQ(from, couple.to_a);
        EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(3));
        std::ranges::fill(target, std::byte{0});
    }
    until_taken(couple.a, &couple.b, [&] {
        return fi_inject_writedata(endpoint(), local.data(), 8, 7, couple.to_b, address(), key());
    });
    EXPECT_EQ(couple.b.completion(&couple.a).data, 7U);
}

/// Also where short messages go by stores.
TEST_F(DatagramRma, MessagesComeAfterTheWritesBeforeThem) {
    std::uint64_t got = 0;
    const auto* const there = reinterpret_cast<volatile std::uint64_t*>(target.data() + size - 8);
    for (std::uint64_t value = 1; value < 500; ++value) {
        couple.b.post(&got, sizeof got, value, 1);
        std::memcpy(local.data() + size - 8, &value, sizeof value);
        write(value % 10 == 0 ? size : 8, 2);
        if (value % 10 != 0)
            until_taken(couple.a, &couple.b, [&] {
                return fi_inject_write(endpoint(), &value, 8, couple.to_b, address() + size - 8,
                                       key());
            });
        couple.a.inject(couple.to_b, &value, sizeof value, value, 0, &couple.b);
        couple.b.completion(&couple.a);
        EXPECT_EQ(*there, value);
        couple.a.completion(&couple.b);
    }
}

TEST_F(DatagramRma, ManyAtOnceWaitForRoom) {
    int begun = 0;
    const auto begin = [&] {
        const ssize_t answer =
            fi_write(endpoint(), local.data(), 4096, nullptr, couple.to_b,
                     address() + 4096 * (static_cast<std::uint64_t>(begun) % 700), key(), word(1));
        if (answer == 0) ++begun;
        return answer;
    };
    fi_cq_tagged_entry entry{};
    int ended = 0;
    while (ended < 2000) {
        if (begun < 2000 && begin() != 0) couple.b.read();
        if (fi_cq_read(couple.a.queue.get(), &entry, 1) == 1) ++ended;
    }
    EXPECT_EQ(begun, 2000);
    couple.a.expect_nothing();
}

TEST_F(DatagramRma, OfOnesOwnMemory) {
    Party& own = couple.b;
    const fi_addr_t self = own.knows(own);
    std::vector<std::byte> back(size);
    ASSERT_EQ(fi_writedata(own.endpoint.get(), local.data(), size, nullptr, 5, self, address(),
                           key(), word(1)),
              0);
    EXPECT_EQ(own.completion().data, 5U);
    EXPECT_EQ(own.completion().op_context, word(1));
    ASSERT_EQ(
        fi_read(own.endpoint.get(), back.data(), size, nullptr, self, address(), key(), word(2)),
        0);
    EXPECT_EQ(own.completion().op_context, word(2));
    EXPECT_EQ(back, local);
    const auto shown = own.memory(target.data(), 64, FI_REMOTE_READ);
    const auto refused = [&](std::uint64_t at, std::uint64_t with_key, std::size_t length) {
        EXPECT_EQ(fi_write(own.endpoint.get(), local.data() + 1, length, nullptr, self, at,
                           with_key, word(3)),
                  0);
        const fi_cq_err_entry error = own.failure();
        EXPECT_EQ(error.err, FI_EACCES);
        EXPECT_EQ(error.op_context, word(3));
    };
    refused(address(), fi_mr_key(shown.get()), 1);
    refused(address() + size, key(), 1);
    refused(address() + size - 7, key(), 8);
    refused(address() - 1, key(), 1);
    refused(~0ULL, key(), 8);
    refused(address(), 12345, 8);
    EXPECT_EQ(target, local) << "nothing was written";
}

/// What VIA refuses ends the connection; others of that endpoint live.
class RefusedRma : public DatagramRma {
protected:
    RefusedRma() {
        write(1, 1, FI_DELIVERY_COMPLETE);
        couple.a.completion(&couple.b);
        std::ranges::fill(target, std::byte{0});
    }
    void expect_refusal(std::uintptr_t context) {
        const fi_cq_err_entry error = couple.a.failure(&couple.b);
        EXPECT_EQ(error.op_context, word(context));
        EXPECT_EQ(error.flags & (FI_RMA | FI_ATOMIC), std::uint64_t{FI_RMA});
        EXPECT_TRUE(std::ranges::all_of(target, [](std::byte byte) {
            return byte == std::byte{0};
        })) << "the peer's memory was written to";
        Party other(rma_hints().get());
        int got = 0;
        const int said = 6;
        couple.b.post(&got, sizeof got, 1, 8);
        other.inject(other.knows(couple.b), &said, sizeof said, 1, 0, &couple.b);
        EXPECT_EQ(couple.b.completion(&other).op_context, word(8));
    }
};

TEST_F(RefusedRma, RightsEndWithTheRegion) {
    const std::uint64_t old_key = key();
    region.reset();
    const fi_rma_iov there{address(), 8, old_key};
    const iovec piece{local.data(), 8};
    const fi_msg_rma message = message_of(piece, there, 4);
    ASSERT_EQ(fi_writemsg(endpoint(), &message, FI_DELIVERY_COMPLETE), 0);
    expect_refusal(4);
}

TEST_F(RefusedRma, WhatIsOnlyShownIsNotWritten) {
    region = couple.b.memory(target.data(), 4096, FI_REMOTE_READ);
    std::vector<std::byte> back(8);
    read(back.data(), 8, 2, address(), key());
    EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(2));
    write(8, 3, FI_DELIVERY_COMPLETE);
    expect_refusal(3);
}

TEST_F(RefusedRma, ReadsSayWhy) {
    std::vector<std::byte> back(8);
    read(back.data(), 8, 5, address() + size - 4, key());
    const fi_cq_err_entry error = couple.a.failure(&couple.b);
    EXPECT_EQ(error.op_context, word(5));
    EXPECT_EQ(error.err, FI_EACCES);
    EXPECT_EQ(error.flags, FI_RMA | FI_READ);
}

TEST_F(DatagramRma, CountersCountIt) {
    Party counting(rma_hints().get(), FI_SELECTIVE_COMPLETION, FI_WAIT_NONE, FI_WRITE);
    const fi_addr_t to = counting.knows(couple.b);
    for (int time = 0; time < 10; ++time)
        until_taken(counting, &couple.b, [&] {
            return fi_inject_write(counting.endpoint.get(), local.data(), 8, to, address(), key());
        });
    EXPECT_EQ(fi_cntr_wait(counting.counter.get(), 10, patience_ms), 0);
    counting.expect_nothing();
}

/// One whose program counts what peers do to its memory, and looks at its counter alone.
class CountedRma : public testing::Test {
protected:
    explicit CountedRma(std::uint64_t kind = FI_REMOTE_WRITE)
        : wanted(rma_hints(FI_RMA | FI_ATOMIC | FI_RMA_EVENT)),
          b(wanted.get(), 0, FI_WAIT_NONE, kind),
          a(wanted.get()),
          target(size),
          local(pattern(size, 5)),
          region(b.memory(target.data(), size, all_rights)),
          to(a.knows(b)) {}

    std::uint64_t address() const { return address_of(target.data()); }
    std::uint64_t key() const { return fi_mr_key(region.get()); }
    void write(std::size_t length) {
        until_taken(a, nullptr, [&] {
            fi_cntr_read(b.counter.get());
            return fi_write(a.endpoint.get(), local.data(), length, nullptr, to, address(), key(),
                            word(1));
        });
    }
    void read(void* into, std::size_t length) {
        until_taken(a, nullptr, [&] {
            fi_cntr_read(b.counter.get());
            return fi_read(a.endpoint.get(), into, length, nullptr, to, address(), key(), word(2));
        });
    }
    /// The counter becomes that, while both make progress.
    void expect_count(std::uint64_t count) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
        while (fi_cntr_read(b.counter.get()) < count && std::chrono::steady_clock::now() < end)
            a.read();
        EXPECT_EQ(fi_cntr_read(b.counter.get()), count);
        EXPECT_EQ(fi_cntr_readerr(b.counter.get()), 0U);
    }

    Info wanted;
    Party b;
    Party a;
    std::vector<std::byte> target;
    std::vector<std::byte> local;
    Owned<fid_mr> region;
    fi_addr_t to;
};

TEST_F(CountedRma, WritesAreThereWhenTheyAreCounted) {
    EXPECT_NE(b.info->caps & FI_RMA_EVENT, 0U);
    std::uint64_t count = 0;
    for (const std::size_t length : {8UL, 1000UL, 65536UL, size, 0UL}) {
        std::ranges::fill(target, std::byte{0});
        write(length);
        expect_count(++count);
        EXPECT_TRUE(
            std::ranges::equal(std::span(target).first(length), std::span(local).first(length)))
            << length;
        EXPECT_EQ(a.completion().op_context, word(1));
    }
    std::vector<std::byte> back(8);
    read(back.data(), back.size());
    EXPECT_EQ(a.completion(&b).op_context, word(2));
    write(8);
    expect_count(++count);
}

TEST_F(CountedRma, DataAndAtomicOperationsCountOnce) {
    until_taken(a, nullptr, [&] {
        fi_cntr_read(b.counter.get());
        return fi_inject_writedata(a.endpoint.get(), local.data(), 8, 7, to, address(), key());
    });
    expect_count(1);
    EXPECT_EQ(b.completion(&a).data, 7U);
    const std::uint64_t addend = 1;
    ASSERT_EQ(
        fi_inject_atomic(a.endpoint.get(), &addend, 1, to, address(), key(), FI_UINT64, FI_SUM), 0);
    expect_count(2);
    // Without the right: it is told, and not counted.
    const auto shown = b.memory(target.data(), 64, FI_REMOTE_READ);
    ASSERT_EQ(fi_atomic(a.endpoint.get(), &addend, 1, nullptr, to, address(),
                        fi_mr_key(shown.get()), FI_UINT64, FI_SUM, word(3)),
              0);
    EXPECT_EQ(a.failure(&b).err, FI_EACCES);
    expect_count(2);
}

TEST_F(CountedRma, WhoAskedForTheConnectionIsToldToo) {
    int got = 0;
    const int said = 3;
    a.post(&got, sizeof got, 1, 9);
    b.inject(b.knows(a), &said, sizeof said, 1, 0, &a);
    EXPECT_EQ(a.completion(&b).op_context, word(9));
    write(8);
    expect_count(1);
}

TEST_F(CountedRma, OnesOwnCountToo) {
    const fi_addr_t self = b.knows(b);
    ASSERT_EQ(fi_write(b.endpoint.get(), local.data(), 8, nullptr, self, address(), key(), word(4)),
              0);
    EXPECT_EQ(fi_cntr_read(b.counter.get()), 1U);
    ASSERT_EQ(fi_write(b.endpoint.get(), local.data(), 8, nullptr, self, address() + size, key(),
                       word(5)),
              0);
    EXPECT_EQ(fi_cntr_read(b.counter.get()), 1U) << "refused";
}

class CountedReads : public CountedRma {
protected:
    CountedReads() : CountedRma(FI_REMOTE_READ) {}
};

TEST_F(CountedReads, HaveComeWhenTheyAreCounted) {
    std::uint64_t count = 0;
    for (const std::size_t length : {8UL, 65536UL, size}) {
        std::ranges::copy(local, target.begin());
        std::vector<std::byte> back(length);
        read(back.data(), length);
        expect_count(++count);
        // What was counted does not need its memory any more.
        std::ranges::fill(target, std::byte{0});
        EXPECT_EQ(a.completion(&b).op_context, word(2));
        EXPECT_TRUE(std::ranges::equal(back, std::span(local).first(length))) << length;
    }
    write(8);
    EXPECT_EQ(a.completion(&b).op_context, word(1));
    std::uint64_t before = 0;
    const std::uint64_t addend = 1;
    until_taken(a, nullptr, [&] {
        return fi_fetch_atomic(a.endpoint.get(), &addend, 1, nullptr, &before, nullptr, to,
                               address(), key(), FI_UINT64, FI_SUM, word(3));
    });
    expect_count(++count);
}

TEST_F(DatagramRma, WakesWhoSleeps) {
    Party sleeper(rma_hints().get(), 0, FI_WAIT_UNSPEC);
    const fi_addr_t to = sleeper.knows(couple.b);
    fi_cq_tagged_entry entry{};
    for (std::uintptr_t time = 1; time < 20; ++time) {
        until_taken(sleeper, &couple.b, [&] {
            return fi_write(sleeper.endpoint.get(), local.data(), 100000, nullptr, to, address(),
                            key(), word(time));
        });
        ASSERT_EQ(fi_cq_sread(sleeper.queue.get(), &entry, 1, nullptr, patience_ms), 1);
        EXPECT_EQ(entry.op_context, word(time));
    }
}

/// In the program of this test alone: the parameter is read at every connection.
TEST(CutDatagramRma, GoesInPiecesAndIsToldOnce) {
    setenv("FI_VIA_MAX_TRANSFER_SIZE", "65552", 1);
    Couple couple(rma_hints().get());
    const auto data = pattern(1000003, 8);
    std::vector<std::byte> target(data.size());
    const auto region = couple.b.memory(target.data(), target.size(), all_rights);
    const auto move = [&](auto&& operation, std::vector<std::byte>& local, std::size_t length) {
        ssize_t answer = -FI_EAGAIN;
        while (answer == -FI_EAGAIN) {
            answer = operation(couple.a.endpoint.get(), local.data(), length, nullptr, couple.to_b,
                               address_of(target.data()), fi_mr_key(region.get()), word(6));
            couple.a.read();
            couple.b.read();
        }
        return answer;
    };
    auto copy = data;
    ASSERT_EQ(move(fi_write, copy, data.size()), 0);
    EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(6));
    std::vector<std::byte> back(data.size());
    ASSERT_EQ(move(fi_read, back, data.size()), 0);
    EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(6));
    EXPECT_EQ(target, data);
    EXPECT_EQ(back, data);
    couple.a.expect_nothing();
    EXPECT_EQ(move(fi_write, copy, 129 * 65552UL), -FI_EMSGSIZE)
        << "more pieces than there is room";
    unsetenv("FI_VIA_MAX_TRANSFER_SIZE");
}

TEST(LiarsOfRma, SayNothingOfMovesToWhoDoesNotCount) {
    Party b(rma_hints().get());
    Liar liar(b);
    ASSERT_EQ(liar.connect(Liar::hello(2)), VIP_SUCCESS);
    liar.say({0, kind(7, 0), 0}, 16);
    liar.expect_end();
    b.expect_nothing();
}

TEST(LiarsOfRma, SayWhetherAMoveWasAReadOrAWrite) {
    const Info wanted = rma_hints(FI_RMA | FI_RMA_EVENT);
    Party b(wanted.get(), 0, FI_WAIT_NONE, FI_REMOTE_WRITE);
    Liar liar(b);
    ASSERT_EQ(liar.connect(Liar::hello(2)), VIP_SUCCESS);
    liar.say({0, kind(7, 0) | 2, 0}, 16);
    liar.expect_end();
    EXPECT_EQ(fi_cntr_read(b.counter.get()), 0U);
}

TEST(LiarsOfRma, SayWhatWasWrittenInAHeaderAlone) {
    Party b(rma_hints().get());
    Liar liar(b);
    ASSERT_EQ(liar.connect(Liar::hello(2)), VIP_SUCCESS);
    liar.say({100, kind(4, 0), 0}, 24);
    liar.expect_end();
    b.expect_nothing();
}

}  // namespace
}  // namespace rdm_rma_test
