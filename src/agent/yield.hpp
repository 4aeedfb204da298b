// Empty polls give the processor away (Attendant::yield). Not while the program holds a lock that
// its other threads poll under: they would find it taken each time that they run.
#pragma once

namespace via::agent {

/// From here on polls of this thread do not yield; may be nested.
void put_off_yields() noexcept;
/// The end of that. The last one yields if a poll would have meanwhile.
void take_yields() noexcept;
/// Gives the processor away, now or when yields are taken again.
void yield_now_or_later() noexcept;

}  // namespace via::agent
