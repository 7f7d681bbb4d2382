// How the kernel lets a thread run: its policy, its niceness and its slice. See README.md for why.
#include <errno.h>
#include <node_api.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "../exports.h"

namespace {

// As the kernel has it (sched_setattr(2)), in its first size: headers of C libraries before 2.41 have none.
struct Attributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t niceness;
  uint32_t priority;
  uint64_t sliceNs;  // "runtime"; for ordinary threads a slice, since Linux 6.12, and nothing before
  uint64_t deadline;
  uint64_t period;
};

napi_value numberOf(napi_env env, int64_t value) {
  napi_value result;
  napi_create_int64(env, value, &result);
  return result;
}

// set(thread, policy, niceness, sliceUs) -> 0, or the kernel's errno. A thread of 0 is the calling one.
napi_value set(napi_env env, napi_callback_info info) {
  size_t count = 4;
  napi_value args[4];
  napi_get_cb_info(env, info, &count, args, nullptr, nullptr);
  int32_t thread = 0, policy = 0, niceness = 0;
  int64_t sliceUs = 0;
  if (count < 4 || napi_get_value_int32(env, args[0], &thread) != napi_ok ||
      napi_get_value_int32(env, args[1], &policy) != napi_ok ||
      napi_get_value_int32(env, args[2], &niceness) != napi_ok ||
      napi_get_value_int64(env, args[3], &sliceUs) != napi_ok || policy < 0 || sliceUs < 0) {
    return numberOf(env, EINVAL);
  }
  Attributes wish = {};
  wish.size = sizeof(wish);
  wish.policy = static_cast<uint32_t>(policy);
  wish.niceness = niceness;
  wish.sliceNs = static_cast<uint64_t>(sliceUs) * 1000;
  return numberOf(env, syscall(SYS_sched_setattr, thread, &wish, 0) == 0 ? 0 : errno);
}

// get(thread) -> [policy, niceness, sliceUs], or undefined where there is no such thread.
napi_value get(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value arg, result;
  napi_get_cb_info(env, info, &count, &arg, nullptr, nullptr);
  int32_t thread = 0;
  Attributes found = {};
  if (count < 1 || napi_get_value_int32(env, arg, &thread) != napi_ok ||
      syscall(SYS_sched_getattr, thread, &found, sizeof(found), 0) != 0) {
    return nullptr;
  }
  napi_create_array_with_length(env, 3, &result);
  napi_set_element(env, result, 0, numberOf(env, found.policy));
  napi_set_element(env, result, 1, numberOf(env, found.niceness));
  napi_set_element(env, result, 2, numberOf(env, static_cast<int64_t>(found.sliceNs / 1000)));
  return result;
}

}  // namespace

NAPI_MODULE_INIT() {
  return give(env, exports, {{"set", set}, {"get", get}});
}
