// SPDX-License-Identifier: Apache-2.0
#include "rdm/arithmetic.hpp"

#include <atomic>
#include <complex>
#include <concepts>
#include <cstring>
#include <mutex>

namespace via::fabric::rdm {
namespace {

template <class Value>
constexpr bool is_complex = !std::is_arithmetic_v<Value>;

/// Calls `with` a value of that type.
template <class With>
auto with_type(std::uint32_t datatype, With&& with) {
    switch (datatype) {
        case FI_INT8:
            return with(std::int8_t{});
        case FI_UINT8:
            return with(std::uint8_t{});
        case FI_INT16:
            return with(std::int16_t{});
        case FI_UINT16:
            return with(std::uint16_t{});
        case FI_INT32:
            return with(std::int32_t{});
        case FI_UINT32:
            return with(std::uint32_t{});
        case FI_INT64:
            return with(std::int64_t{});
        case FI_FLOAT:
            return with(float{});
        case FI_DOUBLE:
            return with(double{});
        case FI_FLOAT_COMPLEX:
            return with(std::complex<float>{});
        case FI_DOUBLE_COMPLEX:
            return with(std::complex<double>{});
        case FI_LONG_DOUBLE:
            return with(static_cast<long double>(0));
        case FI_LONG_DOUBLE_COMPLEX:
            return with(std::complex<long double>{});
        default:
            return with(std::uint64_t{});
    }
}

bool is_integer(std::uint32_t datatype) { return datatype <= FI_UINT64; }
bool has_order(std::uint32_t datatype) {
    return datatype != FI_FLOAT_COMPLEX && datatype != FI_DOUBLE_COMPLEX &&
           datatype != FI_LONG_DOUBLE_COMPLEX;
}

/// Integers wrap.
template <class Value>
Value sum(Value one, Value other) {
    if constexpr (std::integral<Value>)
        return static_cast<Value>(static_cast<std::uint64_t>(one) +
                                  static_cast<std::uint64_t>(other));
    else
        return one + other;
}
template <class Value>
Value product(Value one, Value other) {
    if constexpr (std::integral<Value>)
        return static_cast<Value>(static_cast<std::uint64_t>(one) *
                                  static_cast<std::uint64_t>(other));
    else
        return one * other;
}

template <class Value>
Value truth(bool is_true) {
    return is_true ? Value(1) : Value(0);
}

/// Of bits and masks; those that are no integers have none.
template <class Value>
Value of_bits(std::uint32_t operation, Value now, Value operand, Value compare) {
    if constexpr (std::integral<Value>) {
        if (operation == FI_BOR) return static_cast<Value>(now | operand);
        if (operation == FI_BAND) return static_cast<Value>(now & operand);
        if (operation == FI_BXOR) return static_cast<Value>(now ^ operand);
        return static_cast<Value>((operand & compare) | (now & static_cast<Value>(~compare)));
    } else {
        return now;
    }
}

/// Does that operation swap where something is compared?
template <class Value>
bool swaps(std::uint32_t operation, const Value& compare, const Value& now) {
    if (operation == FI_CSWAP) return compare == now;
    if (operation == FI_CSWAP_NE) return compare != now;
    if constexpr (!is_complex<Value>) {
        if (operation == FI_CSWAP_LE) return compare <= now;
        if (operation == FI_CSWAP_LT) return compare < now;
        if (operation == FI_CSWAP_GE) return compare >= now;
        if (operation == FI_CSWAP_GT) return compare > now;
    }
    return false;
}

template <class Value>
bool is_less(const Value& one, const Value& other) {
    if constexpr (is_complex<Value>)
        return false;
    else
        return one < other;
}

/// What is there afterwards.
template <class Value>
Value after(std::uint32_t operation, const Value& now, const Value& operand, const Value& compare) {
    const Value zero{};
    switch (operation) {
        case FI_MIN:
            return is_less(operand, now) ? operand : now;
        case FI_MAX:
            return is_less(now, operand) ? operand : now;
        case FI_SUM:
            return sum(now, operand);
        case FI_PROD:
            return product(now, operand);
        case FI_LOR:
            return truth<Value>(now != zero || operand != zero);
        case FI_LAND:
            return truth<Value>(now != zero && operand != zero);
        case FI_LXOR:
            return truth<Value>((now != zero) != (operand != zero));
        case FI_BOR:
        case FI_BAND:
        case FI_BXOR:
        case FI_MSWAP:
            return of_bits(operation, now, operand, compare);
        case FI_ATOMIC_WRITE:
            return operand;
        default:
            return swaps(operation, compare, now) ? operand : now;
    }
}

/// Of values that the processor does not change at once.
SpinLock long_values;

template <class Value>
constexpr bool is_short = std::is_arithmetic_v<Value> && sizeof(Value) <= sizeof(std::uint64_t);

/// The memory may be one that nobody can write to.
template <class Value>
Value look(std::byte* place) {
    if constexpr (is_short<Value>) {
        const std::atomic_ref<Value> there(*reinterpret_cast<Value*>(place));
        return there.load(std::memory_order_acquire);
    } else {
        const std::lock_guard guard(long_values);
        Value now{};
        std::memcpy(&now, place, sizeof now);
        return now;
    }
}

/// Changes what lies there; what was there before.
template <class Value, class Change>
Value change(std::byte* place, Change&& to) {
    if constexpr (is_short<Value>) {
        const std::atomic_ref<Value> there(*reinterpret_cast<Value*>(place));
        Value now = there.load(std::memory_order_acquire);
        while (!there.compare_exchange_weak(now, to(now), std::memory_order_acq_rel)) {
        }
        return now;
    } else {
        const std::lock_guard guard(long_values);
        Value now{};
        std::memcpy(&now, place, sizeof now);
        Value next{};
        next = to(now);
        std::memcpy(place, &next, sizeof next);
        return now;
    }
}

template <class Value>
Value value_at(const std::byte* values, std::size_t index) {
    Value value{};
    if (values != nullptr) std::memcpy(&value, values + index * sizeof value, sizeof value);
    return value;
}

}  // namespace

bool is_atomic(Form form, std::uint32_t datatype, std::uint32_t operation) {
    if (datatype >= FI_DATATYPE_LAST || operation >= FI_ATOMIC_OP_LAST) return false;
    const bool compares = operation >= FI_CSWAP;
    if (compares != (form == Form::compare)) return false;
    switch (operation) {
        case FI_ATOMIC_READ:
            return form == Form::fetch;
        case FI_MIN:
        case FI_MAX:
        case FI_CSWAP_LE:
        case FI_CSWAP_LT:
        case FI_CSWAP_GE:
        case FI_CSWAP_GT:
            return has_order(datatype);
        case FI_BOR:
        case FI_BAND:
        case FI_BXOR:
        case FI_MSWAP:
            return is_integer(datatype);
        default:
            return true;
    }
}

std::size_t atomic_size(std::uint32_t datatype) {
    return with_type(datatype, [](auto value) { return sizeof value; });
}

std::size_t atomic_alignment(std::uint32_t datatype) {
    return with_type(datatype, [](auto value) { return alignof(decltype(value)); });
}

void carry_out(const Calculation& calculation) {
    with_type(calculation.datatype, [&](auto type) {
        using Value = decltype(type);
        for (std::size_t index = 0; index < calculation.count; ++index) {
            const auto operand = value_at<Value>(calculation.operands, index);
            const auto compare = value_at<Value>(calculation.compares, index);
            std::byte* const place = calculation.target + index * sizeof(Value);
            const auto next = [&](const Value& now) {
                return after<Value>(calculation.operation, now, operand, compare);
            };
            const Value before = calculation.operation == FI_ATOMIC_READ
                                     ? look<Value>(place)
                                     : change<Value>(place, next);
            if (calculation.results != nullptr)
                std::memcpy(calculation.results + index * sizeof(Value), &before, sizeof before);
        }
    });
}

bool is_call(const AtomicCall& call, std::size_t length) {
    if (call.form > static_cast<std::uint8_t>(Form::compare) || call.zero != 0 ||
        !is_atomic(static_cast<Form>(call.form), call.datatype, call.operation))
        return false;
    const std::size_t size = atomic_size(call.datatype);
    if (call.count == 0 || call.count > atomic_bytes_max / size) return false;
    const std::size_t values = (call.operation != FI_ATOMIC_READ ? 1U : 0U) +
                               (static_cast<Form>(call.form) == Form::compare ? 1U : 0U);
    return length == sizeof call + values * call.count * size;
}

}  // namespace via::fabric::rdm
