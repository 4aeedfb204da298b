// SPDX-License-Identifier: Apache-2.0
// What of a short message over connected endpoints waits for all stores before it: nothing, where
// the program says that it has one thread, and one lock in each call where it has several.
#include "scene.hpp"
#include "stepped_parts.hpp"

namespace locked_test {
namespace {

using namespace scene;

enum class Part : std::uint8_t { receive, send, inject, read_sent, read_received, none };

class Message {
public:
    Message(Pair& pair, Part stepped) : pair_(pair), stepped_(stepped) {}

    /// Passes one, and looks at its part.
    Steps pass() {
        EXPECT_EQ(
            stepped_.carry_out(
                Part::receive,
                [&] { return fi_recv(pair_.right.get(), &in_, sizeof in_, nullptr, 0, word(1)); }),
            0);
        if (stepped_.is(Part::inject)) {
            EXPECT_EQ(stepped_.carry_out(
                          Part::inject,
                          [&] { return fi_inject(pair_.left.get(), &out_, sizeof out_, 0); }),
                      0);
        } else {
            EXPECT_EQ(stepped_.carry_out(Part::send,
                                         [&] {
                                             return fi_send(pair_.left.get(), &out_, sizeof out_,
                                                            nullptr, 0, word(2));
                                         }),
                      0);
            read(Part::read_sent, pair_.a);
        }
        read(Part::read_received, pair_.b);
        EXPECT_EQ(in_, out_);
        return stepped_.found();
    }

private:
    void read(Part part, Side& side) {
        fi_cq_data_entry entry{};
        if (stepped_.carry_out(part, [&] { return fi_cq_read(side.queue.get(), &entry, 1); }) != 1)
            completion(side, &pair_.a);
    }

    Pair& pair_;
    SteppedPart<Part> stepped_;
    std::uint64_t out_ = 1;
    std::uint64_t in_ = 0;
};

void look_at_all(fi_threading threading, unsigned allowed) {
    if (!has_membarrier()) GTEST_SKIP() << "the kernel has no membarrier";
    Options options;
    options.threading = threading;
    Pair pair(options);
    expect_waits_at_most(
        allowed, {Part::receive, Part::send, Part::inject, Part::read_sent, Part::read_received},
        [&](Part part) { return Message(pair, part).pass(); });
}

TEST(MessagesLocked, NothingWhereTheProgramHasOneThread) { look_at_all(FI_THREAD_DOMAIN, 0); }

TEST(MessagesLocked, OneLockInACallWhereItHasSeveral) { look_at_all(FI_THREAD_SAFE, 1); }

}  // namespace
}  // namespace locked_test
