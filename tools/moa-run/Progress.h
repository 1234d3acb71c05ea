//===- Progress.h - progress of long tasks ----------------------*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_RUN_PROGRESS_H
#define MOA_TOOLS_MOA_RUN_PROGRESS_H

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace moa {

/// Prints the current task and its duration to standard error every two seconds, until destroyed.
class Progress {
public:
  explicit Progress(std::string what);
  ~Progress();
  /// Sets the completed part of the work; printed if there is a total.
  void advance(int64_t done, int64_t total);

private:
  void watch();
  std::string what;
  std::atomic<int64_t> done{0}, total{0};
  bool finished = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::thread thread;
};

} // namespace moa

#endif // MOA_TOOLS_MOA_RUN_PROGRESS_H
