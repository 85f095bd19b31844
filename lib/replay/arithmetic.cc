#include "replay/arithmetic.h"

#include <algorithm>

#include "replay/number.h"

namespace meshplan {
namespace {

template <class Wide>
Wide plus(Wide a, Wide b) {
  if constexpr (std::is_integral_v<Wide>) {
    using Unsigned = std::make_unsigned_t<Wide>;
    return static_cast<Wide>(
        static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return a + b;
  }
}

template <class Wide>
Wide times(Wide a, Wide b) {
  if constexpr (std::is_integral_v<Wide>) {
    return static_cast<Wide>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <class Codec, class Operation>
void combine_with(std::byte* into, const std::byte* with, int64_t count, Operation operation) {
  using Storage = typename Codec::Storage;
  auto* a = reinterpret_cast<Storage*>(into);
  const auto* b = reinterpret_cast<const Storage*>(with);
  for (int64_t i = 0; i < count; ++i)
    a[i] = Codec::narrow(operation(Codec::wide(a[i]), Codec::wide(b[i])));
}

}  // namespace

void combine(DType dtype, ReduceOp op, std::byte* into, const std::byte* with, int64_t count) {
  visit_dtype(dtype, [&](auto codec) {
    using Codec = decltype(codec);
    using Wide = typename Codec::Wide;
    if constexpr (std::is_same_v<Codec, Boolean>) {
      if (op == ReduceOp::product || op == ReduceOp::min) {
        combine_with<Codec>(into, with, count,
                            [](uint8_t a, uint8_t b) { return static_cast<uint8_t>(a & b); });
      } else {
        combine_with<Codec>(into, with, count,
                            [](uint8_t a, uint8_t b) { return static_cast<uint8_t>(a | b); });
      }
    } else {
      switch (op) {
        case ReduceOp::sum:
        case ReduceOp::avg:
          return combine_with<Codec>(into, with, count, plus<Wide>);
        case ReduceOp::product:
          return combine_with<Codec>(into, with, count, times<Wide>);
        case ReduceOp::min:
          return combine_with<Codec>(into, with, count,
                                     [](Wide a, Wide b) { return b < a ? b : a; });
        case ReduceOp::max:
          return combine_with<Codec>(into, with, count,
                                     [](Wide a, Wide b) { return a < b ? b : a; });
      }
    }
  });
}

void divide_by(DType dtype, std::byte* data, int64_t count, int64_t divisor) {
  if (divisor == 1) return;
  visit_dtype(dtype, [&](auto codec) {
    using Codec = decltype(codec);
    using Wide = typename Codec::Wide;
    if constexpr (!std::is_same_v<Codec, Boolean>) {
      auto* a = reinterpret_cast<typename Codec::Storage*>(data);
      if constexpr (std::is_integral_v<Wide>) {
        for (int64_t i = 0; i < count; ++i)
          a[i] = static_cast<Wide>(static_cast<int64_t>(a[i]) / divisor);
      } else {
        const auto by = static_cast<Wide>(divisor);
        for (int64_t i = 0; i < count; ++i) a[i] = Codec::narrow(Codec::wide(a[i]) / by);
      }
    }
  });
}

void cast_elements(DType from_dtype, const std::byte* from, DType to_dtype, std::byte* to,
                   int64_t count) {
  visit_dtype(from_dtype, [&](auto source) {
    using Source = decltype(source);
    visit_dtype(to_dtype, [&](auto target) {
      using Target = decltype(target);
      const auto* a = reinterpret_cast<const typename Source::Storage*>(from);
      auto* b = reinterpret_cast<typename Target::Storage*>(to);
      for (int64_t i = 0; i < count; ++i) {
        const auto value = Source::wide(a[i]);
        if constexpr (std::is_same_v<Target, Boolean>) {
          b[i] = value != 0 ? 1 : 0;
        } else {
          b[i] = Target::narrow(static_cast<typename Target::Wide>(value));
        }
      }
    });
  });
}

void fill_identity(DType dtype, ReduceOp op, std::byte* data, int64_t count) {
  visit_dtype(dtype, [&](auto codec) {
    using Codec = decltype(codec);
    using Storage = typename Codec::Storage;
    using Wide = typename Codec::Wide;
    Storage value{};
    if constexpr (std::is_same_v<Codec, Boolean>) {
      value = op == ReduceOp::product || op == ReduceOp::min ? 1 : 0;
    } else if (op == ReduceOp::product) {
      value = Codec::narrow(static_cast<Wide>(1));
    } else if (op == ReduceOp::min || op == ReduceOp::max) {
      if constexpr (std::is_integral_v<Wide>) {
        value = op == ReduceOp::min ? std::numeric_limits<Wide>::max()
                                    : std::numeric_limits<Wide>::lowest();
      } else {
        const double largest = largest_value(dtype);
        value = Codec::narrow(static_cast<Wide>(op == ReduceOp::min ? largest : -largest));
      }
    }
    auto* a = reinterpret_cast<Storage*>(data);
    std::fill(a, a + count, value);
  });
}

}  // namespace meshplan
