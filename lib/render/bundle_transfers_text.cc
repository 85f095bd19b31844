#include "render/bundle_transfers_text.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "render/transfer_cells.h"
#include "transfer/listed_transfers.h"
#include "transfer/local_runs.h"
#include "transfer/round_transfers.h"

namespace meshplan {
namespace {

// A round as it is listed; behind the last round one of local steps only.
struct ListedRound {
  size_t index = 0;
  int64_t wave = 0;
  const BundleRound* round = nullptr;  // null: behind the last
};

// A step of some like tensors of a member.
struct ListedPart {
  const PlannedRedistribution* member = nullptr;
  RoundPart part;
  std::shared_ptr<const StepTransfers> transfers;
  int64_t element = 1;  // bytes of an element in the buffers
  int64_t wire = 1;     // and on the wire
};

struct ListedRow {
  const ListedTransfer* transfer = nullptr;
  int64_t tensor = 0;
  std::optional<int64_t> message_offset;  // bytes; none: it is in no packed message
};

// Writes one form of the listing.
class BundleForm : public ListingText {
 public:
  virtual void begin(const Plan& plan, const BundleTransfersQuestion& question) = 0;
  virtual void round(const ListedRound& round) = 0;
  virtual void part(const ListedPart& part) = 0;
  virtual void row(const ListedPart& part, const ListedRow& row) = 0;
  virtual void end_part() = 0;
  virtual void end_round() = 0;
  virtual void end() = 0;
};

class BundleCsvForm : public BundleForm {
 public:
  void begin(const Plan&, const BundleTransfersQuestion&) override {
    text() +=
        "round,wave,stream,redistribution,tensor,step,piece,pieces,op,reduce_op,divisor,action,"
        "contribution,box,bytes,from,from_box,from_offset,to,to_box,to_offset,message_offset\n";
  }
  void round(const ListedRound& round) override {
    round_ = std::to_string(round.index) + "," + std::to_string(round.wave) + "," +
             std::to_string(round.round == nullptr ? 0 : round.round->stream) + ",";
  }
  void part(const ListedPart& p) override {
    before_tensor_ = round_ + csv_cell(p.member->request.id) + ",";
    const auto op = listed_reduce_op(*p.transfers);
    behind_tensor_ = std::to_string(p.part.step) + "," + std::to_string(p.part.piece) + "," +
                     std::to_string(p.part.pieces) + "," + to_text(p.transfers->op) + "," +
                     (op ? to_text(*op) : "") + "," + std::to_string(p.transfers->divisor) + ",";
  }
  void row(const ListedPart& part, const ListedRow& row) override {
    const ListedTransfer& t = *row.transfer;
    text() += before_tensor_;
    add_csv_number(text(), row.tensor);
    text() += behind_tensor_ + to_text(t.action) + ",";
    add_csv_number(text(), t.contribution);
    text() += csv_cell(to_text(t.box)) + ",";
    add_csv_number(text(), volume(t.box) * part.wire);
    end_of(t.from, part.element);
    end_of(t.to, part.element);
    if (row.message_offset) append_integer(text(), *row.message_offset);
    text() += '\n';
  }
  void end_part() override {}
  void end_round() override {}
  void end() override {}

