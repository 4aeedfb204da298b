// What a ledger finds out by itself, and that a digest tells messages apart.
#include "ledger.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace via::witness::ledger_test {
namespace {

struct Book : ::testing::Test {
    std::string path = ::testing::TempDir() + std::to_string(::getpid()) + ".ledger";
    Ledger ledger{path};
    int here = 0;  ///< stands for a handle
    VIP_VI_HANDLE handle = &here;
    alignas(64) VIP_DESCRIPTOR first{};
    alignas(64) VIP_DESCRIPTOR second{};
    char bytes[2][8] = {"one", "two"};

    Book() {
        ledger.made(handle, VIP_SERVICE_RELIABLE_DELIVERY);
        fill(first, bytes[0]);
        fill(second, bytes[1]);
    }
    ~Book() override { std::remove(path.c_str()); }
    static void fill(VIP_DESCRIPTOR& descriptor, char* at) {
        descriptor.CS.SegCount = 1;
        descriptor.CS.Length = 8;
        descriptor.DS[0].Local.Data.Address = at;
        descriptor.DS[0].Local.Length = 8;
    }
    Ledger::Vi& vi() { return *ledger.find(handle); }
    void post(bool receive, VIP_DESCRIPTOR& descriptor) {
        ledger.posted(vi(), receive, &descriptor, Ledger::intent(descriptor, receive));
    }
    void give_back(bool receive, VIP_DESCRIPTOR& descriptor) {
        descriptor.CS.Status =
            VIP_STATUS_DONE | (receive ? VIP_STATUS_OP_RECEIVE : VIP_STATUS_OP_SEND);
        ledger.given_back(vi(), receive, &descriptor);
    }
    std::string text() {
        ledger.write();
        std::ifstream file(path);
        std::stringstream all;
        all << file.rdbuf();
        return all.str();
    }
};

TEST_F(Book, what_is_sent_and_received_alike_has_one_digest) {
    post(false, first);
    post(false, second);
    EXPECT_EQ(vi().sent.count(), 2U);
    post(true, first);
    post(true, second);
    give_back(true, first);
    EXPECT_EQ(vi().received.digest(), vi().sent.digest(1));
    give_back(true, second);
    EXPECT_EQ(vi().received.digest(), vi().sent.digest());
    EXPECT_EQ(text().find("violation"), std::string::npos);
}

TEST_F(Book, another_byte_is_another_digest) {
    post(false, first);
    post(true, first);
    bytes[0][7] ^= 1;
    give_back(true, first);
    EXPECT_NE(vi().received.digest(), vi().sent.digest());
}

TEST_F(Book, another_order_is_another_digest) {
    post(false, first);
    post(false, second);
    post(true, second);
    post(true, first);
    give_back(true, second);
    give_back(true, first);
    EXPECT_NE(vi().received.digest(), vi().sent.digest());
}

TEST_F(Book, immediate_data_counts) {
    const std::uint64_t without = Ledger::intent(first, false).digest;
    first.CS.Control = VIP_CONTROL_IMMEDIATE;
    EXPECT_NE(Ledger::intent(first, false).digest, without);
}

TEST_F(Book, in_another_order_than_posted_is_a_violation) {
    post(false, first);
    post(false, second);
    give_back(false, second);
    EXPECT_NE(text().find("violation work 2 of VI 1 completed again, or before work 1"),
              std::string::npos);
}

TEST_F(Book, what_was_never_posted_is_a_violation) {
    post(false, first);
    give_back(false, first);
    give_back(false, first);
    EXPECT_NE(text().find("violation work 4294967295 completed, but was never posted"),
              std::string::npos);
}

TEST_F(Book, a_status_that_does_not_fit_is_a_violation) {
    post(false, first);
    first.CS.Status = VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE;
    ledger.given_back(vi(), false, &first);
    EXPECT_NE(text().find("another operation than posted"), std::string::npos);
}

TEST_F(Book, what_a_connection_carried_is_written_when_the_next_begins) {
    post(false, first);
    ledger.connecting(vi());
    post(false, first);
    const std::string all = text();
    EXPECT_NE(all.find("sent 1 "), all.rfind("sent 1 "));
    EXPECT_NE(all.find("given back 0 of 2"), std::string::npos);
}

}  // namespace
}  // namespace via::witness::ledger_test
