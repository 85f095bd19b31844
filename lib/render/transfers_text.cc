#include "render/transfers_text.h"

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "json/write.h"
#include "plan/firsts.h"
#include "render/transfer_cells.h"
#include "transfer/listed_transfers.h"

namespace meshplan {
namespace {

// What one step says of all its rows.
struct StepFacts {
  const PlannedRedistribution* redistribution = nullptr;
  size_t step = 0;
  const StepTransfers* transfers = nullptr;
  int64_t element = 1;  // bytes of an element in the buffers
  int64_t wire = 1;     // and on the wire: the reduction may run in a wider dtype

  [[nodiscard]] std::optional<ReduceOp> reduce_op() const { return listed_reduce_op(*transfers); }
};

// Writes one form of the listing.
class TransfersForm : public ListingText {
 public:
  virtual void begin(const Plan& plan, const TransfersQuestion& question) = 0;
  virtual void repeat(const PlannedRedistribution& redistribution, const std::string& first) = 0;
  virtual void redistribution(const PlannedRedistribution& redistribution) = 0;
  virtual void step(const StepFacts& facts) = 0;
  virtual void row(const StepFacts& facts, const ListedTransfer& row) = 0;
  virtual void end_step() = 0;
  virtual void end_redistribution() = 0;
  virtual void end() = 0;
};

const char* buffer_of(const TransferEnd& end) { return end.fetched ? "fetched" : "held"; }

class CsvForm : public TransfersForm {
 public:
  void begin(const Plan&, const TransfersQuestion&) override {
    text() +=
        "redistribution,count,same_as,step,op,reduce_op,divisor,phase,chunk,action,contribution,box,bytes,"
        "from,from_buffer,from_box,from_offset,to,to_buffer,to_box,to_offset\n";
  }
  void repeat(const PlannedRedistribution& r, const std::string& first) override {
    text() += csv_cell(r.request.id) + "," + std::to_string(r.request.count) + "," +
              csv_cell(first) + std::string(18, ',') + "\n";
  }
  void redistribution(const PlannedRedistribution&) override {}
  void step(const StepFacts& facts) override {
    const Request& request = facts.redistribution->request;
    step_ = csv_cell(request.id) + "," + std::to_string(request.count) + ",," +
            std::to_string(facts.step) + "," + to_text(facts.transfers->op) + "," +
            (facts.reduce_op() ? to_text(*facts.reduce_op()) : "") + "," +
            std::to_string(facts.transfers->divisor) + ",";
  }
  void row(const StepFacts& facts, const ListedTransfer& row) override {
    text() += step_;
    number(row.phase);
    number(row.chunk);
    text() += std::string(to_text(row.action)) + ",";
    number(row.contribution);
    text() += csv_cell(to_text(row.box)) + ",";
    number(volume(row.box) * facts.wire);
    end_of(row.from, facts.element);
    text() += ',';
    end_of(row.to, facts.element);
    text() += '\n';
  }
  void end_step() override {}
  void end_redistribution() override {}
  void end() override {}

 private:
  void number(int64_t value) { add_csv_number(text(), value); }
  void end_of(const TransferEnd& end, int64_t element) {
    if (end.rank < 0) {
      text() += ",,,";
      return;
    }
    number(end.rank);
    text() += std::string(buffer_of(end)) + "," + csv_cell(to_text(end.whole)) + ",";
    append_integer(text(), end.offset * element);
  }
  std::string step_;
};

// One row a line; what encloses them is written as it opens and closes.
class JsonForm : public TransfersForm {
 public:
  void begin(const Plan& plan, const TransfersQuestion& question) override {
    text() += "{\n  \"plan_digest\": " + quoted(plan.digest) + ",\n";
    if (question.rank) text() += "  \"rank\": " + std::to_string(*question.rank) + ",\n";
    text() += "  \"redistributions\": [";
  }
  void repeat(const PlannedRedistribution& r, const std::string& first) override {
    separate(redistributions_++, "\n    ");
    JsonWriter w(0, Breaks::one_line);
    w.object({{"count", r.request.count}, {"id", r.request.id}, {"same_as", first}});
    text() += w.take("");
  }
  void redistribution(const PlannedRedistribution& r) override {
    separate(redistributions_++, "\n    ");
    steps_ = 0;
    JsonWriter w(0, Breaks::one_line);
    w.open('{');
    w.fields({{"count", r.request.count},
              {"dtype", to_text(r.request.tensor.dtype)},
              {"id", r.request.id}});
    if (r.request.reduce_dtype) w.field("reduce_dtype", to_text(*r.request.reduce_dtype));
    w.field("shape", r.request.tensor.shape);
    text() += opened(w) + ", \"steps\": [";
  }
  void step(const StepFacts& facts) override {
    separate(steps_++, "\n      ");
    rows_ = 0;
    JsonWriter w(0, Breaks::one_line);
    w.open('{');
    w.fields({{"contributions", facts.transfers->contributions},
              {"divisor", facts.transfers->divisor},
              {"op", to_text(facts.transfers->op)}});
    const auto op = facts.reduce_op();
    w.field("reduce_op", op ? JsonItem(to_text(*op)) : std::nullopt);
    w.field("step", facts.step);
    text() += opened(w) + ", \"transfers\": [";
  }
  void row(const StepFacts& facts, const ListedTransfer& row) override {
    separate(rows_++, "\n        ");
    JsonWriter w(0, Breaks::one_line);
    w.open('{');
    w.field("action", to_text(row.action));
    write_box(w, "box", row.box);
    w.field("bytes", volume(row.box) * facts.wire);
    if (facts.transfers->chunks > 1) w.field("chunk", row.chunk);
    w.field("contribution", row.contribution);
    if (row.from.rank >= 0) {
      end_of(w, row.from, facts.element, {"from", "from_box", "from_buffer", "from_offset"});
    }
    w.field("phase", row.phase);
    end_of(w, row.to, facts.element, {"to", "to_box", "to_buffer", "to_offset"});
    w.close();
    text() += w.take("");
  }
  void end_step() override { text() += rows_ > 0 ? "\n      ]}" : "]}"; }
  void end_redistribution() override { text() += steps_ > 0 ? "\n    ]}" : "]}"; }
  void end() override {
    text() += redistributions_ > 0 ? "\n  ]" : "]";
    text() += ",\n  \"schema\": \"meshplan/transfers/1\"\n}\n";
  }

