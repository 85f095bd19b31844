// A stream over host memory: tasks in order, each asked again until it is done. Nothing runs by itself: whoever asks whether the stream is
// idle drives it, in the one thread there is.
#pragma once

#include <deque>
#include <functional>
#include <vector>

namespace meshplan::test {

// True: done.
using StreamTask = std::function<bool()>;

struct FakeStream {
  std::deque<StreamTask> tasks;
  // A graph: makers of tasks, each used once a run.
  bool recording = false;
  std::vector<std::function<StreamTask()>> recorded;

  void put(std::function<StreamTask()> make) {
    if (recording) {
      recorded.push_back(std::move(make));
    } else {
      tasks.push_back(make());
    }
  }
  bool idle() {
    while (!tasks.empty() && tasks.front()()) tasks.pop_front();
    return tasks.empty();
  }
};

}  // namespace meshplan::test
