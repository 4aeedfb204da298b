// What a file with an alternative of a NIC's part needs. Its maker is named in list.cpp, alone.
#pragma once

#include <memory>

#include "lab/design/numbers.hpp"
#include "lab/machine.hpp"
#include "lab/parts.hpp"

namespace via::lab::design {

/// `std::unique_ptr<Doorbell> make_d1(const Costs&, const Numbers&, const Load&)` is a
/// Maker<Doorbell>. What is given outlives the part.
template <class PartKind>
using Maker = std::unique_ptr<PartKind>(const Costs&, const Numbers&, const Load&);

}  // namespace via::lab::design
