#include "replay/host_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/int_math.h"
#include "replay/arithmetic.h"

namespace meshplan {
namespace {

constexpr int64_t slab_bytes = int64_t{32} << 20;
constexpr int64_t huge_page = int64_t{2} << 20;
constexpr int poison_byte = 0xdb;
constexpr auto guard_byte = std::byte{0xa7};
// Below this amount of work a single thread is faster.
constexpr int64_t bytes_worth_threads = int64_t{256} << 10;

}  // namespace

struct HostDevice::Slab {
  std::byte* data = nullptr;
  int64_t size = 0;
  int64_t used = 0;
  explicit Slab(int64_t bytes)
      : data(static_cast<std::byte*>(std::aligned_alloc(huge_page, static_cast<size_t>(bytes)))),
        size(bytes) {
#ifdef MADV_HUGEPAGE
    // optional: only affects speed
    if (data != nullptr) (void)madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
#endif
  }
  ~Slab() { std::free(data); }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
};

HostDevice::HostDevice(int64_t threads, std::optional<int64_t> most_bytes)
    : pool_(threads), left_bytes_(most_bytes.value_or(INT64_MAX)) {}
HostDevice::~HostDevice() = default;

Result<std::byte*> HostDevice::allocate(int32_t rank, int64_t bytes) {
  const int64_t need = ceil_div(bytes, guard_bytes) * guard_bytes + 2 * guard_bytes;
  while (current_ < slabs_.size() && slabs_[current_]->size - slabs_[current_]->used < need)
    ++current_;
  if (current_ == slabs_.size()) {
    const int64_t room = ceil_div(std::max(need, slab_bytes), huge_page) * huge_page;
    std::unique_ptr<Slab> slab;
    if (room <= left_bytes_) slab = std::make_unique<Slab>(room);
    if (slab == nullptr || slab->data == nullptr) {
      return environment("rank " + std::to_string(rank) + " needs a buffer of " +
                         std::to_string(bytes) + " bytes, and the system has no " +
                         std::to_string(room) +
                         " bytes more for buffers; raise the limit of memory, or replay a smaller "
                         "shape with --shrink, where that is not given");
    }
    left_bytes_ -= room;
    slabs_.push_back(std::move(slab));
  }
  Slab& slab = *slabs_[current_];
  std::byte* data = slab.data + slab.used + guard_bytes;
  slab.used += need;
  return data;
}

void HostDevice::reset() {
  for (const auto& slab : slabs_) slab->used = 0;
  current_ = 0;
}

void do_on_host(const LocalOp& op) {
  switch (op.kind) {
    case LocalOp::Kind::copy:
      return copy_region(op.region, op.from, op.to, element_bytes(op.dtype), op.past_cache);
    case LocalOp::Kind::identity:
      return fill_identity(op.dtype, op.op, op.to, op.count);
    case LocalOp::Kind::cast:
      return cast_elements(op.from_dtype, op.from, op.dtype, op.to, op.count);
    case LocalOp::Kind::divide:
      return divide_by(op.dtype, op.to, op.count, op.divisor);
    case LocalOp::Kind::combine:
      return combine(op.dtype, op.op, op.to, op.from, op.count);
  }
}

Status HostDevice::work(int32_t /*rank*/, std::span<const LocalOp> ops) {
  for (const LocalOp& op : ops) do_on_host(op);
  return Done{};
}

Status HostDevice::for_each(int64_t n, int64_t bytes, const std::function<Status(int64_t)>& run) {
  std::vector<std::optional<Error>> errors(static_cast<size_t>(n));
  auto one = [&](int64_t i) {
    Status done = run(i);
    if (!done) errors[i] = done.error();
  };
  if (bytes < bytes_worth_threads) {
    for (int64_t i = 0; i < n; ++i) one(i);
  } else {
    pool_.for_each(n, one);
  }
  for (std::optional<Error>& error : errors) {
    if (error) return std::move(*error);
  }
  return Done{};
}

Status HostDevice::poison(int32_t rank, std::byte* data, int64_t bytes) {
  std::memset(data, poison_byte, static_cast<size_t>(bytes));
  return guard(rank, data, bytes);
}

Status HostDevice::guard(int32_t /*rank*/, std::byte* data, int64_t bytes) {
  std::memset(data - guard_bytes, static_cast<int>(guard_byte), guard_bytes);
  std::memset(data + bytes, static_cast<int>(guard_byte), guard_bytes);
  return Done{};
}

Result<bool> HostDevice::guards_whole(int32_t /*rank*/, const std::byte* data, int64_t bytes) {
  auto whole = [](const std::byte* guard) {
    return std::all_of(guard, guard + guard_bytes, [](std::byte b) { return b == guard_byte; });
  };
  return whole(data - guard_bytes) && whole(data + bytes);
}

Status HostDevice::fill(int32_t /*rank*/, std::byte* to, const Box& box,
                        std::span<const int64_t> shape, const DataTable& table, int64_t start) {
  fill_box(to, box, shape, table.source(), table.period(), start,
           element_bytes(table.question().dtype));
  return Done{};
}

Result<Comparison> HostDevice::compare(int32_t /*rank*/, const std::byte* found, const Box& box,
                                       std::span<const int64_t> shape, const DataTable& table,
                                       int64_t start, size_t keep) {
  return compare_box(found, box, shape, table.answer(), table.period(), start,
                     element_bytes(table.question().dtype), keep);
}

Status HostDevice::read(int32_t /*rank*/, const std::byte* from, std::byte* to, int64_t bytes) {
  std::memcpy(to, from, static_cast<size_t>(bytes));
  return Done{};
}

Status HostDevice::write(int32_t /*rank*/, const std::byte* from, std::byte* to, int64_t bytes) {
  std::memcpy(to, from, static_cast<size_t>(bytes));
  return Done{};
}

}  // namespace meshplan
