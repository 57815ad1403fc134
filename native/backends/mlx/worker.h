// The one thread that a model's arrays belong to: MLX ties unevaluated arrays to the thread that made them.
//
// Callers wait for what they hand over, so the queue holds at most one task for each thread that calls.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace eliza::mlx {

class Worker {
 public:
  Worker() : thread_([this] { loop(); }) {}

  // Ends the thread, after what has been handed over.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs `body` on the thread and waits; its result, or what it threw. Never from the thread itself.
  template <typename Body>
  std::invoke_result_t<Body> run(Body&& body) {
    std::packaged_task<std::invoke_result_t<Body>()> task(std::forward<Body>(body));
    auto result = task.get_future();
    push([&task] { task(); });
    return result.get();
  }

 private:
  void push(std::function<void()> task);
  void loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool ended_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace eliza::mlx
