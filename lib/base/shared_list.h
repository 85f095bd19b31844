// A list whose copies share their elements until one of them is changed.
//
//     SharedList<int> a = {1, 2};
//     SharedList<int> b = a;         one copy of 1 2 in memory
//     b.push_back(3);                b has elements of its own: a is 1 2, b is 1 2 3
//
// It behaves as a std::vector: what may change an element makes the elements the list's own first.
// Copies may be read and changed by different threads.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace meshplan {

template <class T>
class SharedList {
 public:
  using value_type = T;
  using List = std::vector<T>;

  SharedList() = default;
  SharedList(List list)  // NOLINT(google-explicit-constructor)
      : list_(list.empty() ? nullptr : std::make_shared<List>(std::move(list))) {}
  SharedList(std::initializer_list<T> list) : SharedList(List(list)) {}

  [[nodiscard]] const List& list() const {
    static const List none;
    return list_ == nullptr ? none : *list_;
  }
  operator const List&() const { return list(); }  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool empty() const { return list_ == nullptr || list_->empty(); }
  [[nodiscard]] size_t size() const { return list().size(); }
  [[nodiscard]] auto begin() const { return list().begin(); }
  [[nodiscard]] auto end() const { return list().end(); }
  [[nodiscard]] const T& operator[](size_t i) const { return list()[i]; }
  [[nodiscard]] const T& front() const { return list().front(); }
  [[nodiscard]] const T& back() const { return list().back(); }

  // The elements, to be changed.
  [[nodiscard]] List& own() {
    if (list_ == nullptr) {
      list_ = std::make_shared<List>();
    } else if (list_.use_count() > 1) {
      list_ = std::make_shared<List>(*list_);
    }
    return *list_;
  }
  [[nodiscard]] auto begin() { return own().begin(); }
  [[nodiscard]] auto end() { return own().end(); }
  [[nodiscard]] T& operator[](size_t i) { return own()[i]; }
  [[nodiscard]] T& front() { return own().front(); }
  [[nodiscard]] T& back() { return own().back(); }
  void push_back(T element) { own().push_back(std::move(element)); }
  void pop_back() { own().pop_back(); }
  void clear() { list_.reset(); }

  bool operator==(const SharedList& other) const {
    return list_ == other.list_ || list() == other.list();
  }

 private:
  std::shared_ptr<List> list_;  // null: no elements
};

}  // namespace meshplan
