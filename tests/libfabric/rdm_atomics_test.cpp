// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: atomic operations on the memory of peers.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <complex>
#include <map>
#include <set>
#include <thread>

#include <rdma/fi_atomic.h>

#include "liar.hpp"
#include "rdm_rma_scene.hpp"

using namespace scene;

namespace rdm_atomics_test {
namespace {

constexpr std::uint64_t all_rights = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::size_t bytes_max = 480;

/// What is left of 6 after the operation with 3, which is compared to 6.
const std::map<fi_op, std::int8_t> results{
    {FI_MIN, 3},         {FI_MAX, 6},          {FI_SUM, 9},      {FI_PROD, 18},    {FI_LOR, 1},
    {FI_LAND, 1},        {FI_LXOR, 0},         {FI_BOR, 7},      {FI_BAND, 2},     {FI_BXOR, 5},
    {FI_ATOMIC_READ, 6}, {FI_ATOMIC_WRITE, 3}, {FI_CSWAP, 3},    {FI_CSWAP_NE, 6}, {FI_CSWAP_LE, 3},
    {FI_CSWAP_LT, 6},    {FI_CSWAP_GE, 3},     {FI_CSWAP_GT, 6}, {FI_MSWAP, 2}};

bool compares(fi_op operation) { return operation >= FI_CSWAP; }
bool is_for_integers(fi_op operation) {
    return operation == FI_BOR || operation == FI_BAND || operation == FI_BXOR ||
           operation == FI_MSWAP;
}
bool needs_order(fi_op operation) {
    return operation == FI_MIN || operation == FI_MAX ||
           (operation >= FI_CSWAP_LE && operation <= FI_CSWAP_GT);
}

class Atomics : public testing::Test {
protected:
    Atomics() { region = couple.b.memory(target, sizeof target, all_rights); }
    fid_ep* endpoint() const { return couple.a.endpoint.get(); }
    std::uint64_t key() const { return fi_mr_key(region.get()); }
    std::uint64_t address() const { return address_of(target); }
    template <class Call>
    void begin(Call&& call) {
        until_taken(couple.a, &couple.b, call);
    }
    void add(std::uint64_t value, std::uint64_t at, std::uint64_t with_key,
             std::uintptr_t context) {
        begin([&] {
            return fi_atomic(endpoint(), &value, 1, nullptr, couple.to_b, at, with_key, FI_UINT64,
                             FI_SUM, word(context));
        });
    }
    void expect_done(std::uintptr_t context, std::uint64_t kind) {
        const fi_cq_tagged_entry entry = couple.a.completion(&couple.b);
        EXPECT_EQ(entry.op_context, word(context));
        EXPECT_EQ(entry.flags, FI_ATOMIC | kind);
    }
    void expect_error(int error, std::uintptr_t context) {
        const fi_cq_err_entry entry = couple.a.failure(&couple.b);
        EXPECT_EQ(entry.err, error);
        EXPECT_EQ(entry.op_context, word(context));
    }

