// A stream over host memory: tasks in order, each asked again until it is done. Nothing runs by itself: whoever asks whether a stream is idle
// drives them all, in the one thread there is (fake_cuda.cc). Streams wait for each other only through events.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

namespace meshplan::test {

// True: done.
using StreamTask = std::function<bool()>;
// Of a graph: used once a run.
using TaskMaker = std::function<StreamTask()>;

struct FakeStream;

// A graph while it is recorded: the stream that it began on, then those that waited for an event of it.
struct FakeCapture {
  struct Branch {
    FakeStream* stream = nullptr;
    std::vector<TaskMaker> tasks;
    size_t joined = 0;  // so many of them the first stream waits for
  };
  std::deque<Branch> branches;
  bool ended = false;

  Branch& of(const FakeStream* stream) {
    for (Branch& branch : branches) {
      if (branch.stream == stream) return branch;
    }
    return branches.front();
  }
};

struct FakeStream {
  int gpu = 0;
  std::deque<StreamTask> tasks;
  std::shared_ptr<FakeCapture> capture;  // null: what is put runs

  void put(TaskMaker make) {
    if (capture) {
      capture->of(this).tasks.push_back(std::move(make));
    } else {
      tasks.push_back(make());
    }
  }
  bool idle() {
    while (!tasks.empty() && tasks.front()()) tasks.pop_front();
    return tasks.empty();
  }
};

// What it was recorded for last; waits keep that.
struct FakeEvent {
  int gpu = 0;
  std::shared_ptr<std::set<int>> reached;  // by run of the graph that it is in, else 0; null: not recorded yet
  std::shared_ptr<FakeCapture> capture;
  FakeStream* stream = nullptr;
  size_t behind = 0;  // so many tasks of its branch
};

// A maker of tasks that know which run of their graph they are in.
template <class Make>
TaskMaker numbered(Make make) {
  return [make, runs = std::make_shared<int>(0)]() -> StreamTask { return make((*runs)++); };
}

}  // namespace meshplan::test
