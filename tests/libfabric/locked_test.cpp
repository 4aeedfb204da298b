// SPDX-License-Identifier: Apache-2.0
// What of a short message over connected endpoints waits for all stores before it: nothing, where
// the program says that it has one thread, and one lock in each call where it has several.
#include "scene.hpp"
#include "step_alone.hpp"

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
            carry_out(
                Part::receive,
                [&] { return fi_recv(pair_.right.get(), &in_, sizeof in_, nullptr, 0, word(1)); }),
            0);
        if (stepped_ == Part::inject) {
            EXPECT_EQ(carry_out(Part::inject,
                                [&] { return fi_inject(pair_.left.get(), &out_, sizeof out_, 0); }),
                      0);
        } else {
            EXPECT_EQ(carry_out(Part::send,
                                [&] {
                                    return fi_send(pair_.left.get(), &out_, sizeof out_, nullptr, 0,
                                                   word(2));
                                }),
                      0);
            read(Part::read_sent, pair_.a);
        }
        read(Part::read_received, pair_.b);
        EXPECT_EQ(in_, out_);
        return found_;
    }

private:
    template <class Call>
    ssize_t carry_out(Part part, Call call) {
        if (part != stepped_) return call();
        ssize_t answer = -1;
        step_through([&] { answer = call(); });
        found_ = steps;
        return answer;
    }
    void read(Part part, Side& side) {
        fi_cq_data_entry entry{};
        if (carry_out(part, [&] { return fi_cq_read(side.queue.get(), &entry, 1); }) != 1)
            completion(side, &pair_.a);
    }

    Pair& pair_;
    Part stepped_;
    std::uint64_t out_ = 1;
    std::uint64_t in_ = 0;
    Steps found_;
};

void look_at_all(fi_threading threading, unsigned allowed) {
    if (!has_membarrier()) GTEST_SKIP() << "the kernel has no membarrier";
    Options options;
    options.threading = threading;
    Pair pair(options);
    for (int n = 0; n < 300; ++n) Message(pair, Part::none).pass();
    begin_to_step();
    const OthersHeldStill others;
    ASSERT_TRUE(others.all());
    for (const Part part :
         {Part::receive, Part::send, Part::inject, Part::read_sent, Part::read_received}) {
        const Fewest found = step_again_and_again(50, allowed, [&] {
            for (int n = 0; n < 40; ++n) Message(pair, Part::none).pass();
            return Message(pair, part).pass();
        });
        EXPECT_TRUE(found.is_at_most(allowed))
            << "part " << static_cast<int>(part) << ": " << found.best.waits << ", always "
            << found.always.size() << ", of " << found.best.instructions;
    }
}

TEST(MessagesLocked, NothingWhereTheProgramHasOneThread) { look_at_all(FI_THREAD_DOMAIN, 0); }

TEST(MessagesLocked, OneLockInACallWhereItHasSeveral) { look_at_all(FI_THREAD_SAFE, 1); }

}  // namespace
}  // namespace locked_test