    alignas(64) std::byte target[1024] = {};
    Couple couple{rma_hints(FI_RMA | FI_ATOMIC).get()};
    Owned<fid_mr> region;
};

/// One type, to another endpoint and to oneself.
template <class Value>
class AtomicValues : public Atomics {
protected:
    template <class Call>
    void check(fi_datatype type, Party& by, fi_addr_t with, bool has_bits, bool has_order,
               Call&& also) {
        for (const auto& [operation, left] : results) {
            const bool there =
                (has_bits || !is_for_integers(operation)) && (has_order || !needs_order(operation));
            std::size_t count = 0;
            const auto valid = compares(operation) ? fi_compare_atomicvalid : fi_fetch_atomicvalid;
            EXPECT_EQ(valid(by.endpoint.get(), type, operation, &count),
                      there ? 0 : -FI_EOPNOTSUPP);
            const Value operand(3), compare(6);
            Value found{};
            new (target) Value(6);
            const auto call = [&] {
                return compares(operation)
                           ? fi_compare_atomic(by.endpoint.get(), &operand, 1, nullptr, &compare,
                                               nullptr, &found, nullptr, with, address(), key(),
                                               type, operation, word(1))
                           : fi_fetch_atomic(by.endpoint.get(), &operand, 1, nullptr, &found,
                                             nullptr, with, address(), key(), type, operation,
                                             word(1));
            };
            if (!there) {
                EXPECT_EQ(call(), -FI_EOPNOTSUPP) << type << " " << operation;
                continue;
            }
            EXPECT_EQ(count, bytes_max / sizeof(Value));
            until_taken(by, &couple.b, call);
            EXPECT_EQ(by.completion(&couple.b).flags, FI_ATOMIC | FI_READ);
            EXPECT_EQ(found, Value(6)) << type << " " << operation;
            EXPECT_EQ(*reinterpret_cast<Value*>(target), Value(left)) << type << " " << operation;
            also(operation);
        }
    }
};

template <class Value>
class AtomicsOf : public AtomicValues<typename Value::type> {};

template <class Value, fi_datatype datatype, bool integer, bool ordered>
struct Of {
    using type = Value;
    static constexpr fi_datatype number = datatype;
    static constexpr bool is_integer = integer;
    static constexpr bool has_order = ordered;
};
using AllTypes =
    testing::Types<Of<std::int8_t, FI_INT8, true, true>, Of<std::uint8_t, FI_UINT8, true, true>,
                   Of<std::int16_t, FI_INT16, true, true>, Of<std::uint16_t, FI_UINT16, true, true>,
                   Of<std::int32_t, FI_INT32, true, true>, Of<std::uint32_t, FI_UINT32, true, true>,
                   Of<std::int64_t, FI_INT64, true, true>, Of<std::uint64_t, FI_UINT64, true, true>,
                   Of<float, FI_FLOAT, false, true>, Of<double, FI_DOUBLE, false, true>,
                   Of<std::complex<float>, FI_FLOAT_COMPLEX, false, false>,
                   Of<std::complex<double>, FI_DOUBLE_COMPLEX, false, false>,
                   Of<long double, FI_LONG_DOUBLE, false, true>,
                   Of<std::complex<long double>, FI_LONG_DOUBLE_COMPLEX, false, false>>;
TYPED_TEST_SUITE(AtomicsOf, AllTypes);

TYPED_TEST(AtomicsOf, DoWhatTheySay) {
    using Value = typename TypeParam::type;
    const auto plain = [&](fi_op operation) {  // the same without the value before
        std::size_t count = 0;
        const bool there =
            fi_atomicvalid(this->endpoint(), TypeParam::number, operation, &count) == 0;
        EXPECT_EQ(there, !compares(operation) && operation != FI_ATOMIC_READ);
        if (!there) return;
        const Value operand(3);
        new (this->target) Value(6);
        this->begin([&] {
            return fi_atomic(this->endpoint(), &operand, 1, nullptr, this->couple.to_b,
                             this->address(), this->key(), TypeParam::number, operation, word(2));
        });
        this->expect_done(2, FI_WRITE);
        EXPECT_EQ(*reinterpret_cast<Value*>(this->target), Value(results.at(operation)));
    };
    this->check(TypeParam::number, this->couple.a, this->couple.to_b, TypeParam::is_integer,
                TypeParam::has_order, plain);
    Party& own = this->couple.b;
    this->check(TypeParam::number, own, own.knows(own), TypeParam::is_integer, TypeParam::has_order,
                [](fi_op) {});
}

TEST_F(Atomics, AreOfferedToWhoAsks) {
    EXPECT_NE(couple.a.info->caps & FI_ATOMIC, 0U);
    EXPECT_NE(couple.a.info->caps & FI_REMOTE_WRITE, 0U);
    EXPECT_NE(couple.a.info->domain_attr->mr_mode & FI_MR_PROV_KEY, 0);
    Info connected = hints(FI_MSG | FI_ATOMIC);
    int error = 0;
    find(connected.get(), &error);
    EXPECT_EQ(error, -FI_ENODATA) << "connected endpoints have none";
    EXPECT_EQ(fi_atomicvalid(endpoint(), FI_INT128, FI_SUM, nullptr), -FI_EOPNOTSUPP);
    EXPECT_EQ(fi_atomicvalid(endpoint(), FI_UINT64, FI_ATOMIC_OP_LAST, nullptr), -FI_EOPNOTSUPP);
    fi_atomic_attr attributes{};
    fid_domain* const domain = couple.a.domain.get();
    EXPECT_EQ(fi_query_atomic(domain, FI_LONG_DOUBLE, FI_SUM, &attributes, FI_FETCH_ATOMIC), 0);
    EXPECT_EQ(attributes.size, sizeof(long double));
    EXPECT_EQ(attributes.count, bytes_max / sizeof(long double));
    EXPECT_EQ(fi_query_atomic(domain, FI_UINT32, FI_CSWAP, &attributes, FI_COMPARE_ATOMIC), 0);
    EXPECT_EQ(fi_query_atomic(domain, FI_UINT32, FI_CSWAP, &attributes, 0), -FI_EOPNOTSUPP);
}

TEST_F(Atomics, IntegersWrap) {
    const std::int8_t one = 1;
    *reinterpret_cast<std::int8_t*>(target) = 127;
    begin([&] {
        return fi_atomic(endpoint(), &one, 1, nullptr, couple.to_b, address(), key(), FI_INT8,
                         FI_SUM, word(1));
    });
    expect_done(1, FI_WRITE);
    EXPECT_EQ(*reinterpret_cast<std::int8_t*>(target), -128);
}

TEST_F(Atomics, OfAsManyValuesAsOneCallTakes) {
    constexpr std::size_t count = bytes_max / 8;
    std::array<std::uint64_t, count + 1> operands, found{}, compared{};
    for (std::size_t at = 0; at <= count; ++at) operands[at] = at + 1;
    const auto swap = [&](std::size_t all) {
        return fi_compare_atomic(endpoint(), operands.data(), all, nullptr, compared.data(),
                                 nullptr, found.data(), nullptr, couple.to_b, address(), key(),
                                 FI_UINT64, FI_CSWAP, word(1));
    };
    EXPECT_EQ(swap(count + 1), -FI_EMSGSIZE);
    EXPECT_EQ(swap(0), -FI_EINVAL);
    begin([&] { return swap(count); });
    expect_done(1, FI_READ);
    begin([&] { return swap(count); });  // nothing compares any more
    expect_done(1, FI_READ);
    EXPECT_TRUE(std::equal(found.begin(), found.end() - 1, operands.begin()));
    EXPECT_EQ(found[count], 0U);
    EXPECT_EQ(std::memcmp(target, operands.data(), bytes_max), 0);
}

TEST_F(Atomics, ByMessagesAndVectors) {
    std::uint64_t operand = 5, compare = 5, found = 0;
    const fi_ioc one{&operand, 1};
    fi_ioc result{&found, 1};
    const fi_ioc compared{&compare, 1};
    fi_rma_ioc there{address(), 1, key()};
    fi_msg_atomic message{};
    message.msg_iov = &one;
    message.iov_count = 1;
    message.addr = couple.to_b;
    message.rma_iov = &there;
    message.rma_iov_count = 1;
    message.datatype = FI_UINT64;
    message.op = FI_SUM;
    message.context = word(7);
    begin([&] { return fi_atomicmsg(endpoint(), &message, FI_COMPLETION | FI_INJECT); });
    expect_done(7, FI_WRITE);
    begin([&] { return fi_fetch_atomicmsg(endpoint(), &message, &result, nullptr, 1, 0); });
    expect_done(7, FI_READ);
    EXPECT_EQ(found, 5U);
    compare = 10;
    message.op = FI_CSWAP;
    begin([&] {
        return fi_compare_atomicmsg(endpoint(), &message, &compared, nullptr, 1, &result, nullptr,
                                    1, FI_DELIVERY_COMPLETE);
    });
    expect_done(7, FI_READ);
    EXPECT_EQ(found, 10U);
    message.op = FI_ATOMIC_READ;
    message.iov_count = 0;
    begin([&] { return fi_fetch_atomicmsg(endpoint(), &message, &result, nullptr, 1, 0); });
    expect_done(7, FI_READ);
    EXPECT_EQ(found, 5U);
    begin([&] {
        return fi_atomicv(endpoint(), &one, nullptr, 1, couple.to_b, address(), key(), FI_UINT64,
                          FI_SUM, word(8));
    });
    expect_done(8, FI_WRITE);
    begin([&] {
        return fi_inject_atomic(endpoint(), &operand, 1, couple.to_b, address(), key(), FI_UINT64,
                                FI_SUM);
    });
    begin([&] {
        return fi_fetch_atomicv(endpoint(), nullptr, nullptr, 0, &result, nullptr, 1, couple.to_b,
                                address(), key(), FI_UINT64, FI_ATOMIC_READ, word(9));
    });
    expect_done(9, FI_READ);
    EXPECT_EQ(found, 15U);
    message.op = FI_SUM;
    there.count = 2;
    message.iov_count = 1;
    EXPECT_EQ(fi_atomicmsg(endpoint(), &message, 0), -FI_EINVAL);
    there.count = 1;
    EXPECT_EQ(fi_atomicmsg(endpoint(), &message, FI_TAGGED), -FI_EOPNOTSUPP);
}

/// Several endpoints, and the one itself, add to one number: none is lost, and each sees another.
TEST_F(Atomics, NoneIsLost) {
    constexpr int each = 500;
    constexpr std::size_t many = 3;
    std::vector<std::unique_ptr<Party>> parties;
    for (std::size_t at = 0; at < many; ++at)
        parties.push_back(std::make_unique<Party>(rma_hints(FI_RMA | FI_ATOMIC).get()));
    std::array<std::vector<std::uint64_t>, many> seen;
    std::atomic<int> running{many};
    std::vector<std::thread> threads;
    for (std::size_t at = 0; at < many; ++at) {
        const fi_addr_t to = parties[at]->knows(couple.b);
        threads.emplace_back([&, at, to] {
            Party& party = *parties[at];
            seen[at].resize(each);
            const std::uint64_t one = 1;
            int ended = 0;
            for (int begun = 0; ended < each;) {
                fi_cq_tagged_entry entry{};
                if (begun < each &&
                    fi_fetch_atomic(party.endpoint.get(), &one, 1, nullptr,
                                    &seen[at][static_cast<std::size_t>(begun)], nullptr, to,
                                    address(), key(), FI_UINT64, FI_SUM, word(1)) == 0)
                    ++begun;
                if (fi_cq_read(party.queue.get(), &entry, 1) == 1) ++ended;
            }
            --running;
        });
    }
    const fi_addr_t self = couple.b.knows(couple.b);
    std::uint64_t of_its_own = 0;
    while (running != 0) {
        const std::uint64_t one = 1;
        fi_cq_tagged_entry entry{};
        if (fi_inject_atomic(couple.b.endpoint.get(), &one, 1, self, address(), key(), FI_UINT64,
                             FI_SUM) == 0)
            ++of_its_own;
        fi_cq_read(couple.b.queue.get(), &entry, 1);
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(target), many * each + of_its_own);
    std::set<std::uint64_t> all;
    for (const auto& of_one : seen) {
        all.insert(of_one.begin(), of_one.end());
        EXPECT_TRUE(std::ranges::is_sorted(of_one)) << "one endpoint's were out of order";
    }
    EXPECT_EQ(all.size(), many * each);
}

/// Both flood each other, with messages between that nobody receives yet.
TEST_F(Atomics, AnswersFindTheirWayThroughAnything) {
    constexpr int each = 3000;
    std::uint64_t other_target = 0;
    const auto other = couple.a.memory(&other_target, sizeof other_target, all_rights);
    struct Flood {
        Party& by;
        fi_addr_t to;
        std::uint64_t at;
        std::uint64_t key;
        int begun = 0;
        int ended = 0;
        int messages = 0;
    };
    Flood floods[] = {{couple.a, couple.to_b, address(), key()},
                      {couple.b, couple.to_a, address_of(&other_target), fi_mr_key(other.get())}};
    const std::vector<std::byte> bytes(900);
    const std::uint64_t one = 1;
    while (floods[0].ended + floods[1].ended < 2 * each)
        for (Flood& flood : floods) {
            for (int time = 0; time < 40 && flood.begun < each; ++time) {
                flood.begun += fi_atomic(flood.by.endpoint.get(), &one, 1, nullptr, flood.to,
                                         flood.at, flood.key, FI_UINT64, FI_SUM, word(1)) == 0;
                if (flood.messages < 400)
                    flood.messages += fi_tinject(flood.by.endpoint.get(), bytes.data(),
                                                 bytes.size(), flood.to, 5) == 0;
            }
            fi_cq_tagged_entry entries[64];
            const ssize_t got = fi_cq_read(flood.by.queue.get(), entries, std::size(entries));
            if (got > 0) flood.ended += static_cast<int>(got);
        }
    EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(target), static_cast<std::uint64_t>(each));
    EXPECT_EQ(other_target, static_cast<std::uint64_t>(each));
}

/// As who waits for a lock that lies in its own memory, and finds a completion at every read.
TEST_F(Atomics, OnesOwnDoNotKeepThoseOfOthersAway) {
    const std::uint64_t one = 1;
    std::uint64_t found = 0;
    add(0, address(), key(), 1);
    expect_done(1, FI_WRITE);
    ASSERT_EQ(fi_inject_atomic(endpoint(), &one, 1, couple.to_b, address(), key(), FI_UINT64,
                               FI_ATOMIC_WRITE),
              0);
    const fi_addr_t self = couple.b.knows(couple.b);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    while (found == 0 && std::chrono::steady_clock::now() < end) {
        ASSERT_EQ(fi_fetch_atomic(couple.b.endpoint.get(), nullptr, 1, nullptr, &found, nullptr,
                                  self, address(), key(), FI_UINT64, FI_ATOMIC_READ, word(2)),
                  0);
        fi_cq_tagged_entry entries[64];
        ASSERT_EQ(fi_cq_read(couple.b.queue.get(), entries, std::size(entries)), 1);
    }
    EXPECT_EQ(found, 1U);
}

TEST_F(Atomics, WhatIsNotAllowedIsSaidAndTheConnectionLives) {
    const auto shown = couple.b.memory(target, 64, FI_REMOTE_READ);
    const auto taken = couple.b.memory(target + 64, 64, FI_REMOTE_WRITE);
    std::uint64_t found = 9;
    const std::uint64_t one = 1;
    add(1, address(), fi_mr_key(shown.get()), 1);
    expect_error(FI_EACCES, 1);
    add(1, address() + 1020, key(), 2);  // no number may begin there
    expect_error(FI_EINVAL, 2);
    add(1, address() + 1024, key(), 3);
    expect_error(FI_EACCES, 3);
    add(1, ~std::uint64_t{7}, key(), 4);
    expect_error(FI_EACCES, 4);
    add(1, address(), 77777, 5);
    expect_error(FI_EACCES, 5);
    const auto fetch = [&](fi_op operation, std::uint64_t with_key, std::uint64_t at) {
        begin([&] {
            return fi_fetch_atomic(endpoint(), &one, 1, nullptr, &found, nullptr, couple.to_b, at,
                                   with_key, FI_UINT64, operation, word(6));
        });
    };
    fetch(FI_SUM, fi_mr_key(taken.get()), address() + 64);
    expect_error(FI_EACCES, 6);
    fetch(FI_SUM, fi_mr_key(shown.get()), address());
    expect_error(FI_EACCES, 6);
    EXPECT_EQ(found, 9U);
    fetch(FI_ATOMIC_READ, fi_mr_key(shown.get()), address());
    expect_done(6, FI_READ);
    EXPECT_EQ(found, 0U);
    add(1, address() + 64, fi_mr_key(taken.get()), 7);
    expect_done(7, FI_WRITE);
    const std::uint64_t old_key = key();
    region.reset();
    add(1, address(), old_key, 8);
    expect_error(FI_EACCES, 8);
    // What is injected is not told of, and does no harm.
    begin([&] {
        return fi_inject_atomic(endpoint(), &one, 1, couple.to_b, address(), old_key, FI_UINT64,
                                FI_SUM);
    });
    add(1, address() + 64, fi_mr_key(taken.get()), 9);
    expect_done(9, FI_WRITE);
    EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(target), 0U);
    EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(target + 64), 2U);
}

