// Polls in vain give the processor away (Attendant::rest). Not while the program holds a lock that
// its other threads poll under: they would find it taken each time that they run.
#pragma once

namespace via::agent {

/// From here on polls of this thread do not rest; may be nested.
void put_off_rests() noexcept;
/// The end of that. The last one rests if a poll would have meanwhile.
void take_rests() noexcept;
/// Gives the processor away, now or when rests are taken again.
void rest_now_or_later() noexcept;

}  // namespace via::agent
