// A cluster as a picture, drawn by the program dot (graphviz).
#pragma once

#include <string>

#include "bench/types.hpp"
#include "topology/cluster.hpp"

namespace via::cli::topology {

/// What dot is told: hosts, networks, and a cable between where a host is in a network. Links that
/// are down or have figures of their own are drawn between their hosts.
std::string dot_of(const Cluster& cluster);

/// An SVG; fails with the package to install, or with what dot says.
bench::Result<std::string> draw(const std::string& dot);

}  // namespace via::cli::topology
