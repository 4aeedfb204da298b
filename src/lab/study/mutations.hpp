// Which figures of the papers depend on which mechanism: each mechanism is taken away, and the rows
// are measured again.
#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/study/rows.hpp"

namespace via::lab::study {

/// Something that a NIC or a kernel does, and that can be taken away.
struct Mechanism {
    std::string_view name;
    std::string_view what;  ///< how it is without it
    bool Without::* place;
    Has of;  ///< machines that do it
};
std::span<const Mechanism> mechanisms();

/// A row that is another one once a mechanism is taken away.
struct Change {
    std::string_view mechanism;
    std::string machine;
    Row with;
    std::string without;     ///< what it is then
    bool reproduced = true;  ///< still
};
/// Of each of these mechanisms, taken away by itself, the rows of these machines that are not
/// reproduced any more; where there are none, those that are otherwise. The error says what could
/// not be measured at all.
std::expected<std::vector<Change>, std::string> changes_without(std::span<const Mechanism> taken,
                                                                std::span<const Machine> machines);

}  // namespace via::lab::study
