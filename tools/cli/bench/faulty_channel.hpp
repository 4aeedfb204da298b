// For tests: a channel that does not work.
#pragma once

#include <memory>

#include "bench/channel.hpp"
#include "bench/link.hpp"
#include "bench/loops.hpp"

namespace via::bench {

// Answers as told: fails to open, fails to measure, or spins for ever.
enum class Fault { open, measure, hang };

class FaultyEndpoint final : public Endpoint {
public:
    FaultyEndpoint(Link& link, Fault fault) : link_(link), fault_(fault) {}
    Status open() override {
        if (fault_ == Fault::open && !link_.is_first()) return fail("no door");
        return {};
    }
    Result<Reading> measure(const Question&, const Effort&) override {
        if (fault_ == Fault::measure && link_.is_first()) return fail("no ruler");
        while (fault_ == Fault::hang && !link_.is_first()) relax();
        if (!link_.meet()) return fail("{}", called_off);
        return Reading{};
    }

private:
    Link& link_;
    Fault fault_;
};

class FaultyChannel final : public Channel {
public:
    explicit FaultyChannel(Fault fault) : Channel("faulty"), fault_(fault) {}
    Question adapt(const Question& question) const override { return question; }
    std::string refuses(const Question&) const override { return {}; }
    Status prepare(std::uint64_t) override { return {}; }
    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        return std::make_unique<FaultyEndpoint>(link, fault_);
    }

private:
    Fault fault_;
};

}  // namespace via::bench
