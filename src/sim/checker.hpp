// A checker watches the history of a world and says what is wrong with it. Each knows the
// specification from its own side and nothing of the engine.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>
#include <utility>

#include "sim/history.hpp"

namespace via::sim {

/// Makes a visitor of several functions.
template <class... Functions>
struct Overloaded : Functions... {
    using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;
/// What a checker does with events that it is not about.
inline constexpr auto ignore = [](const auto&) {};

class Checker {
public:
    virtual ~Checker() = default;
    virtual const char* name() const = 0;
    virtual void observe(const Event& event) = 0;
    /// The run is over.
    virtual void finish(Time /*now*/) {}

    /// The first thing that was wrong; empty if nothing was.
    const std::string& violation() const { return violation_; }

protected:
    void violate(const char* format, ...) __attribute__((format(printf, 2, 3)));

private:
    std::string violation_;
};

}  // namespace via::sim
