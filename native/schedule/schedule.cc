// The slices in which the kernel lets a thread run, returning freed memory to the kernel, and leaving at once. See README.md for why.
#include <errno.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <node_api.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "../calls.h"

namespace {

// The kernel's numbers of threads stay below this one.
constexpr uint64_t kThreadsMax = 1 << 22;
// The longest slice that the kernel takes, in nanoseconds.
constexpr uint64_t kSliceMax = 100'000'000;

// The first version of sched_attr (sched_setattr(2)): the C library declares it only since glibc 2.41.
struct Attributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t niceness;
  uint32_t priority;
  uint64_t runtime;
  uint64_t deadline;
  uint64_t period;
};
static_assert(sizeof(Attributes) == 48, "as the kernel has it");

// setSlice(thread, nanoseconds) -> 0, or the kernel's errno: how long the thread wants to run at a time. Policy and nice value stay.
napi_value setSlice(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "setSlice");
  pid_t thread = static_cast<pid_t>(arguments.integer(0, 0, kThreadsMax));
  uint64_t slice = arguments.integer(1, 0, kSliceMax);
  if (!arguments.good) return nullptr;
  Attributes attributes = {};
  if (syscall(SYS_sched_getattr, thread, &attributes, sizeof attributes, 0) != 0) return numberOf(env, errno);
  attributes.flags = 0;
  attributes.runtime = slice;
  return numberOf(env, syscall(SYS_sched_setattr, thread, &attributes, 0) == 0 ? 0 : errno);
}

// slice(thread) -> nanoseconds; 0 where the kernel has no such thing, -1 where there is no such thread.
napi_value slice(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "slice");
  pid_t thread = static_cast<pid_t>(arguments.integer(0, 0, kThreadsMax));
  if (!arguments.good) return nullptr;
  Attributes attributes = {};
  bool known = syscall(SYS_sched_getattr, thread, &attributes, sizeof attributes, 0) == 0;
  return numberOf(env, known ? static_cast<double>(attributes.runtime) : -1);
}

// ran() -> milliseconds that the calling thread has had of the processors.
napi_value ran(napi_env env, napi_callback_info) {
  timespec had = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &had);
  napi_value result;
  napi_create_double(env, had.tv_sec * 1e3 + had.tv_nsec / 1e6, &result);
  return result;
}

// trim() -> whether the C library gave freed memory of all threads back to the kernel. The library keeps freed memory
// otherwise, in an arena for each thread. Only glibc has a call for it.
napi_value trim(napi_env env, napi_callback_info) {
#if defined(__GLIBC__)
  return numberOf(env, malloc_trim(0));
#else
  return numberOf(env, 0);
#endif
}

// leave(code): the process ends here (_exit(2)).
napi_value leave(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "leave");
  int code = static_cast<int>(arguments.integer(0, 0, 255));
  if (!arguments.good) return nullptr;
  _exit(code);
}

}  // namespace

NAPI_MODULE_INIT() {
  return give(env, exports,
              {{"setSlice", setSlice}, {"slice", slice}, {"ran", ran}, {"trim", trim}, {"leave", leave}});
}