 private:
  struct EndKeys {
    const char* rank;
    const char* box;
    const char* buffer;
    const char* offset;
  };
  static void end_of(JsonWriter& w, const TransferEnd& end, int64_t element, const EndKeys& keys) {
    w.field(keys.rank, end.rank);
    write_box(w, keys.box, end.whole);
    w.fields({{keys.buffer, buffer_of(end)}, {keys.offset, end.offset * element}});
  }
  int64_t redistributions_ = 0;
  int64_t steps_ = 0;
  int64_t rows_ = 0;
};

Status write_steps(const Plan& plan, const PlannedRedistribution& r, const RankTable& ranks,
                   const TransfersQuestion& question, TransfersForm& form, const TextSink& sink) {
  const std::vector<HeldBoxes> held = held_boxes_of(plan, r, ranks);
  std::optional<int32_t> only;
  if (question.rank) {
    const auto& ids = ranks.global_ids;
    only = static_cast<int32_t>(std::lower_bound(ids.begin(), ids.end(), *question.rank) -
                                ids.begin());
  }
  for (size_t i = 0; i < r.steps.size(); ++i) {
    const std::string place =
        "redistribution " + quoted(r.request.id) + ", step " + std::to_string(i);
    const auto transfers =
        make_transfers({&held[i], &held[i + 1], &r.steps[i], &ranks, &plan.topology, place, only});
    if (!transfers) return transfers.error();
    StepFacts facts{&r, i, &*transfers, element_bytes(r.request.tensor.dtype), 1};
    facts.wire = transfers->reduce_op && !is_local(transfers->op) && r.request.reduce_dtype
                     ? element_bytes(*r.request.reduce_dtype)
                     : facts.element;
    form.step(facts);
    const auto visit = [&](const ListedTransfer& row) -> Status {
      if (question.rank && row.from.rank != *question.rank && row.to.rank != *question.rank)
        return Done{};
      form.row(facts, row);
      return form.flush(sink, part_of_text);
    };
    if (auto done = list_transfers(*transfers, held[i], held[i + 1], ranks, visit); !done)
      return done;
    form.end_step();
  }
  return Done{};
}

Status write_all(const Plan& plan, const TransfersQuestion& question, TransfersForm& form,
                 const TextSink& sink) {
  const RankTable ranks = make_rank_table(plan.meshes);
  const std::unordered_set<std::string> ids(question.ids.begin(), question.ids.end());
  const std::vector<size_t> firsts = firsts_of(plan.redistributions);
  // By first of the plan: the id under which it was listed, which is another where the question
  // leaves the first out.
  std::vector<const std::string*> listed(firsts.size(), nullptr);
  form.begin(plan, question);
  for (size_t i = 0; i < firsts.size(); ++i) {
    const PlannedRedistribution& r = plan.redistributions[i];
    if (!ids.empty() && ids.count(r.request.id) == 0) continue;
    if (listed[firsts[i]] != nullptr) {
      form.repeat(r, *listed[firsts[i]]);
      continue;
    }
    listed[firsts[i]] = &r.request.id;
    form.redistribution(r);
    if (auto done = write_steps(plan, r, ranks, question, form, sink); !done) return done;
    form.end_redistribution();
    if (auto done = form.flush(sink, part_of_text); !done) return done;
  }
  form.end();
  return form.flush(sink);
}

}  // namespace

Status write_transfers_csv(const Plan& plan, const TransfersQuestion& question,
                           const TextSink& sink) {
  CsvForm form;
  return write_all(plan, question, form, sink);
}

Status write_transfers_json(const Plan& plan, const TransfersQuestion& question,
                            const TextSink& sink) {
  JsonForm form;
  return write_all(plan, question, form, sink);
}

}  // namespace meshplan
