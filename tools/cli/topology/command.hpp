// `via topology`: the fastest ways through a cluster that a file describes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace via::cli {

struct TopologyOptions {
    std::string file;
    std::string host;     ///< only that one's table; "": all
    std::string measure;  ///< the host that this one is; "": nothing is measured
    std::string folder;   ///< for tables and the picture; "": none
    bool broken = false;
    bool json = false;
};

void add_topology(CLI::App& app, TopologyOptions& options);
int run_topology(const TopologyOptions& options);

}  // namespace via::cli
