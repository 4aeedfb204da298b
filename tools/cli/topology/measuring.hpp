// The figures of one host's links, measured.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/types.hpp"
#include "topology/cluster.hpp"

namespace via::cli::topology {

/// One way from host `from` over that network, asked of 'via bench serve' at the other end.
/// `command`: the program via.
bench::Result<Figures> measure(const std::string& command, const Network& network, std::size_t to);

/// The link as it stands in a cluster's file.
std::string text_of(const Cluster& cluster, const Link& link);

}  // namespace via::cli::topology
