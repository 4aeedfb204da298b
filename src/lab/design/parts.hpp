// One maker for each alternative; each is in the file of its name.
#pragma once

#include <memory>

#include "lab/design/numbers.hpp"
#include "lab/machine.hpp"
#include "lab/parts.hpp"

namespace via::lab::design {

std::unique_ptr<Translation> make_at1(const Costs&, const Numbers&, const Load&);
std::unique_ptr<Translation> make_at2(const Costs&, const Numbers&, const Load&);
std::unique_ptr<Translation> make_at3(const Costs&, const Numbers&, const Load&);
std::unique_ptr<Doorbell> make_d1(const Costs&, const Numbers&, const Load&);
std::unique_ptr<Doorbell> make_d2(const Costs&, const Numbers&, const Load&);
std::unique_ptr<Doorbell> make_bitmap(const Costs&, const Numbers&, const Load&);
std::unique_ptr<Descriptors> make_cached(const Costs&, const Numbers&, const Load&);
std::unique_ptr<Descriptors> make_fetched(const Costs&, const Numbers&, const Load&);
std::unique_ptr<Completions> make_cq1(const Costs&, const Numbers&, const Load&);
std::unique_ptr<Completions> make_cq2(const Costs&, const Numbers&, const Load&);
std::unique_ptr<Payload> make_pio(const Costs&, const Numbers&, const Load&);
std::unique_ptr<Payload> make_dma(const Costs&, const Numbers&, const Load&);

}  // namespace via::lab::design
