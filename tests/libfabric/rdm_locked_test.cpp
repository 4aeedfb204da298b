// SPDX-License-Identifier: Apache-2.0
// What of a short tagged message inside a host waits for all stores before it, where the program
// says that it needs no lock of the provider's: nothing.
#include "rdm_scene.hpp"
#include "step_alone.hpp"

namespace rdm_locked_test {
namespace {

using namespace scene;

/// What a message takes, one after the other. Of each message one part is stepped through.
enum class Part : std::uint8_t { receive, send, read, none };

class Message {
public:
    Message(Couple& couple, Part stepped) : couple_(couple), stepped_(stepped) {}

    /// Passes one, and looks at its part.
    Steps pass() {
        carry_out(Part::receive, [&] {
            return fi_trecv(couple_.b.endpoint.get(), &in_, sizeof in_, nullptr, FI_ADDR_UNSPEC, 1,
                            0, word(1));
        });
        const auto send = [&] {
            return fi_tinject(couple_.a.endpoint.get(), &out_, sizeof out_, couple_.to_b, 1);
        };
        if (carry_out(Part::send, send) != 0) until_taken(couple_.a, &couple_.b, send);
        fi_cq_tagged_entry entry;
        const auto read = [&] { return fi_cq_read(couple_.b.queue.get(), &entry, 1); };
        if (carry_out(Part::read, read) != 1) couple_.b.completion(&couple_.a);
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

    Couple& couple_;
    Part stepped_;
    std::uint64_t out_ = 1;
    std::uint64_t in_ = 0;
    Steps found_;
};

TEST(Locked, NothingOfAMessageByStoresWhereTheProgramHasOneThread) {
    if (!has_membarrier()) GTEST_SKIP() << "the kernel has no membarrier";
    const Info wanted = datagram_hints();
    wanted->domain_attr->threading = FI_THREAD_DOMAIN;
    Couple couple(wanted.get());
    for (int n = 0; n < 300; ++n) Message(couple, Part::none).pass();
    begin_to_step();
    const OthersHeldStill others;
    ASSERT_TRUE(others.all());
    for (const Part part : {Part::receive, Part::send, Part::read}) {
        const Fewest found = step_again_and_again(50, 0, [&] {
            for (int n = 0; n < 40; ++n) Message(couple, Part::none).pass();
            return Message(couple, part).pass();
        });
        EXPECT_TRUE(found.is_at_most(0))
            << "part " << static_cast<int>(part) << ": " << found.best.waits << ", always "
            << found.always.size() << ", of " << found.best.instructions;
    }
}

}  // namespace
}  // namespace rdm_locked_test
