// Reads a machine from TOML. Whatever is unknown, missing, or of a unit that does not fit is an
// error that names file and line, and what was meant.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "lab/machine.hpp"

namespace via::lab::file {

/// `name` is for messages: a path, or the name of a machine that is built in.
std::expected<Machine, std::string> parse(std::string_view text, std::string_view name);

/// A machine that is built in, or the path of a file: one with a '/' or that ends in .toml.
std::expected<Machine, std::string> load(const std::string& name);

struct BuiltIn {
    std::string_view name;
    std::string_view text;
};
/// In the order of their names.
const std::vector<BuiltIn>& built_in();
/// Hosts that several machines share: parts of a machine's file, which names one by "like".
const std::vector<BuiltIn>& built_in_hosts();

}  // namespace via::lab::file
