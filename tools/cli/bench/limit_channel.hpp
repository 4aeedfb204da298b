// Limits of the machine: what no software between two processes can beat. They are channels like
// the others, but always polling (futex: always blocking) and free of any protocol or protection.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "bench/channel.hpp"
#include "bench/loops.hpp"
#include "bench/shared_map.hpp"

namespace via::bench {

// EndType is constructed from (Link&, std::byte* shared area) and has besides
//   static std::string refuses(const Question&)
//   static std::size_t area_bytes(std::uint64_t max_size)
//   static constexpr Wait wait; static constexpr Op op
template <class EndType, class EndpointType = MessageEndpoint<EndType>>
class LimitChannel final : public Channel {
public:
    using Channel::Channel;

    Question adapt(const Question& asked) const override {
        Question question = without_vis(asked);
        question.op = EndType::op;
        question.wait = EndType::wait;
        return question;
    }
    std::string refuses(const Question& question) const override {
        return EndType::refuses(question);
    }
    Status prepare(std::uint64_t max_size) override {
        return area_.create(EndType::area_bytes(max_size));
    }
    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        return std::make_unique<EndpointType>(link, area_.base());
    }

private:
    SharedMap area_;
};

}  // namespace via::bench