TEST_F(Atomics, MemoryThatNobodyCanWriteToIsRead) {
    const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const page = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    {
        const auto shown = couple.b.memory(page, size, FI_REMOTE_READ);
        for (const fi_datatype type : {FI_UINT8, FI_UINT64, FI_DOUBLE_COMPLEX}) {
            std::complex<double> found(1, 1);
            begin([&] {
                return fi_fetch_atomic(endpoint(), nullptr, 1, nullptr, &found, nullptr,
                                       couple.to_b, address_of(page), fi_mr_key(shown.get()), type,
                                       FI_ATOMIC_READ, word(1));
            });
            expect_done(1, FI_READ);
        }
    }
    munmap(page, size);
}

TEST_F(Atomics, CountersCountThem) {
    const Info silent = rma_hints(FI_RMA | FI_ATOMIC);
    silent->tx_attr->op_flags = 0;
    Party counting(silent.get(), FI_SELECTIVE_COMPLETION, FI_WAIT_NONE, FI_READ);
    const fi_addr_t to = counting.knows(couple.b);
    std::uint64_t one = 1, found = 0;
    for (int time = 0; time < 10; ++time)
        until_taken(counting, &couple.b, [&] {
            return fi_fetch_atomic(counting.endpoint.get(), &one, 1, nullptr, &found, nullptr, to,
                                   address(), key(), FI_UINT64, FI_SUM, nullptr);
        });
    while (fi_cntr_read(counting.counter.get()) < 10) couple.b.read();
    counting.expect_nothing();
}

