// Worlds on NICs of the laboratory.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "lab/carrier/cluster_carrier.hpp"

namespace via::sim_tool {

/// One of the built-in machines that carry the product, with a design that the seed draws. The
/// error says what is wrong with a machine's file.
std::expected<lab::carrier::Plan, std::string> draw_plan(std::uint64_t seed);
/// What it makes is known as `made`, as long as its world lives.
device::sim::CarrierMaker maker_of(const lab::carrier::Plan& plan,
                                   const lab::carrier::ClusterCarrier*& made);
std::string to_text(const lab::carrier::Plan& plan);

}  // namespace via::sim_tool
