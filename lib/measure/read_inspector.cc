#include "measure/read_inspector.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/int_math.h"
#include "json/parse.h"
#include "json/value.h"

namespace meshplan {
namespace {

struct Named {
  const char* coll;
  Op op;
};
constexpr Named collectives[] = {{"AllReduce", Op::all_reduce},
                                 {"AllGather", Op::all_gather},
                                 {"ReduceScatter", Op::reduce_scatter}};

// One collective of one communicator, which every rank has a record of.
using Collective = std::tuple<std::string, std::string, int64_t>;  // file's id, coll, sn

class InspectorReader {
 public:
  // Throws Unreadable.
  void read(const Value& record, const std::string& place) {
    const Value header = record.at("header");
    if (!record.has("coll_perf")) {
      const char* what = record.has("p2p_perf") ? "sends are timed one by one, not as an exchange"
                                                : "no record of a collective";
      return add_unused(found_, place, what);
    }
    const Value perf = record.at("coll_perf");
    const std::string coll = perf.at("coll").text();
    const auto* named = std::find_if(std::begin(collectives), std::end(collectives),
                                     [&](const Named& n) { return coll == n.coll; });
    if (named == std::end(collectives))
      return add_unused(found_, place, "collectives that plans do not use");
    if (const auto source = perf.find("coll_timing_source");
        source && source->text() != "kernel_gpu")
      return add_unused(found_, place, "times by the host's clock, not the GPU's");
    const int64_t ranks = header.at("n_ranks").integer(1, 1 << 24);
    const int64_t hosts = header.at("nnodes").integer(1, 1 << 24);
    int64_t size = perf.at("coll_msg_size_bytes").integer(0);
    if (named->op != Op::all_reduce) size = saturating_mul(size, ranks);
    const auto us = perf.at("coll_exec_time_us").number();
    if (!us || !(*us >= 0) || *us > 1e12)
      perf.at("coll_exec_time_us").fail("expected a time in microseconds");
    if (ranks < 2 || size == 0) return add_unused(found_, place, "no bytes were moved");
    if (ranks % hosts != 0)
      return add_unused(found_, place, "hosts have different numbers of the group's ranks");
    const int64_t ns = std::llround(*us * 1000);
    if (ns == 0) {
      const Value time = perf.at("coll_exec_time_us");
      time.fail(no_time_text(time.as_written(), "us", size, ranks));
    }
    FoundRow row;
    row.row = {place, named->op, {}, size, ns, 1, {}};
    row.ranks = ranks;
    row.per_host = ranks / hosts;
    keep({header.at("id").text(), coll, perf.at("coll_sn").integer(0)}, std::move(row));
  }
  MeasuredFile take() { return std::move(found_); }

 private:
  // The shortest of the ranks' times.
  void keep(Collective collective, FoundRow row) {
    found_.host_ranks = std::max(found_.host_ranks, row.per_host);
    const auto [at, is_new] = seen_.emplace(std::move(collective), found_.rows.size());
    if (is_new) {
      found_.rows.push_back(std::move(row));
    } else {
      int64_t& ns = found_.rows[at->second].row.ns;
      ns = std::min(ns, row.row.ns);
    }
  }

  std::map<Collective, size_t> seen_;
  MeasuredFile found_;
};

}  // namespace

bool is_inspector(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.find("\"header\"") != std::string_view::npos &&
         (line.find("\"coll_perf\"") != std::string_view::npos ||
          line.find("\"p2p_perf\"") != std::string_view::npos ||
          line.find("\"metadata\"") != std::string_view::npos);
}

Result<MeasuredFile> read_inspector(std::string_view text, const std::string& file) {
  InspectorReader reader;
  int64_t number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = file + ":" + std::to_string(number);
    const auto parsed = parse_json(line, {});
    const auto* document = std::get_if<JsonDocument>(&parsed);
    if (document == nullptr) {
      return bad_input(place + ": not JSON: " + std::get<JsonRefusal>(parsed).message +
                       "; a program that is still writing leaves its last line unfinished");
    }
    try {
      reader.read(Value(*document, 0), place);
    } catch (const Unreadable& problem) {
      return bad_input(place + ": " + (problem.pointer.empty() ? "" : problem.pointer + ": ") +
                       problem.message);
    }
  }
  return reader.take();
}

}  // namespace meshplan
