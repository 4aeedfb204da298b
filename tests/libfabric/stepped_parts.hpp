// SPDX-License-Identifier: Apache-2.0
// A message's calls one after the other, of which one is stepped through.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>

#include "step_alone.hpp"

/// `Part` names the calls of a message, and `none`.
template <class Part>
class SteppedPart {
public:
    explicit SteppedPart(Part part) : part_(part) {}

    bool is(Part part) const { return part_ == part; }
    /// What the call answers.
    template <class Call>
    auto carry_out(Part part, Call call) {
        if (part != part_) return call();
        decltype(call()) answer = -1;
        step_through([&] { answer = call(); });
        found_ = steps;
        return answer;
    }
    const Steps& found() const { return found_; }

private:
    Part part_;
    Steps found_;
};

/// pass() passes a message and steps through that part of it.
template <class Part, class Pass>
void expect_waits_at_most(unsigned allowed, std::initializer_list<Part> parts, Pass pass) {
    for (int n = 0; n < 300; ++n) pass(Part::none);
    begin_to_step();
    const OthersHeldStill others;
    ASSERT_TRUE(others.all());
    for (const Part part : parts) {
        const Fewest found = step_again_and_again(50, allowed, [&] {
            for (int n = 0; n < 40; ++n) pass(Part::none);
            return pass(part);
        });
        EXPECT_TRUE(found.is_at_most(allowed))
            << "part " << static_cast<int>(part) << ": " << found.best.waits << ", always "
            << found.always.size() << ", of " << found.best.instructions;
    }
}
