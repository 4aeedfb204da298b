#include "lab/study/rows.hpp"

namespace via::lab::study {
namespace {

constexpr Study all[] = {
    {"firmvia", "firmvia", firmvia_rows},
    {"berkeley", "berkeley1", berkeley1_rows},
    {"berkeley", "berkeley2", berkeley2_rows},
    {"mvia", "gnic2", gnic2_rows},
    {"mvia", "sk9821", sk9821_rows},
    {"mvia", "tulip", tulip_rows},
    {"mvia", "clan", clan_rows},
    {"handles", "mini", mini_rows},
    {"sci", "sci", sci_rows},
    {"sci", "oscarclan", oscarclan_rows},
    {"sci", "oscarethernet", oscarethernet_rows},
    {"ours", "shm", shm_rows},
};

}  // namespace

std::span<const Study> studies() { return all; }

Rows rows_of(const Machine& machine, const Without& without) {
    for (const Study& study : all)
        if (study.machine == machine.name) return study.rows(machine, without);
    return std::unexpected("no paper's figures are known of " + machine.name);
}

}  // namespace via::lab::study