 private:
  void end_of(const TransferEnd& end, int64_t element) {
    if (end.rank < 0) {
      text() += ",,,";
      return;
    }
    add_csv_number(text(), end.rank);
    text() += csv_cell(to_text(end.whole)) + ",";
    add_csv_number(text(), end.offset * element);
  }
  std::string round_, before_tensor_, behind_tensor_;
};

// One row a line; what encloses them is written as it opens and closes.
class BundleJsonForm : public BundleForm {
 public:
  void begin(const Plan& plan, const BundleTransfersQuestion& question) override {
    JsonWriter w(0, Breaks::one_line);
    w.open('{');
    w.fields({{"bundle", question.bundle->request.id}, {"plan_digest", plan.digest}});
    if (question.rank) w.field("rank", *question.rank);
    text() += opened(w) + ",\n  \"rounds\": [";
  }
  void round(const ListedRound& round) override {
    separate(rounds_++, "\n    ");
    parts_ = 0;
    JsonWriter w(0, Breaks::one_line);
    w.open('{');
    const BundleRound none;
    const BundleRound& now = round.round == nullptr ? none : *round.round;
    w.field("after", std::vector<int64_t>(now.after.begin(), now.after.end()));
    w.field("group", now.group);
    w.field("op", round.round == nullptr ? std::nullopt : JsonItem(to_text(now.op)));
    w.fields({{"round", static_cast<int64_t>(round.index)},
              {"stream", now.stream},
              {"wave", round.wave}});
    text() += opened(w) + ", \"parts\": [";
  }
  void part(const ListedPart& p) override {
    separate(parts_++, "\n      ");
    rows_ = 0;
    const Request& request = p.member->request;
    JsonWriter w(0, Breaks::one_line);
    w.open('{');
    w.fields({{"contributions", p.transfers->contributions},
              {"divisor", p.transfers->divisor},
              {"dtype", to_text(request.tensor.dtype)},
              {"from", p.part.from},
              {"id", request.id},
              {"op", to_text(p.transfers->op)},
              {"piece", p.part.piece},
              {"pieces", p.part.pieces}});
    if (request.reduce_dtype) w.field("reduce_dtype", to_text(*request.reduce_dtype));
    const auto op = listed_reduce_op(*p.transfers);
    w.field("reduce_op", op ? JsonItem(to_text(*op)) : std::nullopt);
    w.field("shape", request.tensor.shape);
    w.fields({{"step", p.part.step}, {"to", p.part.to}});
    text() += opened(w) + ", \"transfers\": [";
  }
  void row(const ListedPart& part, const ListedRow& row) override {
    separate(rows_++, "\n        ");
    const ListedTransfer& t = *row.transfer;
    JsonWriter w(0, Breaks::one_line);
    w.open('{');
    w.field("action", to_text(t.action));
    write_box(w, "box", t.box);
    w.fields({{"bytes", volume(t.box) * part.wire}, {"contribution", t.contribution}});
    if (t.from.rank >= 0) {
      w.field("from", t.from.rank);
      write_box(w, "from_box", t.from.whole);
      w.field("from_offset", t.from.offset * part.element);
    }
    if (row.message_offset) w.field("message_offset", *row.message_offset);
    w.fields({{"tensor", row.tensor}, {"to", t.to.rank}});
    write_box(w, "to_box", t.to.whole);
    w.field("to_offset", t.to.offset * part.element);
    w.close();
    text() += w.take("");
  }
  void end_part() override { text() += rows_ > 0 ? "\n      ]}" : "]}"; }
  void end_round() override { text() += parts_ > 0 ? "\n    ]}" : "]}"; }
  void end() override {
    text() += rounds_ > 0 ? "\n  ]" : "]";
    text() += ",\n  \"schema\": \"meshplan/transfers/1\"\n}\n";
  }

 private:
  int64_t rounds_ = 0;
  int64_t parts_ = 0;
  int64_t rows_ = 0;
};

class BundleWriter {
 public:
  BundleWriter(const Plan& plan, const BundleTransfersQuestion& q, BundleForm& form,
               const TextSink& sink)
      : plan_(plan),
        q_(q),
        form_(form),
        sink_(sink),
        ranks_(make_rank_table(plan.meshes)),
        locals_(local_runs(plan, *q.bundle)),
        transfers_(plan, ranks_, [this](size_t member) {
          return held_boxes_of(plan_, plan_.redistributions[member], ranks_);
        }) {}

  Status write() {
    const std::vector<BundleRound>& rounds = q_.bundle->rounds;
    const std::vector<int64_t> waves = waves_of(rounds);
    form_.begin(plan_, q_);
    for (size_t i = 0; i < rounds.size(); ++i) {
      if (auto done = write_round({i, waves[i], &rounds[i]}); !done) return done;
    }
    const int64_t wave = waves.empty() ? 0 : *std::max_element(waves.begin(), waves.end()) + 1;
    if (auto done = write_local_at_end({rounds.size(), wave, nullptr}); !done) return done;
    form_.end();
    return form_.flush(sink_);
  }

 private:
  [[nodiscard]] std::string place_of(size_t round) const {
    return "bundle " + quoted(q_.bundle->request.id) + ", round " + std::to_string(round);
  }

