// The policy by which the kernel lets a thread run. See README.md for why.
#include <errno.h>
#include <node_api.h>
#include <sched.h>

#include <cstdint>

#include "../exports.h"

namespace {

napi_value numberOf(napi_env env, int32_t value) {
  napi_value result;
  napi_create_int32(env, value, &result);
  return result;
}

// set(thread, policy) -> 0, or the kernel's errno. A thread of 0 is the calling one. Its nice value stays.
napi_value set(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value args[2];
  napi_get_cb_info(env, info, &count, args, nullptr, nullptr);
  int32_t thread = 0, policy = 0;
  if (count < 2 || napi_get_value_int32(env, args[0], &thread) != napi_ok ||
      napi_get_value_int32(env, args[1], &policy) != napi_ok) {
    return numberOf(env, EINVAL);
  }
  const sched_param ordinary = {};
  return numberOf(env, sched_setscheduler(thread, policy, &ordinary) == 0 ? 0 : errno);
}

// get(thread) -> its policy, or -1 where there is no such thread.
napi_value get(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value arg;
  napi_get_cb_info(env, info, &count, &arg, nullptr, nullptr);
  int32_t thread = 0;
  if (count < 1 || napi_get_value_int32(env, arg, &thread) != napi_ok) return numberOf(env, -1);
  return numberOf(env, sched_getscheduler(thread));
}

}  // namespace

NAPI_MODULE_INIT() {
  return give(env, exports, {{"set", set}, {"get", get}});
}