TEST_F(Atomics, FailWhenThePeerEnds) {
    add(1, address(), key(), 1);
    expect_done(1, FI_WRITE);
    // The peer does not look any more.
    const std::uint64_t one = 1;
    ASSERT_EQ(fi_atomic(endpoint(), &one, 1, nullptr, couple.to_b, address(), key(), FI_UINT64,
                        FI_SUM, word(2)),
              0);
    couple.b.endpoint.reset();
    const fi_cq_err_entry error = couple.a.failure();
    EXPECT_EQ(error.err, FI_ECONNRESET);
    EXPECT_EQ(error.op_context, word(2));
    EXPECT_EQ(error.flags, FI_ATOMIC | FI_WRITE);
}

// Peers that lie --------------------------------------------------------------------------------

/// The words of a call to add 1.
std::vector<std::uint64_t> call(std::uint64_t address, std::uint64_t key, std::uint64_t count,
                                std::uint64_t type, std::uint64_t operation, std::uint64_t form) {
    return {5, kind(5, 0), address, key | count << 32, type | operation << 8 | form << 16, 1};
}

TEST(LiarsOfAtomics, EndTheirOwnConnectionAlone) {
    Couple couple(rma_hints(FI_RMA | FI_ATOMIC).get());
    std::uint64_t target = 0;
    const auto region = couple.b.memory(&target, sizeof target, all_rights);
    const std::uint64_t key = fi_mr_key(region.get());
    const std::uint64_t address = address_of(&target);
    const Lie lies[] = {
        {"half a call", call(address, key, 1, FI_UINT64, FI_SUM, 0), 32},
        {"a call without its values", call(address, key, 1, FI_UINT64, FI_SUM, 0), 40},
        {"more values than it counts", call(address, key, 1, FI_UINT32, FI_SUM, 0), 48},
        {"no value", call(address, key, 0, FI_UINT64, FI_SUM, 0), 40},
        {"values without end", call(address, key, 0xFFFFFFFF, FI_UINT64, FI_SUM, 0), 48},
        {"a type that there is not", call(address, key, 1, 14, FI_SUM, 0), 48},
        {"an operation that there is not", call(address, key, 1, FI_UINT64, 19, 0), 48},
        {"one that does not compare", call(address, key, 1, FI_UINT64, FI_SUM, 2), 48},
        {"a form that there is not", call(address, key, 1, FI_UINT64, FI_SUM, 3), 48},
        {"an answer to nothing", {0, kind(6, 0)}, 16},
        {"an answer to nothing, with values", {0, kind(6, 0), 1}, 24},
    };
    ASSERT_NO_FATAL_FAILURE(expect_each_ends(couple.b, lies));
    EXPECT_EQ(target, 0U);
    Party messages_only;
    Liar liar(messages_only);
    ASSERT_EQ(liar.connect(Liar::hello(std::size(lies) + 1)), VIP_SUCCESS);
    liar.say(call(address, key, 1, FI_UINT64, FI_SUM, 0), 48);
    liar.expect_end();
    EXPECT_EQ(target, 0U);
}