  Status write_round(const ListedRound& listed) {
    form_.round(listed);
    offsets_.clear();
    const BundleRound& round = *listed.round;
    for (const size_t at : packing_order(plan_, round)) {
      const RoundPart& part = round.parts[at];
      const PlannedRedistribution& r = plan_.redistributions[part.member];
      const auto step = static_cast<size_t>(part.step);
      const auto slices = locals_.find({listed.index, at});
      for (size_t local = first_local_before(r, step); local < step && slices != locals_.end();
           ++local) {
        for (const Interval& tensors : slices->second) {
          const RoundPart run{part.member, part.step, tensors.lo, tensors.hi, 0, 1};
          if (auto done = write_local(run, local, place_of(listed.index)); !done) return done;
        }
      }
      const auto made = transfers_.of_part(part, place_of(listed.index));
      if (!made) return made.error();
      if (auto done = write_part(part, *made, round.op == Op::exchange); !done) return done;
    }
    form_.end_round();
    return form_.flush(sink_, part_of_text);
  }

  Status write_local_at_end(const ListedRound& listed) {
    bool open = false;
    for (const size_t member : q_.bundle->request.members) {
      const PlannedRedistribution& r = plan_.redistributions[member];
      for (size_t step = first_local_at_end(r); step < r.steps.size(); ++step) {
        if (!open) form_.round(listed);
        open = true;
        const RoundPart all{member, 0, 0, r.request.count, 0, 1};
        if (auto done = write_local(all, step, place_of(listed.index)); !done) return done;
      }
    }
    if (open) form_.end_round();
    return Done{};
  }

  // A local step of the tensors of a part.
  Status write_local(RoundPart part, size_t step, const std::string& place) {
    part.step = static_cast<int64_t>(step);
    const auto made = transfers_.of_step(part.member, step, place);
    return made ? write_part(part, *made, false) : Status(made.error());
  }

  Status write_part(const RoundPart& part, const std::shared_ptr<const StepTransfers>& transfers,
                    bool packed) {
    const PlannedRedistribution& r = plan_.redistributions[part.member];
    const auto step = static_cast<size_t>(part.step);
    const ListedPart listed{&r, part, transfers, element_bytes(r.request.tensor.dtype),
                            wire_element_bytes(r, step)};
    form_.part(listed);
    const std::vector<HeldBoxes>& held = transfers_.held(part.member);
    // With --rank the rows are few: they are listed once for all like tensors.
    std::vector<ListedTransfer> own;
    const auto list = [&](const TransferVisitor& visit) {
      return list_transfers(*transfers, held[step], held[step + 1], ranks_, visit);
    };
    if (q_.rank) {
      auto done = list([&](const ListedTransfer& row) -> Status {
        if (row.from.rank == *q_.rank || row.to.rank == *q_.rank) own.push_back(row);
        return Done{};
      });
      if (!done) return done;
    }
    for (int64_t tensor = part.from; tensor < part.to; ++tensor) {
      const auto visit = [&](const ListedTransfer& row) {
        return write_row(listed, row, tensor, packed);
      };
      if (!q_.rank) {
        if (auto done = list(visit); !done) return done;
      }
      for (const ListedTransfer& row : own) {
        if (auto done = visit(row); !done) return done;
      }
    }
    form_.end_part();
    return Done{};
  }

  Status write_row(const ListedPart& part, const ListedTransfer& transfer, int64_t tensor,
                   bool packed) {
    ListedRow row{&transfer, tensor, std::nullopt};
    const bool sent =
        transfer.action == TransferAction::send || transfer.action == TransferAction::share;
    if (packed && sent) {
      int64_t& offset = offsets_[transfer.from.rank][transfer.to.rank];
      row.message_offset = offset;
      offset += volume(transfer.box) * part.wire;
    }
    form_.row(part, row);
    return form_.flush(sink_, part_of_text);
  }

  const Plan& plan_;
  const BundleTransfersQuestion& q_;
  BundleForm& form_;
  const TextSink& sink_;
  RankTable ranks_;
  LocalRuns locals_;
  MemberTransfers transfers_;
  // Of the round: bytes in the message of each pair so far, by sender and receiver.
  std::unordered_map<int64_t, std::unordered_map<int64_t, int64_t>> offsets_;
};

}  // namespace

Status write_bundle_transfers_csv(const Plan& plan, const BundleTransfersQuestion& question,
                                  const TextSink& sink) {
  BundleCsvForm form;
  return BundleWriter(plan, question, form, sink).write();
}

Status write_bundle_transfers_json(const Plan& plan, const BundleTransfersQuestion& question,
                                   const TextSink& sink) {
  BundleJsonForm form;
  return BundleWriter(plan, question, form, sink).write();
}

}  // namespace meshplan
