#include "agent/yield.hpp"

#include <sched.h>

namespace via::agent {
namespace {

thread_local unsigned put_off = 0;
thread_local bool is_due = false;

}  // namespace

void put_off_yields() noexcept { ++put_off; }

void take_yields() noexcept {
    if (put_off == 0) return;
    --put_off;
    if (put_off == 0 && is_due) yield_now_or_later();
}

void yield_now_or_later() noexcept {
    is_due = put_off != 0;
    if (!is_due) sched_yield();
}

}  // namespace via::agent