TEST(LiarsOfAtomics, AnswerWhatTheyWereNotAskedOrTooMuch) {
    for (const auto& [data, length] : {std::pair{0ULL, 24UL}, {0ULL, 40UL}, {99ULL, 16UL}}) {
        Party a(rma_hints(FI_RMA | FI_ATOMIC).get());
        Liar liar(a);
        ASSERT_EQ(liar.connect(Liar::hello(2)), VIP_SUCCESS);
        std::vector<std::uint64_t> asked(16);
        liar.listen(asked);
        const fi_addr_t to = a.knows(2);
        const std::uint32_t one = 1;
        std::uint32_t found[4] = {};
        until_taken(a, nullptr, [&] {
            return fi_fetch_atomic(a.endpoint.get(), &one, 1, nullptr, found, nullptr, to, 64, 1,
                                   FI_UINT32, FI_SUM, word(1));
        });
        liar.hear();
        liar.say({asked[0], data | kind(6, 0), ~0ULL, ~0ULL, ~0ULL}, length);
        const fi_cq_err_entry error = a.failure();
        EXPECT_EQ(error.err, FI_ECONNRESET);
        EXPECT_EQ(error.op_context, word(1));
        for (const std::uint32_t word : found) EXPECT_EQ(word, 0U);
        liar.expect_end();
    }
}

}  // namespace
}  // namespace rdm_atomics_test
